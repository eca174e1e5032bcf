//! Killed at any moment: the output is old or whole, and the same command makes it whole and leaves nothing.

use std::os::unix::process::ExitStatusExt as _;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::findings::Findings;
use super::ground::Ground;
use super::trees;
use super::trial::Trial;
use super::verbs::{Disturbed, VERBS, Verb, prepare};
use crate::random::Random;

/// What is killed, and how many runs are killed and run again.
const CASES: [(Verb, u32); 6] = [
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
];

/// Each so manieth run is given up by `clean` after it was killed, and the others are run again.
const CLEANED: u32 = 4;

pub(crate) fn run() -> Result<()> {
    let ground = Ground::new("kills")?;
    let mut random = Random::new()?;
    let known = prepare(&ground, |dir| trees::real(dir, &mut Random::fixed()))?;
    let mut findings = Findings::default();
    for (verb, kills) in &CASES {
        kill_often(&ground, &Disturbed { verb, known: &known }, *kills, &mut random, &mut findings)?;
    }
    findings.finish()?;
    ground.remove()
}

/// Kills a command at random moments, until so many runs were killed and run again.
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
            // For a look at it afterwards.
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

/// Returns how long a run takes that nobody disturbs.
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

/// Kills one run, and goes on from there. Returns whether it was still running.
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
