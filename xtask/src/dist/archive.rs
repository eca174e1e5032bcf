//! The archive for any Linux: unpack it over /usr/local.

use std::fs;
use std::process::Command;

use anyhow::Result;

use super::machine::Built;
use super::stage::{self, Folders, Shared};
use super::{Machine, Release};
use crate::shell::{put, run};

pub(super) fn make(release: &Release, machine: &Machine, built: &Built, shared: &Shared) -> Result<()> {
    let name = release.name(machine);
    let work = release.work(&format!("{}-archive", machine.name))?;
    let tree = work.join(&name);
    shared.install(&tree, built, &Folders { zsh: "zsh/site-functions/_sealift", plugins: "lib/nbdkit/plugins" })?;
    for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
        put(&tree.join("share/doc/sealift").join(licence), fs::read(licence)?)?;
    }
    put(&tree.join("share/doc/sealift/third-party.txt"), &shared.third_party)?;
    stage::settle(&work)?;
    run(Command::new("tar")
        .args(["--create", "--format=ustar", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"])
        .arg(format!("--mtime=@{}", release.epoch))
        // Every system has gzip, even a small one.
        .args(["--use-compress-program", "gzip -9n", "--file"])
        .arg(release.out.join(format!("{name}.tar.gz")))
        .arg("--directory")
        .arg(&work)
        .arg(&name))
}
