//! The time of an update by the size of the change: an unchanged file must only cost its row of the index.

use std::fs::{self, File};
use std::io::Write as _;

use anyhow::{Context, Result};

use super::job::{Job, Usage, median, number};
use super::places::Places;
use super::report::{Report, float, grouped, seconds};
use crate::tree;

const COPY: &str = "cp -a TREE SCRATCH/changed";
const PACK: &str = "sealift pack --force FROM -o SCRATCH/N.sealift --name tree --level 3 --bundle-version N --key SCRATCH/key --progress none";
const FIRST: &str = "sealift unpack SCRATCH/1.sealift SCRATCH/new --trust SCRATCH/allowed_signers --state SCRATCH/first-state --progress none";
const UPDATE: &str = "sealift unpack SCRATCH/N.sealift SCRATCH/new --update --delete --trust SCRATCH/allowed_signers --state SCRATCH/next-state --json --progress none";
const CHECK: &str = "rsync -aHAXnci --modify-window=-1 --delete SCRATCH/changed/ SCRATCH/new/";

/// Numbers of files that get an extra line at the end, ten times as many each time. With the first number, the update only reads the index.
const COUNTS: [usize; 5] = [0, 10, 100, 1_000, 10_000];

/// How much more one changed file may cost if ten times as many change.
const TOLERANCE: f64 = 1.25;

/// A choice of the files to change.
struct Pattern {
    name: &'static str,
    /// Returns the index, among all files, of the given one of `count`.
    pick: fn(number: usize, count: usize, files: usize) -> usize,
}

const PATTERNS: [Pattern; 2] = [
    Pattern { name: "side by side", pick: |number, count, files| (files - count) / 2 + number },
    Pattern { name: "all over the tree", pick: |number, count, files| number * files / count },
];

pub(crate) fn add(report: &mut Report, runs: usize, places: &Places) -> Result<()> {
    Job::new(COPY, places).run()?;
    let files = tree::files(&places.path("SCRATCH/changed"))?;
    pack("TREE", 1, places)?;
    let mut text = String::from(
        "In memory. Some files of the tree get another line each; whole objects are written, and whole chunks read in which they lie.\n\n\
         | files that change | which | seconds | user | system | read of the bundle | written |\n| --: | --- | --: | --: | --: | --: | --: |\n",
    );
    let mut version = 1;
    for pattern in PATTERNS {
        let mut points = Vec::new();
        for count in COUNTS {
            version += 1;
            for number in 0..count {
                let file = &files[(pattern.pick)(number, count, files.len())];
                let mut opened = File::options().append(true).open(file)?;
                writeln!(opened, "One line more, of version {version}.")
                    .with_context(|| format!("cannot write to {}", file.display()))?;
            }
            pack("SCRATCH/changed", version, places)?;
            let (row, wall) = measure(version, runs, places)?;
            println!("   {count} files {}: {wall:.3} s", pattern.name);
            text.push_str(&format!("| {} | {} | {row} |\n", grouped(u64::try_from(count)?), pattern.name));
            points.push(wall);
        }
        judge(report, pattern.name, &points);
        // The next pattern starts from the unchanged tree.
        places.remove(&["SCRATCH/changed"])?;
        Job::new(COPY, places).run()?;
    }
    places.remove(&["SCRATCH/changed", "SCRATCH/new", "SCRATCH/1.sealift"])?;
    text.push_str(&format!("\n- `{}`", UPDATE.replace('N', "2")));
    report.section("An update's time by the size of the change", &text);
    Ok(())
}

/// Measures updates from the tree to a version of it; returns the table row and the seconds.
fn measure(version: usize, runs: usize, places: &Places) -> Result<(String, f64)> {
    let line = |text: &str| text.replace('N', &version.to_string());
    let bundle = places.path(&line("SCRATCH/N.sealift"));
    let install = || {
        places.remove(&["SCRATCH/new"])?;
        Job::new(FIRST, places).run()
    };
    let mut usages: Vec<Usage> = Vec::new();
    for _ in 0..runs {
        install()?;
        tree::read_all(&bundle)?;
        usages.push(Job::new(&line(UPDATE), places).run()?);
    }
    Job::new(CHECK, places).finds_nothing("the update")?;
    install()?;
    let summary = Job::new(&line(UPDATE), places).json()?;
    let megabytes = |key: &str| anyhow::Ok(float(number(&summary, key)?) / 1e6);
    fs::remove_file(bundle)?;
    let middle = median(&usages);
    let times = [middle.wall, middle.user, middle.system].map(seconds).join(" | ");
    let row = format!("{times} | {:.1} MB | {:.1} MB", megabytes("stored_bytes")?, megabytes("logical_bytes")?);
    Ok((row, middle.wall.as_secs_f64()))
}

fn pack(from: &str, version: usize, places: &Places) -> Result<()> {
    Job::new(&PACK.replace('N', &version.to_string()).replace("FROM", from), places).run().map(drop)
}

/// Checks that ten times the changed files take ten times the time, above that of an update without changes.
fn judge(report: &mut Report, pattern: &str, points: &[f64]) {
    let [none, .., before, after] = points else { return };
    let times = (after - none) / (before - none) / 10.0;
    let what = format!("update: seconds for one more changed file, of 10,000 to of 1,000, {pattern}");
    report.at_most(what, times, TOLERANCE, 2, "");
}
