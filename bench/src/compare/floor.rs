//! Lower bounds on this machine, measured by the bench of that name.

use std::process::Command;

use anyhow::Result;
use xtask::shell::output;

use super::places::Places;
use super::report::Report;

pub(crate) fn add(report: &mut Report, runs: usize, places: &Places) -> Result<()> {
    let mut bench = Command::new("cargo");
    bench.args(["bench", "--quiet", "--locked", "--package", "sealift", "--bench", "floor", "--"]);
    bench.arg(&places.tree).arg(places.path("SCRATCH/new")).arg(runs.to_string());
    report.section("What the machine allows", &output(&mut bench)?);
    Ok(())
}
