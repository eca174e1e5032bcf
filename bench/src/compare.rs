//! `cargo xtask compare`: runs Sealift and its peers in turn on one tree; writes bench/RESULTS.md.

mod boot;
mod boot_composefs;
mod change;
mod channel;
mod composefs;
mod containers;
mod contenders;
mod delta;
mod desktop;
mod devices;
mod ebuilds;
mod floor;
mod following;
mod in_place;
mod job;
mod line;
mod machine;
mod measures;
mod mounted;
mod order;
mod ostree;
mod ostree_change;
mod page;
mod parts;
mod places;
mod profile;
mod publishing;
mod race;
mod reads;
mod report;
mod scaling;
mod scratch;
mod slots;
mod static_delta;
mod update;
mod web;

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use lexopt::ValueExt;
use xtask::packages::{self, Chore};
use xtask::shell::run;
use xtask::tools;

use crate::products;
use crate::tree::{self, Extent};
use measures::MEASURES;
use places::Places;
use report::Report;

const RESULTS: &str = "bench/RESULTS.md";
type Add = fn(&mut Report, &Options, &Places) -> Result<()>;

/// Measures other than races.
#[rustfmt::skip] // a table
const OTHERS: [(&str, Add); 25] = [
    ("update",        |report, options, places| update::add(report, options.runs, places)),
    ("change",        |report, options, places| change::add(report, options.runs, places)),
    ("delta-linux",   |report, _, places| delta::add(report, &delta::LINUX, places)),
    ("delta-debian",  |report, _, places| delta::add(report, &delta::DEBIAN, places)),
    ("delta-ebuilds", |report, _, places| delta::add(report, &delta::EBUILDS, places)),
    ("delta-year",    |report, _, places| delta::add(report, &delta::YEAR, places)),
    ("delta-releases", |report, _, places| delta::add(report, &delta::RELEASES, places)),
    // A run takes minutes, and the figures are far from the targets.
    ("ostree",        |report, options, places| ostree::add(report, options.runs.min(2), places)),
    ("ostree-change", |report, options, places| ostree_change::add(report, options.runs, places)),
    ("static-delta",  |report, _, places| static_delta::add(report, places)),
    ("composefs",     |report, options, places| composefs::add(report, options.runs, places)),
    ("in-place",      |report, options, places| in_place::add(report, options.runs, places)),
    ("order",         |report, _, places| order::add(report, places)),
    ("boot",          |report, _, places| boot::add(report, places)),
    ("boot-composefs", |report, _, places| boot_composefs::add(report, places)),
    ("scratch",       |report, options, places| scratch::add(report, options.runs, places)),
    ("slots",         |report, options, places| slots::add(report, options.runs, places)),
    ("parts",         |report, options, places| parts::add(report, options.runs, options.small, places)),
    ("channel",       |report, options, places| channel::add(report, options.small, places)),
    ("containers",    |report, options, places| containers::add(report, options.runs.min(2), places)),
    ("page",          |report, options, places| page::add(report, options.runs, places)),
    ("reads",         |report, _, places| reads::add(report, places)),
    ("scaling",       |report, options, places| scaling::add(report, options.skip_large, options.runs, places)),
    ("profile",       |report, _, places| profile::add(report, places)),
    // Runs last: the peak memory of this process counts for its children (getrusage(2), ru_maxrss).
    ("floor",         |report, options, places| floor::add(report, options.runs, places)),
];
/// Measures that run only on Debian's kernel source.
const OF_KERNEL: [&str; 8] =
    ["update", "delta-linux", "delta-debian", "delta-ebuilds", "delta-year", "delta-releases", "composefs", "page"];
/// Measures that mount or create a system, which only root does.
#[rustfmt::skip] // a list
const OF_ROOT: [&str; 10] = [
    "delta-debian", "composefs", "containers", "in-place", "order", "boot", "boot-composefs", "scratch", "slots", "channel",
];
const GIB: u64 = 1 << 30;

struct Options {
    tree: Option<PathBuf>,
    runs: usize,
    only: Vec<String>,
    scratch: Option<PathBuf>,
    skip_large: bool,
    small: bool,
}

impl Options {
    fn parse(mut args: lexopt::Parser) -> Result<Self> {
        use lexopt::Arg::{Long, Value};
        let mut options =
            Self { tree: None, runs: 3, only: Vec::new(), scratch: None, skip_large: false, small: false };
        while let Some(arg) = args.next()? {
            match arg {
                Long("runs") => options.runs = args.value()?.parse::<usize>()?.max(1),
                Long("only") => options.only.extend(args.value()?.string()?.split(',').map(str::to_owned)),
                Long("scratch") => options.scratch = Some(args.value()?.into()),
                Long("skip-large") => options.skip_large = true,
                Long("small") => options.small = true,
                Value(tree) if options.tree.is_none() => options.tree = Some(tree.into()),
                other => return Err(other.unexpected().into()),
            }
        }
        let names: Vec<_> = MEASURES.iter().map(|measure| measure.name).chain(OTHERS.map(|(name, _)| name)).collect();
        match options.only.iter().find(|name| !names.contains(&name.as_str())) {
            Some(unknown) => bail!("no measure {unknown}; there are {}", names.join(", ")),
            None => Ok(options),
        }
    }

