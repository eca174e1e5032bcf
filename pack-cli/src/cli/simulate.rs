//! `sealift simulate`: how long a device takes to read files in the order of their use.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueHint};
use sealift::order::OrderProfile;
use sealift::simulate::{Parameter, Run, SimulatedDevice, Simulation, simulate, write_picture};
use sealift::{Error, Opened, Progress, SharedBases};
use sealift_format::num::wide;
use serde::Serialize;

use super::base_args::BaseArgs;
use super::bundle::BundleArg;
use super::escape;
use super::failure::{About as _, Failure, shown};
use super::human::{Bytes, Grouped, count};
use super::jobs_arg::JobsArg;
use super::output;
use super::show::{BOLD, DIM, Show, json_line};

/// Simulate reading files from a slow device, in an order of use
///
/// Estimates how long it takes to read the files of PROFILE, in its order, from a bundle on such a device. Compares the bundle's own layout
/// with three others: by path, as packing without a profile lays it out; in the order of the contents' hashes; and one sweep over only these
/// contents. Each chunk is read once, after head and index. Reads no content, and does not require a signature.
///
/// A delta is read over its bases. Bases that are bundles lie on the same device, behind the delta, and the parts of them that it needs are
/// read too. What a directory, a repository or a store holds of a base is on the target's own disk, and takes no time.
#[derive(Args, Debug)]
#[command(after_long_help = "\
A device has the parameters capacity_bytes, place_bytes (where the bundle lies),
start_rate and end_rate (bytes a second), short_seek_ms, third_seek_ms and
full_seek_ms (by distance), turn_ms (one revolution), request_ms,
read_ahead_bytes and block_bytes. --json prints their values and sources.

Examples:
  sealift simulate os.sealift --profile boot.order --device dvd
  sealift simulate os-7.sealift os-8.sealift --profile boot.order \\
      --device hdd --svg boot.html
  sealift simulate os-8.delta --base os-7.sealift --profile boot.order \\
      --device dvd
  sealift simulate os.sealift --profile boot.order --device usb2 \\
      --set request_ms=0.5 --json")]
pub(crate) struct Simulate {
    /// The bundles; - reads one from standard input
    #[arg(value_name = "BUNDLE", required = true, value_hint = ValueHint::FilePath)]
    bundles: Vec<PathBuf>,
    /// The files in the order in which they are read: a profile of `sealift order`, or a list of paths
    #[arg(long, value_name = "PROFILE", value_hint = ValueHint::FilePath)]
    profile: PathBuf,
    /// The device: dvd, cd, hdd, usb2 or sdcard
    #[arg(long, value_name = "DEVICE", value_parser = PossibleValuesParser::new(SimulatedDevice::KINDS), hide_possible_values = true)]
    device: String,
    /// Change a parameter of the device; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_setting)]
    set: Vec<(String, f64)>,
    /// Draw offset over time for each order, in a page that any browser opens; - writes it to standard output
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Replace the page if it exists
    #[arg(long, requires = "svg")]
    force: bool,
    #[command(flatten)]
    base: BaseArgs,
    #[command(flatten)]
    show: Show,
}

impl Simulate {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let mut device = SimulatedDevice::of(&self.device).ok_or_else(|| Failure::usage("there is no such device"))?;
        for (name, value) in &self.set {
            device.set(name, *value)?;
        }
        let profile = OrderProfile::read(&self.profile)?;
        let page = self.svg.as_deref().map(|path| output::of(path, self.force)).transpose()?;
        let given = self.base.given(JobsArg::default(), None);
        let mut bases = SharedBases::new(&given);
        let mut found = Vec::new();
        for path in &self.bundles {
            let opened = BundleArg::of(path.clone()).read_untrusted()?;
            let (bundle, own) = match bases.complete(opened, path, &Progress::default())? {
                (Opened::Whole(bundle), own) => (bundle, own),
                (Opened::Delta(delta), _) => return Err(Error::is_delta(path, &delta).into()),
            };
            found.push((escape::text(&shown(path)), simulate(&bundle, &own, &profile, &device).about(path)?));
        }
        bases.check_used()?;
        if let Some(page) = &page {
            let pictured: Vec<_> = found.iter().map(|(title, simulation)| (title.clone(), simulation)).collect();
            write_picture(page, &device, &pictured)?;
        }
        let mut out = self.show.summary(self.svg.as_deref() == Some(Path::new("-")));
        for (path, (title, simulation)) in self.bundles.iter().zip(&found) {
            if self.show.json {
                json_line(&mut out, &JsonSimulation::new(&shown(path), &device, simulation))?;
            } else if !self.show.quiet {
                print(&mut out, title, &device, simulation)?;
            }
        }
        Ok(())
    }
}

