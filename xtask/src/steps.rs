//! Chores that are lists of named steps: each can be run alone, and says how long it took.

use std::process::Command;
use std::time::Instant;

use anyhow::{Result, bail};

use crate::shell::run as run_command;
use crate::tools;

pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) action: Action,
}

pub(crate) enum Action {
    /// Lines for `sh`, as a person would type them at the root.
    Lines(&'static [&'static str]),
    /// What it sees to, and how.
    Call(&'static str, fn() -> Result<()>),
}

/// What a command line asks for.
pub(crate) enum Chosen<'a> {
    /// The steps were listed.
    Nothing,
    Some(Vec<&'a Step>),
    All,
}

/// Reads the names of steps, or `--list`.
pub(crate) fn choose<'a>(chore: &str, steps: &'a [Step], mut args: lexopt::Parser) -> Result<Chosen<'a>> {
    let mut chosen = Vec::new();
    while let Some(arg) = args.next()? {
        match arg {
            lexopt::Arg::Long("list") => {
                steps.iter().for_each(|step| println!("{:12} {}", step.name, step.action.describe()));
                return Ok(Chosen::Nothing);
            }
            lexopt::Arg::Value(name) => match steps.iter().find(|step| name == step.name) {
                Some(step) => chosen.push(step),
                None => bail!("no step {}; see cargo xtask {chore} --list", name.display()),
            },
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(if chosen.is_empty() { Chosen::All } else { Chosen::Some(chosen) })
}

/// Runs one step after the other, up to the first that fails.
pub(crate) fn run(chore: &str, steps: &[&Step]) -> Result<()> {
    for (number, step) in (1..).zip(steps) {
        println!("{chore}: {number}/{} {}: {}", steps.len(), step.name, step.action.describe());
        let start = Instant::now();
        let result = step.action.run();
        let seconds = start.elapsed().as_secs_f64();
        if let Err(error) = result {
            bail!(
                "step {} failed after {seconds:.1} s: {error:#}\nrun it alone: cargo xtask {chore} {}",
                step.name,
                step.name
            );
        }
        println!("{chore}: {} holds, {seconds:.1} s", step.name);
    }
    Ok(())
}

impl Action {
    fn describe(&self) -> String {
        match self {
            Self::Lines(lines) => lines.join(" && "),
            Self::Call(what, _) => (*what).to_owned(),
        }
    }

    fn run(&self) -> Result<()> {
        match self {
            Self::Lines(lines) => lines.iter().try_for_each(|line| run_line(line)),
            Self::Call(_, function) => function(),
        }
    }
}

/// Runs one line with its output passed through. Tests find the second reader's Python by `SEALIFT_PYTHON`.
fn run_line(line: &str) -> Result<()> {
    run_command(Command::new("sh").args(["-eu", "-c", line]).env("SEALIFT_PYTHON", tools::python()?))
}
