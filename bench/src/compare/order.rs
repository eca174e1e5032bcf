//! A program's start from a disc: simulated, and really read through `sealift mount` from a slow disc that nbdkit serves. The bundle is laid out by a
//! recorded profile, by path, and by the hashes of the contents, like a store of objects. Also measures what recording costs.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Deserialize;
use xtask::shell::{output, renew, run};

use super::job::{Job, Usage, median};
use super::mounted::Mounted;
use super::places::Places;
use super::report::{Report, grouped, seconds};
use crate::debian::kept;

/// A Python program of many modules, each a small file, in a system with larger programs.
const PACKAGES: [&str; 3] = ["python3-sympy", "libreoffice-writer-nogui", "mercurial"];
const START: &str = "chroot ROOT python3 -c __import__('sympy')";
/// The start, followed by some work.
const WORK: &str = "chroot ROOT python3 -c __import__('sympy').sympify('integrate(exp(x)*sin(x)**3*x,x),integrate(exp(x)*sin(x)**4*x**2,x),integrate(exp(x)*cos(x)**5*x,x)')";
/// A command that only opens and reads files: recording cannot cost more than here.
const BARE: &str = "find ROOT/usr/lib ROOT/usr/share -xdev -type f -exec cat {} +";
const RECORD: &str = "sealift order record --force --quiet -o SCRATCH/PROFILE.order --root ROOT -- ";
const PACK: &str = "sealift pack --force ROOT -o SCRATCH/NAME.sealift --exclude /proc --name start --level 3 --bundle-version 1 --key SCRATCH/key --progress none";
const SIMULATE: &str = "sealift simulate SCRATCH/NAME.sealift --profile SCRATCH/start.order --device dvd --json";
const MOUNT: &str =
    "sealift mount SCRATCH/disc/nbd SCRATCH/mounted --trust SCRATCH/allowed_signers --state SCRATCH/order-state --json";
pub(super) const PLUGIN: &str = "bench/src/compare/disc.c";
/// How often a command runs with and without a recorder, in turn.
const RECORDINGS: usize = 9;

/// A bundle, with the options that it is packed with.
struct Layout {
    name: &'static str,
    more: &'static str,
}

const LAYOUTS: [Layout; 3] = [
    Layout { name: "profile", more: " --order SCRATCH/start.order" },
    Layout { name: "path", more: "" },
    Layout { name: "hash", more: " --order SCRATCH/hash.order" },
];

#[derive(Deserialize)]
pub(super) struct Simulated {
    parameters: Vec<Parameter>,
    orders: Vec<Order>,
}

impl Simulated {
    /// Returns the parameters of the device as arguments of the disc.
    pub(super) fn of_device(&self) -> impl Iterator<Item = String> {
        self.parameters.iter().map(|Parameter { name, value }| format!("{name}={value}"))
    }
}

#[derive(Deserialize)]
struct Parameter {
    name: String,
    value: f64,
}

#[derive(Deserialize)]
struct Order {
    simulated_seconds: f64,
    seeks: u64,
    read_bytes: u64,
}

/// The results of really reading.
struct Read {
    wall: Duration,
    /// The disc's own time.
    busy: f64,
    requests: usize,
    seeks: usize,
}

