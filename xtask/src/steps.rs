//! Chores that are lists of named steps: each can be run alone, and its duration is printed.

use std::ffi::OsStr;
use std::process::Command;
use std::thread;
use std::time::Instant;

use anyhow::{Result, bail};

use crate::failures;
use crate::packages::Chore;
use crate::programs::Programs;
use crate::skips;
use crate::tools;

pub struct Step {
    pub name: &'static str,
    pub action: Action,
}

pub enum Action {
    /// Lines for `sh`, as a person would type them at the root.
    Lines(&'static [&'static str]),
    /// A description of the step, and the function for it.
    Call(&'static str, fn() -> Result<()>),
    /// The same, for a step that later steps depend on.
    Prepare(&'static str, fn() -> Result<()>),
    /// Another action, while the last step before that is none of these still runs and leaves a core. Several run one after the other.
    Beside(&'static Action),
}

/// Returns the steps that a command line names, or all; nothing if it has them listed.
pub fn choose(chore: Chore, steps: &[Step], mut args: lexopt::Parser) -> Result<Option<Vec<&Step>>> {
    let mut chosen = Vec::new();
    while let Some(arg) = args.next()? {
        match arg {
            lexopt::Arg::Long("list") => {
                steps.iter().for_each(|step| println!("{:12} {}", step.name, step.action.describe()));
                return Ok(None);
            }
            lexopt::Arg::Value(name) => match steps.iter().find(|step| name == step.name) {
                Some(step) => chosen.push(step),
                None => bail!("no step {}; see cargo xtask {} --list", name.display(), chore.name()),
            },
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(Some(if chosen.is_empty() { steps.iter().collect() } else { chosen }))
}

/// A step that ran.
struct Done {
    step: &'static str,
    seconds: f64,
    /// What it printed if it failed, as far as it was run by a shell.
    failure: Option<String>,
}

/// Runs one step after the other. After a failed step the others still run, unless they depend on it. At the end stands how long each step took, what
/// tests skipped, what failed in each step, and the list of failed steps.
pub fn run(chore: Chore, steps: &[&Step]) -> Result<()> {
    let name = chore.name();
    skips::begin()?;
    let mut done: Vec<Done> = Vec::new();
    for group in steps.chunk_by(|_, next| matches!(next.action, Action::Beside(..))) {
        let [first, beside @ ..] = group else { continue };
        let of_first = thread::scope(|scope| {
            let run = scope.spawn(|| run_step(chore, first));
            done.extend(beside.iter().map(|step| run_step(chore, step)));
            let failure = || Some("a panic; see above".to_owned());
            run.join().unwrap_or_else(|_| Done { step: first.name, seconds: 0.0, failure: failure() })
        });
        let is_prepared = of_first.failure.is_none() || !matches!(first.action, Action::Prepare(..));
        done.push(of_first);
        if !is_prepared {
            println!("{name}: the steps behind it are not run");
            break;
        }
    }
    let took: Vec<_> = done.iter().map(|done| format!("{} {:.1}", done.step, done.seconds)).collect();
    println!("{name}: seconds: {}", took.join(", "));
    let skipped = skips::report(name);
    let failed = || done.iter().filter_map(|done| Some((done.step, done.failure.as_ref()?)));
    for (step, output) in failed() {
        failures::excerpt(output).iter().for_each(|line| println!("{name}: {step}: {line}"));
    }
    let names: Vec<_> = failed().map(|(step, _)| step).collect();
    if !names.is_empty() {
        bail!("{} of {} steps failed: {}", names.len(), steps.len(), names.join(", "));
    }
    skipped
}

/// Runs a step, and prints its result.
fn run_step(chore: Chore, step: &Step) -> Done {
    let (chore_name, name) = (chore.name(), step.name);
    println!("{chore_name}: {name}: {}", step.action.describe());
    let start = Instant::now();
    let mut output = String::new();
    let result = step.action.run(chore, &mut output);
    let seconds = start.elapsed().as_secs_f64();
    let failure = match result {
        Ok(()) => {
            println!("{chore_name}: {name} holds, {seconds:.1} s");
            None
        }
        Err(error) => {
            println!(
                "{chore_name}: step {name} FAILED after {seconds:.1} s: {error:#}\nrun it alone: cargo xtask {chore_name} {name}"
            );
            Some(if output.is_empty() { format!("{error:#}") } else { output })
        }
    };
    Done { step: name, seconds, failure }
}

impl Action {
    fn describe(&self) -> String {
        match self {
            Self::Lines(lines) => lines.join(" && "),
            Self::Call(what, _) | Self::Prepare(what, _) => (*what).to_owned(),
            Self::Beside(action) => action.describe(),
        }
    }

    fn run(&self, chore: Chore, output: &mut String) -> Result<()> {
        match self {
            Self::Lines(lines) => {
                let programs = Programs::of(chore)?;
                let path = programs.path()?;
                lines.iter().try_for_each(|line| run_line(line, &path, output))
            }
            Self::Call(_, function) | Self::Prepare(_, function) => function(),
            Self::Beside(action) => action.run(chore, output),
        }
    }
}

/// Runs one command line with its output passed through, and with no other programs than those in `path`. Tests find the downloaded tools by
/// `SEALIFT_PYTHON`, `SEALIFT_MOTO`, `SEALIFT_MKCOMPOSEFS` and `SEALIFT_UDEVADM`, and report skipped checks in the file that `SEALIFT_SKIPPED` names.
fn run_line(line: &str, path: &OsStr, output: &mut String) -> Result<()> {
    // Whoever starts a run that outlives a terminal often ignores SIGHUP, which programs inherit, and tests send it.
    let mut shell = Command::new("env");
    shell.args(["--default-signal", "sh", "-eu", "-c", line]).env("PATH", path).env(skips::VARIABLE, skips::file()?);
    // Some tests wait for servers that do not answer: others run meanwhile.
    shell.env("RUST_TEST_THREADS", (2 * thread::available_parallelism()?.get()).to_string());
    let tools = [
        ("SEALIFT_PYTHON", tools::python()?),
        ("SEALIFT_MOTO", tools::moto()?),
        ("SEALIFT_MKCOMPOSEFS", tools::mkcomposefs()?),
        ("SEALIFT_UDEVADM", tools::udevadm()?),
    ];
    failures::run(shell.envs(tools.into_iter().filter(|(_, program)| program.exists())), output)
}
