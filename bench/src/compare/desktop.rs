//! A desktop's root file system: as of the last point release, and with later updates.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use xtask::shell::{remove, run, target_dir};

use crate::debian::{apt, connect, kept};

/// Large programs and libraries that often get security updates.
const PACKAGES: [&str; 8] = [
    "firefox-esr",
    "postgresql",
    "openjdk-17-jre-headless",
    "libreoffice-writer-nogui",
    "build-essential",
    "git",
    "imagemagick",
    "vim-nox",
];

/// Writes both roots.
pub(crate) fn write(old: &Path, new: &Path) -> Result<()> {
    let (point, updated) = roots()?;
    copy(&point, old)?;
    copy(&updated, new)
}

/// Returns the two roots: that of the point release, and the updated one.
pub(crate) fn roots() -> Result<(PathBuf, PathBuf)> {
    roots_with(["point-release", "updated"], &PACKAGES)
}

/// Returns two roots with these packages, which are kept under these names.
pub(super) fn roots_with([before, after]: [&str; 2], packages: &[&str]) -> Result<(PathBuf, PathBuf)> {
    let point = target_dir()?.join("kept").join(before);
    let updated = kept(after, packages, |root| {
        remove(&point)?;
        copy(root, &point)?;
        tidy(&point)?;
        connect(root)?;
        apt(root, &["dist-upgrade"])?;
        tidy(root)
    })?;
    Ok((point, updated))
}

/// Removes what a shipped system does not contain: apt's downloads, and the device nodes, which a commit cannot hold.
fn tidy(root: &Path) -> Result<()> {
    for folder in ["var/cache/apt", "var/lib/apt/lists", "dev"] {
        remove(&root.join(folder))?;
        fs::create_dir(root.join(folder))?;
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    run(Command::new("cp").args(["-a", "--reflink=auto"]).arg(from).arg(to))
}
