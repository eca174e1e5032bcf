//! `cargo xtask dist`: creates the release files in target/dist. These are, for each machine, a static program, an archive and a Debian package, the
//! last two with the plugin for nbdkit.

mod archive;
mod deb;
mod licences;
pub mod machine;
mod stage;

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::packages::{self, Chore};
use crate::shell::{bench, output, renew, run, target_dir};
use crate::tools;
use crate::web;
use machine::{MACHINES, Machine};
use stage::Shared;

/// The parameters of all files.
pub struct Release {
    pub version: &'static str,
    /// The modification time of all files, in seconds since 1970: that of the last commit, unless `SOURCE_DATE_EPOCH` is set.
    pub epoch: String,
    /// Where cargo builds, and where trees are staged.
    pub target: PathBuf,
    /// The folder of the release files, which contains nothing else.
    pub out: PathBuf,
}

pub fn main(mut args: lexopt::Parser) -> Result<()> {
    match args.next()? {
        None => make(Chore::Dist).map(|_| ()),
        Some(lexopt::Arg::Long("check")) => run(bench().arg("dist")),
        Some(other) => Err(other.unexpected().into()),
    }
}

/// Creates the release files; the chore says whether they are checked afterwards.
pub fn make(chore: Chore) -> Result<Release> {
    ensure!(env::consts::ARCH == MACHINES[0].name, "the programs are built on {}", MACHINES[0].name);
    packages::ensure(chore)?;
    for machine in MACHINES {
        machine.targets().into_iter().try_for_each(tools::ensure_target)?;
    }
    // The programs embed the page.
    web::build()?;
    let release = Release::below(target_dir()?)?;
    release.make()?;
    Ok(release)
}

impl Release {
    /// Returns a release in the folder `dist` of a build folder.
    fn below(target: PathBuf) -> Result<Self> {
        let last_commit = || output(Command::new("git").args(["log", "-1", "--format=%ct"]));
        let epoch = env::var("SOURCE_DATE_EPOCH").or_else(|_| last_commit())?;
        Ok(Self { version: env!("CARGO_PKG_VERSION"), epoch, out: target.join("dist"), target })
    }

    /// Creates every file anew.
    pub fn make(&self) -> Result<()> {
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
    pub fn name(&self, machine: &Machine) -> String {
        format!("sealift-{}-{}-linux", self.version, machine.name)
    }

    pub fn deb(&self, machine: &Machine) -> String {
        format!("sealift_{}_{}.deb", self.version, machine.debian)
    }

    /// Creates an empty folder to stage a tree in.
    pub fn work(&self, name: &str) -> Result<PathBuf> {
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
