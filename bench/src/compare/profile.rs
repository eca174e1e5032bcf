//! Profiles our program: which system calls and which functions take its time.

use std::fs;

use anyhow::{Context, Result};

use super::contenders::{Contender, PACK, UNPACK, VERIFY_DEEP};
use super::job::Job;
use super::places::Places;
use super::report::{Report, seconds};
use crate::tree;

const CALLS: usize = 12;
const FUNCTIONS: usize = 20;

pub(crate) fn add(report: &mut Report, places: &Places) -> Result<()> {
    let mut text = String::new();
    for contender in [&PACK, &UNPACK, &VERIFY_DEEP] {
        println!("   {}", contender.name);
        text.push_str(&format!("### {}\n\n", contender.name));
        let usage = under("", contender, places)?;
        let (user, system) = (seconds(usage.user), seconds(usage.system));
        text.push_str(&format!("{} s: {user} s user, {system} s system.\n\n", seconds(usage.wall)));
        text.push_str(&fenced(&system_calls(contender, places)?));
        text.push_str(&fenced(
            &functions(contender, places).unwrap_or_else(|error| format!("no perf here: {error:#}")),
        ));
    }
    places.remove(&["SCRATCH/new"])?;
    report.section("Where the rest of our time goes", &text);
    Ok(())
}

/// Runs our command under an observing program.
fn under(watcher: &str, contender: &Contender, places: &Places) -> Result<super::job::Usage> {
    places.remove(contender.makes.as_slice())?;
    tree::read_all(&places.tree)?;
    Job::new(format!("{watcher} {}", contender.line).trim_start(), places).run()
}

/// Counts system calls exactly; the times are those of a run that strace slows down.
fn system_calls(contender: &Contender, places: &Places) -> Result<String> {
    under("strace -c -f -o SCRATCH/strace", contender, places)?;
    let table = fs::read_to_string(places.path("SCRATCH/strace")).context("cannot read the counts")?;
    let lines: Vec<_> = table.lines().take(2 + CALLS).collect();
    Ok(format!("strace -c -f\n{}", lines.join("\n")))
}

fn functions(contender: &Contender, places: &Places) -> Result<String> {
    under("perf record -q -F 1999 -o SCRATCH/perf", contender, places)?;
    let report =
        Job::new("perf report -q --stdio --no-inline --percent-limit 0.5 --sort dso,symbol -i SCRATCH/perf", places);
    let table = report.output()?;
    let rows = table.lines().map(str::trim_end).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let rows: Vec<_> = rows.take(FUNCTIONS).collect();
    Ok(format!("perf record -F 1999\n{}", rows.join("\n")))
}

fn fenced(text: &str) -> String {
    format!("```text\n{text}\n```\n\n")
}
