//! Our programs, built as they are released.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use xtask::shell::{run, target_dir};

/// Returns our program: the one that `SEALIFT_BIN` names (an older build, for example), else the one built from this tree now.
pub(crate) fn sealift() -> Result<PathBuf> {
    if let Some(program) = env::var_os("SEALIFT_BIN") {
        return Ok(program.into());
    }
    run(Command::new("cargo").args(["build", "--locked", "--release", "--package", "sealift"]))?;
    Ok(target_dir()?.join("release/sealift"))
}

/// Returns our plugin for nbdkit.
pub(crate) fn nbdkit_plugin() -> Result<PathBuf> {
    run(Command::new("cargo").args(["build", "--locked", "--release", "--package", "nbdkit-sealift-plugin"]))?;
    Ok(target_dir()?.join("release/libnbdkit_sealift_plugin.so"))
}

/// Returns our program with composefs, built in a folder of its own because it links more libraries.
pub(crate) fn sealift_with_composefs() -> Result<PathBuf> {
    let dir = target_dir()?.join("composefs");
    let mut command = Command::new("cargo");
    command.args(["build", "--locked", "--release", "--package", "sealift", "--features", "composefs", "--target-dir"]);
    run(command.arg(&dir))?;
    Ok(dir.join("release/sealift"))
}
