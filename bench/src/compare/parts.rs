//! A bundle in 20 volumes with recovery, of which two are lost, or of which sectors cannot be read everywhere: repaired, beside only reading what is
//! there; recovery made, beside par2; and a bundle of which only damaged copies are left, unpacked beside one good copy.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use xtask::shell::{renew, run};

use super::contenders;
use super::job::{Job, Usage, median, number};
use super::places::Places;
use super::report::{Report, each, float, grouped, seconds};
use crate::tree;

const VOLUMES: u64 = 20;
/// The volumes that are lost, counted from 0.
const LOST: [usize; 2] = [2, 16];
/// Damaged chunks of each copy.
const DAMAGED: u64 = 100;
const PRELOADED: &str = "bench/src/compare/unreadable.c";
const MIB: f64 = 1024.0 * 1024.0;
/// What a DVD drive reads in a second, at 16 times the speed of a film.
const DVD: f64 = 16.0 * 1_385_000.0;

const PACK: &str = "sealift pack --force DISK/parts/noise -o DISK/parts/os.sealift --name os --bundle-version 1 --key SCRATCH/key --progress none";
const SPLIT: &str = "sealift split DISK/parts/os.sealift --size SIZE --recovery 2 -o DISK/parts/set --progress none";
const PAR2: &str = "par2 create -q -q -r10 -n2 -B DISK/parts/set DISK/parts/par2/set.par2";
const READ: &str = "cat";
const REPAIR: &str = "sealift repair DISK/parts/set -o DISK/parts/found --progress none";
/// Of 1000 sectors, 50 cannot be read.
const SCRATCHED: &str = "env LD_PRELOAD=DISK/parts/unreadable.so UNREADABLE_IN=DISK/parts/set UNREADABLE_PARTS=50";
const VERIFY: &str = "sealift verify SCRATCH/a.sealift SCRATCH/b.sealift --trust SCRATCH/allowed_signers --state SCRATCH/parts-state --json --progress none";
const GOOD: &str = "sealift unpack SCRATCH/tree.sealift SCRATCH/new --trust SCRATCH/allowed_signers --state SCRATCH/parts-state --durability none --progress none";
const COPIES: &str = "sealift unpack SCRATCH/a.sealift SCRATCH/b.sealift SCRATCH/new --trust SCRATCH/allowed_signers --state SCRATCH/parts-state --durability none --quiet --progress none";
const CHECK: &str = "rsync -aHAXnci --modify-window=-1 --delete TREE/ SCRATCH/new/";

/// What one program does, and another one beside it.
#[derive(Default)]
struct Found {
    ours: Vec<Usage>,
    peer: Vec<Usage>,
}

pub(crate) fn add(report: &mut Report, runs: usize, is_small: bool, places: &Places) -> Result<()> {
    let mut text = String::new();
    volumes(report, &mut text, runs, is_small, places)?;
    copies(report, &mut text, runs, places)?;
    report.section("Bundles in volumes, and damaged copies", &text);
    Ok(())
}

