//! The line of JSON that describes what was installed.

use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;

use super::human;
use super::show::json_line;
use super::trust_args::Judge;

#[derive(Serialize)]
struct Line<'a, S: Serialize> {
    dry_run: bool,
    name: &'a str,
    version: u64,
    signers: Vec<String>,
    #[serde(flatten)]
    stats: &'a S,
    seconds: f64,
}

/// Prints the statistics for the kind of target.
pub(crate) fn print(
    out: &mut dyn Write,
    stats: &impl Serialize,
    judge: &Judge,
    dry_run: bool,
    elapsed: Duration,
) -> io::Result<()> {
    let (name, version) = judge.identity();
    json_line(out, &Line { dry_run, name, version, signers: judge.signers(), stats, seconds: human::seconds(elapsed) })
}