pub(crate) fn add(report: &mut Report, places: &Places) -> Result<()> {
    let root = kept("start", &PACKAGES, |_| Ok(()))?;
    let job = |line: &str| job(line, &root, places);
    job(&format!("{}{START}", RECORD.replace("PROFILE", "start"))).run()?;
    let profile = fs::read_to_string(places.path("SCRATCH/start.order")).context("no profile was recorded")?;
    let files: Vec<_> = profile.lines().filter(|line| !line.starts_with('#')).collect();
    fs::write(places.path("SCRATCH/hash.order"), by_hash(&root)?)?;
    run(Command::new("cc").args(["-O2", "-shared", "-fPIC", PLUGIN, "-lm", "-o"]).arg(places.path("SCRATCH/disc.so")))?;

    let mut found = Vec::new();
    for layout in &LAYOUTS {
        let named = |line: &str| line.replace("NAME", layout.name);
        job(&named(&format!("{PACK}{}", layout.more))).run()?;
        let simulated: Simulated = job(&named(SIMULATE)).json()?;
        let read = read(&named("SCRATCH/NAME.sealift"), &simulated, &files, places)?;
        println!("   {}: {:.2} s", layout.name, read.wall.as_secs_f64());
        found.push((layout, simulated, read));
        places.remove(&[&named("SCRATCH/NAME.sealift")])?;
    }
    judge(report, &found, files.len())?;
    let costs = [("a start and some work", WORK), ("a start alone", START), ("nothing but reading", BARE)];
    let mut text =
        format!("Medians of {RECORDINGS}, in turn.\n\n| | seconds | recorded | ratio |\n| --- | --: | --: | --: |\n");
    for (name, line) in costs {
        let (plain, recorded) = recording(line, &root, places)?;
        let ratio = recorded.wall.as_secs_f64() / plain.wall.as_secs_f64();
        if line == WORK {
            report.at_most("recording: seconds of a command, to those without", ratio, 1.05, 3, "");
        }
        text.push_str(&format!("| {name} | {} | {} | {ratio:.3} |\n", seconds(plain.wall), seconds(recorded.wall)));
    }
    text.push_str(&format!("\n- `{RECORD}...`\n- `{WORK}`\n- `{START}`\n- `{BARE}`"));
    report.section("What recording costs", &text);
    Ok(())
}

fn job(line: &str, root: &Path, places: &Places) -> Job {
    Job::new(&line.replace("ROOT", &root.display().to_string()), places)
}

/// Returns a list of all files in the order of their contents' hashes, compared from the last byte on. In the order of the first bytes, chunks would
/// be too short, because pack chooses their ends by these.
pub(super) fn by_hash(root: &Path) -> Result<String> {
    let paths = output(Command::new("find").arg(root).args(["-xdev", "-type", "f", "-printf", "%P\\n"]))?;
    let mut hashed = Vec::new();
    for path in paths.lines() {
        let content = fs::read(root.join(path)).with_context(|| format!("cannot read {path}"))?;
        let mut hash = *blake3::hash(&content).as_bytes();
        hash.reverse();
        hashed.push((hash, path));
    }
    hashed.sort_unstable();
    Ok(hashed.into_iter().map(|(_, path)| format!("{path}\n")).collect())
}

/// Reads files through a mount of a bundle that is on a disc. The time includes opening the bundle.
fn read(bundle: &str, simulated: &Simulated, files: &[&str], places: &Places) -> Result<Read> {
    for word in ["SCRATCH/disc", "SCRATCH/mounted"] {
        renew(&places.path(word))?;
    }
    let mut disc = Command::new("nbdfuse");
    disc.arg("-r").arg(places.path("SCRATCH/disc/nbd")).args(["--command", "nbdkit", "-s", "--exit-with-parent"]);
    disc.arg(places.path("SCRATCH/disc.so")).arg(format!("file={}", places.resolve(bundle)));
    disc.arg(format!("log={}", places.resolve("SCRATCH/disc.log")));
    disc.args(simulated.of_device());
    let (shown, len) = (places.path("SCRATCH/disc/nbd"), fs::metadata(places.path(bundle))?.len());
    let disc = Mounted::start(&mut disc, places.path("SCRATCH/disc"), || {
        fs::metadata(&shown).is_ok_and(|file| file.len() == len)
    })?;
    let start = Instant::now();
    let mounted = Mounted::of_bundle(MOUNT, places.path("SCRATCH/mounted"), places)?;
    for file in files {
        fs::read(places.path("SCRATCH/mounted").join(file)).with_context(|| format!("cannot read {file}"))?;
    }
    let wall = start.elapsed();
    mounted.end()?;
    disc.end()?;
    let (busy, requests, seeks) = time_of_disc(&places.path("SCRATCH/disc.log"))?;
    Ok(Read { wall, busy, requests, seeks })
}