    fn includes(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }

    fn wanted_bytes(&self) -> u64 {
        if self.small {
            return 2 * GIB;
        }
        // Space for the tree and two bundles, of 2 GiB and of 6 GiB, with the incompressible files that they are packed from.
        if self.skip_large { 5 * GIB } else { 17 * GIB }
    }
}

/// Measures, and writes the page; only a complete run replaces the committed one.
pub(crate) fn main(args: lexopt::Parser) -> Result<()> {
    let options = Options::parse(args)?;
    packages::ensure(Chore::Compare)?;
    let (places, extent) = places(&options)?;
    if options.includes("unpack-disk") || options.includes("update") {
        // Unpacked trees stay until all measures are done.
        places.require_disk(extent.bytes * 10 * u64::try_from(options.runs)?)?;
    }
    let words: Vec<_> = env::args().skip(1).collect();
    let prefix = env::var_os("SEALIFT_BIN").map_or("", |_| "SEALIFT_BIN=... ");
    let command = format!("{prefix}cargo xtask {}", words.join(" "));
    let opening = machine::describe(&places, &extent, &command, options.runs)?;
    let mut report = Report::default();
    race(&mut report, &options, &places)?;
    for (name, add) in OTHERS {
        let is_left_out = options.tree.is_some() && OF_KERNEL.contains(&name) || options.skip_large && name == "page";
        if !options.includes(name) || is_left_out {
            continue;
        }
        if OF_ROOT.contains(&name) && !rustix::process::geteuid().is_root() {
            println!("compare: {name} skipped, since only root mounts and creates systems");
            continue;
        }
        println!("compare: {name}");
        add(&mut report, &options, &places)?;
    }
    let page = report.finish(&opening);
    if options.only.is_empty() {
        fs::create_dir_all("bench")?;
        fs::write(RESULTS, &page).with_context(|| format!("cannot write {RESULTS}"))?;
        println!("compare: written to {RESULTS}");
    } else {
        println!("\n{page}");
    }
    Ok(())
}

fn race(report: &mut Report, options: &Options, places: &Places) -> Result<()> {
    for measure in MEASURES.iter().filter(|measure| options.includes(measure.name)) {
        if measure.is_large && options.skip_large {
            println!("compare: {} skipped, it is large", measure.name);
            continue;
        }
        println!("compare: {}", measure.name);
        if measure.is_large {
            tree::write_noise(&places.path("SCRATCH/noise"), tree::NOISE_FILES)?;
        }
        report.add(measure, &race::run(measure, options.runs, places)?, places);
        places.remove(&["SCRATCH/noise", "SCRATCH/big.sealift"])?;
    }
    Ok(())
}

/// Creates the key that signs every bundle, and the file that trusts it.
fn make_key(places: &Places) -> Result<()> {
    let key = places.resolve("SCRATCH/key");
    run(Command::new(places.resolve("sealift")).args(["key", "generate", "--quiet", "-o", &key]))?;
    let public = fs::read_to_string(places.path("SCRATCH/key.pub"))?;
    fs::write(places.path("SCRATCH/allowed_signers"), format!("* namespaces=\"sealift\" {public}"))?;
    Ok(())
}

/// Finds or creates the tree, our program and the peers that cargo installs.
fn places(options: &Options) -> Result<(Places, Extent)> {
    let mut places = Places::new(options.scratch.clone(), options.wanted_bytes())?;
    places.add_program("sealift", products::sealift()?);
    places.add_program("b3sum", tools::B3SUM.ensure()?);
    if options.includes("composefs") || options.includes("boot-composefs") {
        places.add_program("sealift-composefs", products::sealift_with_composefs()?);
        places.add_program("mkcomposefs", tools::ensure_mkcomposefs()?);
    }
    make_key(&places)?;
    places.tree = match &options.tree {
        Some(tree) => fs::canonicalize(tree).with_context(|| format!("cannot find {}", tree.display()))?,
        None => tree::unpack_kernel(&places.path("SCRATCH"))?,
    };
    let extent = tree::extent(&places.tree)?;
    let sample = extent.sample.as_ref().context("the tree has no small file to ask for")?;
    let name = sample.strip_prefix(&places.tree)?;
    places.file = name.to_str().context("a name that is not UTF-8")?.to_owned();
    Ok((places, extent))
}
