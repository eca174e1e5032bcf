//! `cargo xtask dist`: creates the release files in target/dist. These are, for each machine, a static program, an archive and a Debian package, the
//! last two with the plugin for nbdkit.

mod archive;
mod check;
mod deb;
mod licences;
mod machine;
mod stage;

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::packages::{self, Chore};
use crate::shell::{output, renew, target_dir};
use crate::tools;
use crate::web;
use machine::{MACHINES, Machine};
use stage::Shared;

/// The parameters of all files.
struct Release {
    version: &'static str,
    /// The modification time of all files, in seconds since 1970: that of the last commit, unless `SOURCE_DATE_EPOCH` is set.
    epoch: String,
    /// Where cargo builds, and where trees are staged.
    target: PathBuf,
    /// The folder of the release files, which contains nothing else.
    out: PathBuf,
}

pub(crate) fn main(mut args: lexopt::Parser) -> Result<()> {
    let mut check = false;
    while let Some(arg) = args.next()? {
        match arg {
            lexopt::Arg::Long("check") => check = true,
            other => return Err(other.unexpected().into()),
        }
    }
    make(check)
}

/// Creates the release files, and checks them if `check` is set.
pub(crate) fn make(check: bool) -> Result<()> {
    ensure!(env::consts::ARCH == MACHINES[0].name, "the programs are built on {}", MACHINES[0].name);
    packages::ensure(if check { Chore::DistCheck } else { Chore::Dist })?;
    for machine in MACHINES {
        machine.targets().into_iter().try_for_each(tools::ensure_target)?;
    }
    // The programs embed the page.
    web::build()?;
    let release = Release::below(target_dir()?)?;
    release.make()?;
    if check { check::all(&release) } else { Ok(()) }
}

impl Release {
    /// Returns a release in the folder `dist` of a build folder.
    fn below(target: PathBuf) -> Result<Self> {
        let last_commit = || output(Command::new("git").args(["log", "-1", "--format=%ct"]));
        let epoch = env::var("SOURCE_DATE_EPOCH").or_else(|_| last_commit())?;
        Ok(Self { version: env!("CARGO_PKG_VERSION"), epoch, out: target.join("dist"), target })
    }

    /// Creates every file anew.
    fn make(&self) -> Result<()> {
        let start = Instant::now();
        renew(&self.out)?;
        let all = MACHINES.iter().map(|machine| machine.build(self)).collect::<Result<Vec<_>>>()?;
        let shared = Shared::by(&all[0].program)?;
        for (machine, built) in MACHINES.iter().zip(&all) {
            let naked = self.out.join(self.name(machine));
            fs::copy(&built.program, &naked).with_context(|| format!("cannot write {}", naked.display()))?;
            archive::make(self, machine, built, &shared)?;
            deb::make(self, machine, built, &shared)?;
        }
        let names = self.files()?;
        let sums = output(Command::new("sha256sum").args(&names).current_dir(&self.out))?;
        fs::write(self.out.join("SHA256SUMS"), sums + "\n").context("cannot write SHA256SUMS")?;
        for name in names {
            println!("dist: {name}: {} bytes", fs::metadata(self.out.join(&name))?.len());
        }
        println!("dist: made in {:.1} s: {}", start.elapsed().as_secs_f64(), self.out.display());
        Ok(())
    }

    /// `sealift-1.0.0-x86_64-linux`.
    fn name(&self, machine: &Machine) -> String {
        format!("sealift-{}-{}-linux", self.version, machine.name)
    }

    fn deb(&self, machine: &Machine) -> String {
        format!("sealift_{}_{}.deb", self.version, machine.debian)
    }

    /// Creates an empty folder to stage a tree in.
    fn work(&self, name: &str) -> Result<PathBuf> {
        let folder = self.target.join("dist-work").join(name);
        renew(&folder)?;
        Ok(folder)
    }

    /// Returns the names of the release files, sorted.
    fn files(&self) -> Result<Vec<String>> {
        let entries = fs::read_dir(&self.out)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        let mut names = entries.collect::<Result<Vec<_>>>()?;
        names.sort();
        Ok(names)
    }
}