/// Returns the disc's time in seconds, and its numbers of requests and seeks, from its log.
pub(super) fn time_of_disc(log: &Path) -> Result<(f64, usize, usize)> {
    let log = fs::read_to_string(log).with_context(|| format!("cannot read {}", log.display()))?;
    let (mut busy, mut requests, mut seeks) = (0.0, 0, 0);
    for line in log.lines() {
        let mut words = line.split(' ').skip(2);
        let (time, moved) = words.next().zip(words.next()).with_context(|| format!("a log with {line}"))?;
        busy += time.parse::<f64>()? / 1000.0;
        requests += 1;
        seeks += usize::from(moved == "1");
    }
    Ok((busy, requests, seeks))
}

fn judge(report: &mut Report, found: &[(&Layout, Simulated, Read)], files: usize) -> Result<()> {
    let mut text = format!(
        "`{START}`: {files} files, read in the order of their first use, from the bundle of a Debian system on a DVD (`{SIMULATE}`), and really from such a disc of nbdkit, by nbdfuse and `sealift mount`, whose opening counts. A ratio is the time really taken to the simulated one.\n\n\
         | layout | simulated | seeks | read | really | ratio | the disc alone | ratio | requests | seeks |\n| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: |\n"
    );
    let mut times = Vec::new();
    for (layout, simulated, read) in found {
        let [own, .., sweep] = &simulated.orders[..] else { anyhow::bail!("simulate prints no orders") };
        let (simulated, really) = (own.simulated_seconds, read.wall.as_secs_f64());
        text.push_str(&format!(
            "| by {} | {simulated:.2} | {} | {} | {really:.2} | {:.2} | {:.2} | {:.2} | {} | {} |\n",
            layout.name,
            own.seeks,
            grouped(own.read_bytes),
            really / simulated,
            read.busy,
            read.busy / simulated,
            read.requests,
            read.seeks
        ));
        for (what, ratio) in [("really read", really / simulated), ("the disc alone", read.busy / simulated)] {
            report.verdict(
                format!("start from a disc, by {}: seconds, {what}, to the simulation", layout.name),
                format!("{ratio:.2}"),
                "from 0.75 to 1.25".into(),
                (0.75..=1.25).contains(&ratio),
            );
        }
        times.push((simulated, really, sweep.simulated_seconds));
    }
    let [profile, path, hash] = times[..] else { anyhow::bail!("three layouts were measured") };
    report.at_least(
        "start from a DVD, simulated: times as fast as files scattered by hash",
        hash.0 / profile.0,
        7.0,
        1,
        "",
    );
    report.at_least(
        "start from a DVD, simulated: times as fast as files by path, as without a profile",
        path.0 / profile.0,
        1.0,
        1,
        "",
    );
    report.at_least(
        "start from a disc, really: times as fast as files scattered by hash",
        hash.1 / profile.1,
        7.0,
        1,
        "",
    );
    report.at_least(
        "start from a disc, really: times as fast as files by path, as without a profile",
        path.1 / profile.1,
        1.0,
        1,
        "",
    );
    report.at_most("start from a DVD, simulated: seconds, to one sweep", profile.0 / profile.2, 1.3, 2, "");
    text.push_str(&format!(
        "\nThe {:.0} times are against files that are scattered by the hash of their contents, as in a store; against path order, in which a bundle \
         without a profile has them, it is {:.1} times.\n",
        hash.1 / profile.1,
        path.1 / profile.1
    ));
    report.section("A program's start from a disc", &text);
    Ok(())
}

/// Returns the time of a command without a recorder, and with one.
fn recording(line: &str, root: &Path, places: &Places) -> Result<(Usage, Usage)> {
    let recorded = format!("{}{line}", RECORD.replace("PROFILE", "again"));
    let jobs = [job(line, root, places), job(&recorded, root, places)];
    jobs[0].run()?;
    let mut usages = [Vec::new(), Vec::new()];
    for round in 0..RECORDINGS {
        for which in [round % 2, 1 - round % 2] {
            usages[which].push(jobs[which].run()?);
        }
    }
    Ok((median(&usages[0]), median(&usages[1])))
}
