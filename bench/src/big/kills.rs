//! Kills runs at random moments: the output must be old or complete, and a repeated command must complete it and leave nothing behind.

use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use xtask::shell::run as run_tool;

use super::findings::Findings;
use super::ground::Ground;
use super::trees;
use super::trial::Trial;
use super::verbs::{Disturbed, VERBS, Verb, prepare};
use crate::random::Random;

/// The commands to kill, and how many killed runs each is tested with.
const CASES: [(Verb, u32); 8] = [
    (VERBS[0], 200),
    (Verb { name: "pack over an old bundle", start: "start-bundle", ..VERBS[0] }, 50),
    (VERBS[1], 200),
    (
        Verb {
            name: "unpack from a pipe",
            line: "sealift unpack - work/out/target TRUST --quiet",
            piped: true,
            ..VERBS[1]
        },
        50,
    ),
    (VERBS[2], 200),
    (
        Verb {
            name: "update from a pipe",
            line: "sealift unpack - work/out/target --update --delete TRUST --quiet",
            piped: true,
            ..VERBS[2]
        },
        50,
    ),
    (
        Verb {
            name: "unpack what recipes make",
            line: "sealift unpack made.sealift work/out/target TRUST --quiet",
            ..VERBS[1]
        },
        100,
    ),
    (
        Verb {
            name: "update by a delta with recipes",
            line: "sealift unpack made-delta.sealift work/out/target --update --delete TRUST --quiet",
            ..VERBS[2]
        },
        100,
    ),
];

/// Bundles of the new tree with recipes.
#[rustfmt::skip] // a table
const MADE: [&str; 2] = [
    "sealift pack new -o made.sealift --name os --bundle-version 2 --key key --chunk-size 64KiB --quiet --recipes",
    "sealift pack new -o made-delta.sealift --name os --bundle-version 2 --key key --chunk-size 64KiB --quiet --recipes --base old.sealift --trust signers",
];

/// One in this many killed runs is discarded with `clean`; the others are repeated.
const CLEANED: u32 = 4;

pub(crate) fn run() -> Result<()> {
    let ground = Ground::new("kills")?;
    let mut random = Random::new()?;
    let known = prepare(&ground, |dir| {
        trees::real(dir, &mut Random::fixed())?;
        // Archives and compressed files that recipes make.
        let archive = [dir.join("some.tar"), dir.join("some.zip")];
        run_tool(Command::new("tar").arg("-cf").arg(&archive[0]).arg("-C").arg(dir).args(["lib/json", "lib/html"]))?;
        run_tool(Command::new("python3").args(["-m", "zipfile", "-c"]).arg(&archive[1]).arg(dir.join("lib/xml")))
    })?;
    for line in MADE {
        ground.run(line)?;
    }
    let mut findings = Findings::default();
    for (verb, kills) in &CASES {
        kill_often(&ground, &Disturbed { verb, known: &known }, *kills, &mut random, &mut findings)?;
    }
    findings.finish()?;
    ground.remove()
}

/// Kills a command at random moments, until enough runs were killed and repeated.
pub(crate) fn kill_often(
    ground: &Ground,
    trial: &dyn Trial,
    kills: u32,
    random: &mut Random,
    findings: &mut Findings,
) -> Result<()> {
    let duration = measure(ground, trial)?;
    let (mut again, mut cleaned, mut late, mut number) = (0, 0, 0, 0);
    while again < kills {
        number += 1;
        ensure!(number <= 10 * kills, "{}: most runs end before they are killed", trial.name());
        let (moment, cleans) = (random.moment(duration), trial.can_clean() && number % CLEANED == 0);
        let before = findings.count();
        match kill_once(ground, trial, moment, cleans, findings)? {
            false => late += 1,
            true if cleans => cleaned += 1,
            true => again += 1,
        }
        if findings.count() > before {
            // Kept for inspection.
            ground.copy("work", &format!("kept-{before}"))?;
        }
    }
    let seconds = duration.as_secs_f64();
    println!(
        "   {}: killed within {seconds:.2} s and run again: {again}; and cleaned: {cleaned}; ended before: {late}",
        trial.name()
    );
    Ok(())
}

/// Returns the duration of an undisturbed run.
fn measure(ground: &Ground, trial: &dyn Trial) -> Result<Duration> {
    let mut durations = Vec::new();
    for _ in 0..3 {
        ground.begin(trial.start())?;
        let start = Instant::now();
        let mut child = ground.start(trial.line(), trial.is_from_pipe())?;
        ensure!(child.program.wait()?.success(), "{} fails undisturbed", trial.line());
        durations.push(start.elapsed());
    }
    durations.sort();
    Ok(durations[1])
}

/// Kills one run, and resumes it. Returns whether it was still running.
fn kill_once(
    ground: &Ground,
    trial: &dyn Trial,
    moment: Duration,
    cleans: bool,
    findings: &mut Findings,
) -> Result<bool> {
    ground.begin(trial.start())?;
    let mut child = ground.start(trial.line(), trial.is_from_pipe())?;
    std::thread::sleep(moment);
    child.program.kill()?;
    let hit = child.program.wait()?.signal().is_some();
    drop(child);
    let label = format!("{}, killed after {moment:?}", trial.name());
    if let Some(problem) = trial.not_whole(ground, !hit)? {
        findings.add(&format!("{label}: {problem}"))?;
    }
    if let Some(problem) = trial.after(ground, cleans)? {
        let then = if cleans { "cleaned" } else { "run again" };
        findings.add(&format!("{label}, {then}: {problem}"))?;
    }
    Ok(hit)
}
