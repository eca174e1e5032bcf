//! The package and the page in Chromium: compared with bare loops that only read the same bytes, and with the program; and the times that an
//! administrator waits.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;
use xtask::shell::{output, remove};
use xtask::web;

use super::contenders::{PACK_BIG, PACK_SMALL_FILES};
use super::job::Job;
use super::places::Places;
use super::report::{Report, float, grouped};
use crate::tree;

const PACK_HUGE: &str = "sealift pack --force SCRATCH/noise -o SCRATCH/huge.sealift --level 3 --name tree --bundle-version 1 --key SCRATCH/key --progress none";
const PACK_ONE: &str = "sealift pack --force SCRATCH/one -o SCRATCH/one.sealift --level 3 --name tree --bundle-version 1 --key SCRATCH/key --progress none";
const ENTRIES: u32 = 100_000;
const SCRIPT: &str = "wasm/bench/page.mjs";
/// Size of the saved file in bytes.
const ONE_BYTES: u64 = 1_000_000_000;
const MIB: f64 = 1024.0 * 1024.0;

/// The script's output. All times are in seconds.
#[derive(Deserialize)]
struct Found {
    seconds: BTreeMap<String, Vec<f64>>,
    memory: BTreeMap<String, Memory>,
    verdict: Vec<f64>,
    frames: Vec<f64>,
    tree: Vec<f64>,
    tasks: Vec<f64>,
    stop: Vec<f64>,
    bytes: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
struct Memory {
    idle: u64,
    peak: u64,
}

pub(crate) fn add(report: &mut Report, runs: usize, places: &Places) -> Result<()> {
    web::build()?;
    let bare = web::build_bare()?;
    pack(PACK_BIG.line, Some(tree::NOISE_FILES), places)?;
    pack(PACK_HUGE, Some(3 * tree::NOISE_FILES), places)?;
    tree::write_small_files(&places.path("SCRATCH/files"), ENTRIES)?;
    pack(PACK_SMALL_FILES.line, None, places)?;
    tree::write_file(&places.path("SCRATCH/one"), "one", ONE_BYTES)?;
    pack(PACK_ONE, None, places)?;
    let run = |more: &[&str], browser: &str| -> Result<Found> {
        let mut node = Command::new("node");
        node.arg(SCRIPT).args([places.path("sealift"), places.path("SCRATCH")]).arg(runs.to_string()).arg(&bare);
        node.args(more).env("SEALIFT_BROWSER", browser);
        serde_json::from_str(&output(&mut node)?).with_context(|| format!("{SCRIPT} prints JSON"))
    };
    let mut found = run(&[], "chromium")?;
    found.memory.extend(run(&["save"], "firefox")?.memory);
    judge(report, &found);
    let bundles = ["SCRATCH/big.sealift", "SCRATCH/huge.sealift", "SCRATCH/files.sealift", "SCRATCH/one.sealift"];
    places.remove(&bundles)?;
    places.remove(&["SCRATCH/files", "SCRATCH/one"])
}

/// Packs a tree with this many files of noise, which are removed afterwards.
fn pack(line: &str, noise: Option<u32>, places: &Places) -> Result<()> {
    let folder = places.path("SCRATCH/noise");
    noise.map_or(Ok(()), |files| tree::write_noise(&folder, files))?;
    Job::new(line, places).run()?;
    remove(&folder)
}

fn judge(report: &mut Report, found: &Found) {
    let each = |name: &str| found.seconds.get(name).map_or(&[][..], |times| times);
    let median = |times: Vec<f64>| {
        let mut times = times;
        times.sort_unstable_by(f64::total_cmp);
        times.get(times.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
    };
    // The median of the ratio of each run: other load on the machine affects both times.
    let ratio_of = |above: &str, below: &str| {
        median(each(above).iter().zip(each(below)).map(|(above, below)| above / below).collect())
    };
    let mut ratio =
        |what: &str, figure: f64, limit: f64| report.at_least(format!("page: {what}"), figure, limit, 2, "");
    ratio("speed of checking a file, to only reading it", ratio_of("bareFile", "file"), 0.9);
    ratio("speed of checking a URL, to only reading it", ratio_of("bareUrl", "url"), 0.8);
    ratio("speed of a deep check by one worker, to verify --deep --jobs 1", ratio_of("nativeOne", "deepOne"), 0.3);
    ratio("speed of a deep check by two workers, to verify --deep --jobs 2", ratio_of("nativeTwo", "deepTwo"), 0.27);
    // What this line explains about the one before: the program has instructions for SHA-256, and WebAssembly has none.
    let bound = ratio_of("nativeTwo", "sha256");
    let reused = ratio_of("reusedFile", "file");
    ratio("speed of a deep check by two workers, to one", ratio_of("deepOne", "deepTwo"), 1.5);
    ratio("in Node, speed of checking a file as a Blob, to a stream", ratio_of("nodeStream", "nodeBlob"), 1.0);
    let mut most = |what: String, figure: f64, limit: f64, unit: &str| {
        report.at_most(format!("page: {what}"), figure, limit, 0, unit);
    };
    let mut rows = String::new();
    for (name, Memory { idle, peak }) in &found.memory {
        let above = float(peak.saturating_sub(*idle)) / MIB;
        let (what, limit) = match name.strip_prefix("save-") {
            Some(browser) => (format!("a file of {} bytes is saved in {browser}", grouped(ONE_BYTES)), 100.0),
            None => (
                format!("a bundle of {} bytes is checked", grouped(found.bytes.get(name).copied().unwrap_or_default())),
                350.0,
            ),
        };
        most(format!("memory above the idle page, while {what}"), above, limit, " MiB");
        rows.push_str(&format!("| {what} | {:.0} | {above:.0} |\n", float(*idle) / MIB));
    }
    let longest = |times: &[f64]| 1000.0 * times.iter().copied().fold(0.0, f64::max);
    most("from the choice of a file to the verdict on its signature".to_owned(), longest(&found.verdict), 300.0, " ms");
    most(
        format!("longest frame while a tree of {ENTRIES} entries is filtered and scrolled"),
        longest(&found.frames),
        50.0,
        " ms",
    );
    let middle = |times: &[f64]| 1000.0 * median(times.to_vec());
    most(
        format!("from the verdict to an open directory in a tree of {ENTRIES} entries"),
        middle(&found.tree),
        1000.0,
        " ms",
    );
    // The browser reports only tasks of 50 ms or more.
    most("longest task while that tree comes".to_owned(), middle(&found.tasks), 50.0, " ms");
    most("from a stop to idle workers".to_owned(), middle(&found.stop), 200.0, " ms");
    let listed = |name: &str| each(name).iter().map(|time| format!("{time:.2}")).collect::<Vec<_>>().join(" ");
    let speed =
        |name: &str| float(found.bytes.get("big").copied().unwrap_or_default()) / 1e6 / median(each(name).to_vec());
    let mut text = "| what is done with the bundle of the tree and 2 GiB of noise | seconds, each run | MB/s |\n| --- | --- | --: |\n".to_owned();
    for (name, what) in [
        ("bareFile", "a worker for each core reads it as a file, and no more"),
        ("reusedFile", "the same, into buffers that are used again"),
        ("file", "signature, index, layout and every chunk, as a file"),
        ("bareUrl", "a worker for each core reads it by Range requests, and no more"),
        ("url", "signature, index, layout and every chunk, by Range requests"),
        ("nativeOne", "`sealift verify --deep --jobs 1`"),
        ("deepOne", "deep, one worker"),
        ("nativeTwo", "`sealift verify --deep --jobs 2`"),
        ("deepTwo", "deep, two workers"),
        ("zstd", "two workers only decode its chunks"),
        ("blake3", "two workers only hash them and their objects with BLAKE3"),
        ("sha256", "two workers only hash its objects with SHA-256"),
        ("nodeStream", "in Node: signature, index, layout and every chunk, as a stream"),
        ("nodeBlob", "the same, as a Blob of `openAsBlob`"),
    ] {
        text.push_str(&format!("| {what} | {} | {:.0} |\n", listed(name), speed(name)));
    }
    text.push_str(&format!(
        "\nTo reading into buffers that are used again, as the package does, checking a file has {reused:.2} of the speed. By two workers SHA-256 alone has {bound:.2} of the speed of `verify --deep --jobs 2`, and the whole deep check has {:.2} of that of SHA-256 alone.\n",
        ratio_of("sha256", "deepTwo"),
    ));
    text.push_str("\n| on the page | memory of the idle browser, MiB | above that, MiB |\n| --- | --: | --: |\n");
    text.push_str(&rows);
    text.push_str(&format!(
        "\nMemory is what all processes of the browser have in memory (Pss), asked ten times a second.\n\n- `node {SCRIPT} SEALIFT SCRATCH RUNS BARE`\n"
    ));
    report.section("The page in Chromium", &text);
}
