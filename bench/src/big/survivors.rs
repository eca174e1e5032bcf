//! Disables each rejection of the second reader in turn, and prints those that no vector notices.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use xtask::shell::run as run_command;
use xtask::tools;

pub(crate) fn run() -> Result<()> {
    tools::ensure_python()?;
    let folder = Path::new("spec/vectors");
    let names = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut vectors = names.map(|name| Ok(name?.path())).collect::<Result<Vec<_>>>()?;
    vectors.retain(|path| path.extension().is_some_and(|end| end == "vec"));
    vectors.sort();
    run_command(Command::new(tools::python()?).arg("tests/reference/survivors.py").args(vectors))
}
