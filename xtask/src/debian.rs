//! Whole Debian systems, made by debootstrap and changed by their own package manager.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::shell::{output, run};

pub(crate) const SUITE: &str = "bookworm";

/// Makes a fresh system in `to`, of the least packages: as of the last point release, which is all that it takes packages from.
pub(crate) fn bootstrap(to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    let log = fs::File::create(to.with_extension("log"))?;
    run(Command::new("debootstrap").arg("--variant=minbase").arg(SUITE).arg(to).stdout(log))?;
    fs::copy("/etc/resolv.conf", to.join("etc/resolv.conf"))?;
    // No package's service is to start.
    fs::write(to.join("usr/sbin/policy-rc.d"), "#!/bin/sh\nexit 101\n")?;
    run(Command::new("chmod").arg("0755").arg(to.join("usr/sbin/policy-rc.d")))
}

/// Lets a system take packages from where this machine has them, security among them, which debootstrap does not know.
pub(crate) fn connect(root: &Path) -> Result<()> {
    for sources in ["etc/apt/sources.list", "etc/apt/sources.list.d/debian.sources"] {
        let here = Path::new("/").join(sources);
        if here.exists() {
            fs::copy(here, root.join(sources))?;
        }
    }
    apt(root, &["update"])
}

/// Runs apt-get in a system, which sees no process of another; some packages look into /proc when they are installed.
pub(crate) fn apt(root: &Path, words: &[&str]) -> Result<()> {
    let mut command = Command::new("unshare");
    command.args(["--fork", "--pid", "--kill-child"]).arg(format!("--mount-proc={}", root.join("proc").display()));
    command.arg("chroot").arg(root).args(["apt-get", "-qq", "--yes", "--no-install-recommends"]).args(words);
    command.env("DEBIAN_FRONTEND", "noninteractive").env("LC_ALL", "C.UTF-8");
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    output(&mut command).map(|_| ())
}