fn print(out: &mut dyn Write, title: &str, device: &SimulatedDevice, found: &Simulation) -> std::io::Result<()> {
    let contents = count(wide(found.objects), "content");
    writeln!(out, "{BOLD}{title}{BOLD:#}: {contents} from {}", device.kind())?;
    let (matched, paths) = (Grouped(wide(found.matched)), count(wide(found.paths), "path"));
    writeln!(out, "  found {matched} of {paths} in the order profile")?;
    if found.of_base > 0 {
        writeln!(out, "  and {} from the base, which lies behind the delta", count(wide(found.of_base), "content"))?;
    }
    if found.not_read > 0 {
        writeln!(out, "  not read from {}: {} of the base", device.kind(), count(wide(found.not_read), "content"))?;
    }
    writeln!(out, "  {DIM}{:<12} {:>10} {:>8} {:>10} {:>7}{DIM:#}", "order", "time", "seeks", "read", "ratio")?;
    let own = found.as_laid_out.seconds;
    for (name, run) in found.orders() {
        let (time, ratio) = (format!("{:.2} s", run.seconds), ratio(run.seconds, own));
        let (seeks, bytes) = (Grouped(run.seeks), Bytes(run.bytes));
        writeln!(out, "  {name:<12} {time:>10} {seeks:>8} {bytes:>10} {ratio:>7.2}")?;
    }
    Ok(())
}

/// Returns a time as a multiple of the bundle's own.
fn ratio(seconds: f64, own: f64) -> f64 {
    if own > 0.0 { seconds / own } else { 1.0 }
}

/// Returns a number to six places.
fn rounded(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}

fn parse_setting(text: &str) -> Result<(String, f64), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE, such as turn_ms=11.1")?;
    let value = value.parse().map_err(|_| format!("{value} is not a number"))?;
    Ok((name.to_owned(), value))
}

#[derive(Serialize)]
struct JsonSimulation<'a> {
    bundle: &'a str,
    device: &'a str,
    parameters: Vec<JsonParameter>,
    paths: usize,
    matched: usize,
    objects: usize,
    of_base: usize,
    not_read: usize,
    orders: Vec<JsonRun>,
}

#[derive(Serialize)]
struct JsonParameter {
    name: &'static str,
    value: f64,
    unit: &'static str,
    source: &'static str,
}

#[derive(Serialize)]
struct JsonRun {
    order: &'static str,
    simulated_seconds: f64,
    seeks: u64,
    read_bytes: u64,
    ratio: f64,
}

impl<'a> JsonSimulation<'a> {
    fn new(bundle: &'a str, device: &'a SimulatedDevice, found: &Simulation) -> Self {
        let parameters = device.parameters().iter().map(|parameter| {
            let Parameter { name, unit, value, source, .. } = *parameter;
            JsonParameter { name, value, unit, source }
        });
        let own = found.as_laid_out.seconds;
        let orders = found.orders().map(|(order, run)| {
            let Run { seconds, seeks, bytes, .. } = *run;
            let (simulated_seconds, ratio) = (rounded(seconds), rounded(ratio(seconds, own)));
            JsonRun { order, simulated_seconds, seeks, read_bytes: bytes, ratio }
        });
        Self {
            bundle,
            device: device.kind(),
            parameters: parameters.collect(),
            paths: found.paths,
            matched: found.matched,
            objects: found.objects,
            of_base: found.of_base,
            not_read: found.not_read,
            orders: orders.into(),
        }
    }
}