fn volumes(report: &mut Report, text: &mut String, runs: usize, is_small: bool, places: &Places) -> Result<()> {
    // The files that the bundle is packed from, and the bundle; or its volumes, and those that are made again.
    places.require_disk(if is_small { 1 << 30 } else { 8 << 30 })?;
    renew(&places.path("DISK/parts"))?;
    // In small files, chunks of the usual size would fill the volumes unevenly.
    let (files, chunks) = if is_small { (1, " --chunk-size 64KiB") } else { (tree::NOISE_FILES, "") };
    tree::write_noise(&places.path("DISK/parts/noise"), files)?;
    Job::new(&format!("{PACK}{chunks}"), places).run()?;
    places.remove(&["DISK/parts/noise"])?;
    let bundle_len = fs::metadata(places.path("DISK/parts/os.sealift"))?.len();

    let split = SPLIT.replace("SIZE", &volume_size(places)?.to_string());
    let mut making = Found::default();
    for round in 1..=runs {
        places.remove(&["DISK/parts/set"])?;
        tree::read_all(&places.path("DISK/parts/os.sealift"))?;
        making.ours.push(Job::new(&split, places).run()?);
        println!("   {round}/{runs} split: {}", each(&making.ours));
    }
    let files = set(places)?;
    let volumes: Vec<&PathBuf> = files.iter().filter(|path| is_volume(path)).collect();
    fs::create_dir(places.path("DISK/parts/par2"))?;
    // It takes minutes, and the figures are far from each other.
    making.peer.push(Job::new(&with(PAR2, &volumes), places).run()?);
    println!("   par2: {}", each(&making.peer));
    places.remove(&["DISK/parts/par2", "DISK/parts/os.sealift"])?;

    let lost = lost_volumes(runs, &files, places)?;
    let scratched = scratched_volumes(runs, &files, places)?;

    let speed = |usages: &[Usage]| float(bundle_len) / median(usages).wall.as_secs_f64();
    let faster = speed(&making.ours) / speed(&making.peer);
    report.at_least("parts: speed of making recovery, to par2", faster, 20.0, 1, " times");
    text.push_str(&format!(
        "A bundle of {} bytes in {} volumes, and two recovery volumes; all on the disk, and read from there.\n\n\
         | | ours, s | each run | MB/s | peak, MiB | peer, s | each run | ours to it |\n| --- | --: | --- | --: | --: | --: | --- | --: |\n",
        grouped(bundle_len),
        volumes.len()
    ));
    let rows = [
        ("split, with recovery; beside par2", &making, None),
        ("2 volumes lost, repair; beside reading the others", &lost, Some(1.3)),
        ("5 % of the sectors unreadable everywhere, repair; beside reading all of them", &scratched, Some(1.3)),
    ];
    for (what, found, limit) in rows {
        let [ours, peer] = [&found.ours, &found.peer].map(|usages| median(usages).wall);
        let ratio = ours.as_secs_f64() / peer.as_secs_f64();
        let peak = found.ours.iter().map(|usage| usage.peak_bytes).max().unwrap_or_default();
        if let Some(limit) = limit {
            report.at_most(format!("parts: {what}: seconds"), ratio, limit, 2, "");
        }
        report.at_most(format!("parts: {what}: memory"), float(peak) / MIB, 256.0, 0, " MiB");
        text.push_str(&format!(
            "| {what} | {} | {} | {:.0} | {:.0} | {} | {} | {ratio:.2} |\n",
            seconds(ours),
            each(&found.ours),
            speed(&found.ours) / 1e6,
            float(peak) / MIB,
            seconds(peer),
            each(&found.peer),
        ));
    }
    let slowest = speed(&lost.ours).min(speed(&scratched.ours));
    text.push_str(&format!(
        "\nMB/s are of the bundle. A DVD drive at 16 times the speed of a film reads {:.1} MB/s; the slower repair has {:.1} times that speed.\n\n",
        DVD / 1e6,
        slowest / DVD
    ));
    for line in [split, PAR2.to_owned(), REPAIR.to_owned(), format!("{SCRATCHED} {REPAIR}"), format!("{READ} FILES")] {
        text.push_str(&format!("- `{line}`\n"));
    }
    places.remove(&["DISK/parts"])
}

/// Returns a size of volumes that makes 20 of the bundle: its part of the chunks, what recovery volumes have in addition (checksums, about a
/// twentieth), head and layout, and room up to the next chunk's end.
fn volume_size(places: &Places) -> Result<u64> {
    let info: Value = Job::new("sealift info DISK/parts/os.sealift --json", places).json()?;
    let contents = &info["contents"];
    let front = number(contents, "head_bytes")? + number(contents, "layout_bytes")?;
    let body = number(contents, "file_bytes")?.saturating_sub(front);
    Ok(body.div_ceil(VOLUMES) / 25 * 27 + front + number(contents, "largest_chunk_bytes")? + 4096)
}

/// Returns the files of the set, volumes first.
fn set(places: &Places) -> Result<Vec<PathBuf>> {
    let mut files = tree::files(&places.path("DISK/parts/set"))?;
    files.sort_by_key(|path| !is_volume(path));
    Ok(files)
}

fn is_volume(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "sealift-volume")
}

/// Returns a line with these files as its last words.
fn with(line: &str, files: &[&PathBuf]) -> String {
    let words: Vec<_> = files.iter().map(|path| path.display().to_string()).collect();
    format!("{line} {}", words.join(" "))
}

/// Repairs a set of which two volumes are lost.
fn lost_volumes(runs: usize, files: &[PathBuf], places: &Places) -> Result<Found> {
    fs::create_dir(places.path("DISK/parts/away"))?;
    let mut away: Vec<(&PathBuf, PathBuf)> = Vec::new();
    for number in LOST {
        let path = files.get(number).context("the set has too few volumes")?;
        let to = places.path("DISK/parts/away").join(path.file_name().unwrap_or_default());
        fs::rename(path, &to)?;
        away.push((path, to));
    }
    let there: Vec<&PathBuf> = files.iter().filter(|path| path.exists()).collect();
    let found = repaired(runs, REPAIR, &there, away.iter().map(|(_, to)| to), places)?;
    for (path, to) in away {
        fs::rename(to, path)?;
    }
    Ok(found)
}

/// Repairs a set in whose files some sectors cannot be read.
fn scratched_volumes(runs: usize, files: &[PathBuf], places: &Places) -> Result<Found> {
    let library = places.path("DISK/parts/unreadable.so");
    run(Command::new("cc").args(["-O2", "-shared", "-fPIC", PRELOADED, "-ldl", "-o"]).arg(library))?;
    let line = format!("{SCRATCHED} {REPAIR} --quiet");
    let all: Vec<&PathBuf> = files.iter().collect();
    // Every volume has such sectors, and is therefore made again.
    repaired(runs, &line, &all, files.iter().filter(|path| is_volume(path)), places)
}

