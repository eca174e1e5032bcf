//! A day of a tree that changes daily, published with deltas from sixty days, beside packing it and one delta.

use std::fs;

use anyhow::Result;
use xtask::shell::renew;

use super::ebuilds;
use super::job::{Job, Usage};
use super::places::Places;
use super::report::{Report, float, grouped, seconds};
use crate::tree;

/// The version of the newest day; the first day's is 1.
pub(super) const NEWEST: u64 = 61;

const PACK: &str = "sealift pack --force SCRATCH/day -o SCRATCH/days/VERSION.sealift --name ebuilds --bundle-version VERSION --key SCRATCH/key --progress none";
const PUBLISH: &str =
    "sealift publish SCRATCH/days/VERSION.sealift SCRATCH/www/days --key SCRATCH/key --deltas last:60 --progress none";
const ONE: &str = "sealift pack --force SCRATCH/day -o SCRATCH/days/one.sealift --base SCRATCH/days/BEFORE.sealift --trust SCRATCH/allowed_signers --name ebuilds --bundle-version VERSION --key SCRATCH/key --progress none";

/// Leaves the bundles of all days as `SCRATCH/days/VERSION.sealift`.
pub(super) fn add(report: &mut Report, categories: u64, places: &Places) -> Result<()> {
    renew(&places.path("SCRATCH/days"))?;
    let day = places.path("SCRATCH/day");
    let line = |line: &str| line.replace("VERSION", &NEWEST.to_string()).replace("BEFORE", &(NEWEST - 1).to_string());
    let mut pack = Usage::default();
    for version in 1..=NEWEST {
        renew(&day)?;
        ebuilds::write(&day, categories, &ebuilds::DAILY, version - 1)?;
        pack = Job::new(&PACK.replace("VERSION", &version.to_string()), places).run()?;
    }
    let extent = tree::extent(&day)?;
    let earlier: Vec<_> = (1..NEWEST).map(|version| format!("SCRATCH/days/{version}.sealift")).collect();
    let fill = format!("sealift publish {} SCRATCH/www/days --key SCRATCH/key --quiet", earlier.join(" "));
    Job::new(&fill, places).run()?;

    let publish = Job::new(&line(PUBLISH), places).run()?;
    let one = Job::new(&line(ONE), places).run()?;
    println!(
        "   pack: {} s, publish: {} s, one delta: {} s",
        seconds(pack.wall),
        seconds(publish.wall),
        seconds(one.wall)
    );
    let deltas = tree::files(&places.path("SCRATCH/www/days"))?;
    let deltas: Vec<_> = deltas.iter().filter(|path| path.display().to_string().contains("-from-")).collect();
    let mut delta_bytes = 0;
    for path in &deltas {
        delta_bytes += fs::metadata(path)?.len();
    }
    let ratio = (pack.wall + publish.wall).as_secs_f64() / (pack.wall + one.wall).as_secs_f64();
    report.at_most("channel: a day with deltas from 60 days: seconds, to pack and one delta", ratio, 12.0, 2, "");
    let mut text = format!(
        "A tree of {} files and {} bytes, in which 6 of 1000 packages change a day; one run.\n\n\
         | | seconds | CPU | peak, MiB | bytes |\n| --- | --: | --: | --: | --: |\n",
        grouped(extent.files),
        grouped(extent.bytes)
    );
    let bytes = |word: &str| fs::metadata(places.path(&line(word))).map(|metadata| metadata.len());
    let published = format!("publish, with {} deltas", deltas.len());
    let rows = [
        ("pack", &pack, bytes("SCRATCH/days/VERSION.sealift")?),
        ("one delta, from the day before", &one, bytes("SCRATCH/days/one.sealift")?),
        (published.as_str(), &publish, delta_bytes),
    ];
    for (what, usage, bytes) in rows {
        text.push_str(&format!(
            "| {what} | {} | {} | {:.0} | {} |\n",
            seconds(usage.wall),
            seconds(usage.cpu()),
            float(usage.peak_bytes) / 1024.0 / 1024.0,
            grouped(bytes)
        ));
    }
    text.push_str(&format!("\n- `{PACK}`\n- `{PUBLISH}`\n- `{ONE}`\n"));
    report.section("A day published with deltas from sixty days", &text);
    places.remove(&["SCRATCH/day", "SCRATCH/days/one.sealift", "SCRATCH/www/days"])
}
