//! Creates whole Debian systems with debootstrap, and changes them with their own package manager.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use xtask::debian::mirror;
use xtask::shell::{output, put_program, remove, run, target_dir};

/// The suite of kept systems.
pub(crate) const SUITE: &str = "bookworm";

/// Returns a minimal system with more packages, as of the last point release, that `finish` has completed. It is created once and kept, since that
/// takes minutes, and takes packages only from that release.
pub(crate) fn kept(name: &str, packages: &[&str], finish: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let folder = target_dir()?.join("kept");
    let (kept, unfinished) = (folder.join(name), folder.join("unfinished"));
    if !kept.exists() {
        remove(&unfinished)?;
        bootstrap(SUITE, &[], &unfinished)?;
        if !packages.is_empty() {
            apt(&unfinished, &["update"])?;
            apt(&unfinished, &[&["install"], packages].concat())?;
        }
        finish(&unfinished)?;
        fs::rename(&unfinished, &kept).with_context(|| format!("cannot rename {}", unfinished.display()))?;
    }
    Ok(kept)
}

/// Creates a minimal fresh system of a suite in `to`, with more packages.
pub(crate) fn bootstrap(suite: &str, packages: &[&str], to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    let log = fs::File::create(to.with_extension("log"))?;
    let mut command = Command::new("debootstrap");
    command.arg("--variant=minbase");
    if !packages.is_empty() {
        command.arg(format!("--include={}", packages.join(",")));
    }
    run(command.arg(suite).arg(to).arg(mirror()?).stdout(log))?;
    fs::copy("/etc/resolv.conf", to.join("etc/resolv.conf"))?;
    // Keeps packages from starting services.
    put_program(&to.join("usr/sbin/policy-rc.d"), "#!/bin/sh\nexit 101\n")
}

/// Lets a system use this machine's package sources, including security updates, which debootstrap does not know.
pub(crate) fn connect(root: &Path) -> Result<()> {
    for sources in ["etc/apt/sources.list", "etc/apt/sources.list.d/debian.sources"] {
        let here = Path::new("/").join(sources);
        if here.exists() {
            fs::copy(here, root.join(sources))?;
        }
    }
    apt(root, &["update"])
}

/// Runs apt-get in a system, in a process namespace of its own; some packages read /proc when they are installed.
pub(crate) fn apt(root: &Path, words: &[&str]) -> Result<()> {
    let mut command = Command::new("unshare");
    command.args(["--fork", "--pid", "--kill-child"]).arg(format!("--mount-proc={}", root.join("proc").display()));
    command.arg("chroot").arg(root).args(["apt-get", "-qq", "--yes", "--no-install-recommends"]).args(words);
    command.env("DEBIAN_FRONTEND", "noninteractive").env("LC_ALL", "C.UTF-8");
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    output(&mut command).map(|_| ())
}