/// Runs a repair, and beside it a program that only reads what is there. What is made again must be equal to the `wanted` files, and nothing else.
fn repaired<'a>(
    runs: usize,
    line: &str,
    there: &[&PathBuf],
    wanted: impl Iterator<Item = &'a PathBuf>,
    places: &Places,
) -> Result<Found> {
    let wanted: Vec<_> = wanted.collect();
    let mut found = Found::default();
    for round in 1..=runs {
        there.iter().try_for_each(|path| tree::forget(path))?;
        found.peer.push(Job::new(&with(READ, there), places).run()?);
        there.iter().try_for_each(|path| tree::forget(path))?;
        found.ours.push(Job::new(line, places).run()?);
        println!("   {round}/{runs} repair: {}, reading: {}", each(&found.ours), each(&found.peer));
        let made = tree::files(&places.path("DISK/parts/found"))?;
        let made: Vec<&PathBuf> = made.iter().collect();
        ensure!(names(&made) == names(&wanted), "other volumes were made: {made:?}");
        for (made, wanted) in made.into_iter().zip(wanted.iter().copied()) {
            Job::new(&with("cmp", &[made, wanted]), places).run()?;
        }
        places.remove(&["DISK/parts/found"])?;
    }
    Ok(found)
}

fn names<'a>(paths: &[&'a PathBuf]) -> Vec<Option<&'a OsStr>> {
    paths.iter().map(|path| path.file_name()).collect()
}

/// Unpacks two copies of a bundle, each damaged in other chunks.
fn copies(report: &mut Report, text: &mut String, runs: usize, places: &Places) -> Result<()> {
    Job::new(contenders::PACK.line, places).run()?;
    let info: Value = Job::new("sealift info SCRATCH/tree.sealift --json", places).json()?;
    let [file_len, stored, chunks] = ["file_bytes", "chunks_bytes", "chunks"].map(|key| number(&info["contents"], key));
    let (file_len, stored, chunks) = (file_len?, stored?, chunks?);
    // Several chunks lie between two that are damaged, so that no chunk is in both copies.
    let hits = DAMAGED.min(chunks / 8).max(1);
    for (place, name) in (0..).zip(["a", "b"]) {
        let path = places.path(&format!("SCRATCH/{name}.sealift"));
        fs::copy(places.path("SCRATCH/tree.sealift"), &path)?;
        let file = File::options().read(true).write(true).open(path)?;
        for hit in 0..hits {
            // In the middle of every second of so many equal parts.
            let at = file_len - stored + (2 * (2 * hit + place) + 1) * stored / (4 * hits);
            let mut byte = [0];
            file.read_exact_at(&mut byte, at)?;
            file.write_all_at(&[!byte[0]], at)?;
        }
    }
    let damaged = damaged_ranges(places)?;

    let mut found = Found::default();
    for round in 1..=runs {
        for (line, usages) in [(GOOD, &mut found.peer), (COPIES, &mut found.ours)] {
            places.remove(&["SCRATCH/new", "SCRATCH/parts-state"])?;
            for name in ["tree", "a", "b"] {
                tree::read_all(&places.path(&format!("SCRATCH/{name}.sealift")))?;
            }
            usages.push(Job::new(line, places).run()?);
        }
        println!("   {round}/{runs} two copies: {}, one: {}", each(&found.ours), each(&found.peer));
        Job::new(CHECK, places).finds_nothing("unpacking two damaged copies")?;
    }
    let [ours, peer] = [&found.ours, &found.peer].map(|usages| median(usages).wall);
    let ratio = ours.as_secs_f64() / peer.as_secs_f64();
    report.at_most("parts: two damaged copies: seconds to unpack, to one good copy", ratio, 1.2, 2, "");
    text.push_str(&format!(
        "\nTwo copies of a bundle of {} bytes in {} chunks, of which {} and {} have a byte changed, no chunk in both: unpacked in {} s ({}), one good copy in {} s ({}), {ratio:.2} of that.\n\n- `{COPIES}`\n- `{GOOD}`\n",
        grouped(file_len),
        grouped(chunks),
        damaged[0],
        damaged[1],
        seconds(ours),
        each(&found.ours),
        seconds(peer),
        each(&found.peer),
    ));
    places.remove(&["SCRATCH/new", "SCRATCH/parts-state", "SCRATCH/a.sealift", "SCRATCH/b.sealift"])
}

/// Returns how many ranges of each copy `verify` finds damaged.
fn damaged_ranges(places: &Places) -> Result<[usize; 2]> {
    let done = Job::new(VERIFY, places).command()?.output().context("cannot start sealift")?;
    let said = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "two copies are not sound together:\n{said}");
    let lines: Vec<Value> = said.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let copies = lines.iter().filter_map(|line| line["copy"]["damaged"].as_array().map(Vec::len));
    <[usize; 2]>::try_from(copies.collect::<Vec<_>>()).ok().context("verify told of other copies")
}
