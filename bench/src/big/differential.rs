//! Compares the readers on mutated bundles. COUNT, SEED and FIRST choose the bundles; those on which the readers differ are kept.

use std::process::Command;

use anyhow::Result;
use xtask::shell::{run as run_command, target_dir};
use xtask::tools;

pub(crate) fn run() -> Result<()> {
    tools::ensure_python()?;
    let mut command = Command::new("cargo");
    command.args(["run", "--locked", "--quiet", "--release", "--package", "sealift-tests", "--bin", "differential"]);
    run_command(command.arg(tools::python()?).arg(target_dir()?.join("differential")))
}
