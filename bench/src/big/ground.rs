//! The working folder of a step, below the target folder, with a key and our program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use xtask::shell::{output, remove, run, target_dir};

use crate::products;

pub(crate) struct Ground {
    dir: PathBuf,
    sealift: PathBuf,
}

impl Ground {
    /// Creates the folder anew, and removes the findings that the last run kept there.
    pub(crate) fn new(name: &str) -> Result<Self> {
        let dir = target_dir()?.join("big").join(name);
        unmount_below(&dir)?;
        remove(&dir)?;
        fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        let ground = Self { dir, sealift: products::sealift()? };
        ground.run("sealift key generate --quiet -o key")?;
        let public = fs::read_to_string(ground.path("key.pub"))?;
        fs::write(ground.path("signers"), format!("* namespaces=\"sealift\" {public}"))?;
        fs::create_dir(ground.path("tmp"))?;
        Ok(ground)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Returns a command as a person would type it in the folder. `TRUST` stands for the options that make our key a trusted one.
    pub(crate) fn command(&self, line: &str) -> Command {
        let line = line.replace("TRUST", "--trust signers --state work/state");
        let mut words = line.split_whitespace().map(|word| match word {
            "sealift" => self.sealift.clone().into_os_string(),
            _ => word.into(),
        });
        let mut command = Command::new(words.next().expect("a line has words"));
        command.args(words).current_dir(&self.dir).stdin(Stdio::null());
        command.env("SOURCE_DATE_EPOCH", "1700000000").env("TMPDIR", self.path("tmp")).env("LC_ALL", "C.UTF-8");
        command
    }

    /// Runs a command line, which must succeed.
    pub(crate) fn run(&self, line: &str) -> Result<()> {
        self.printed_by(line).map(|_| ())
    }

    /// Starts a command line, with `new.sealift` as its input through a pipe if `piped`.
    pub(crate) fn start(&self, line: &str, piped: bool) -> Result<Running> {
        let mut command = self.command(line);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut feeder = None;
        if piped {
            let mut cat = self.command("cat new.sealift").stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
            command.stdin(cat.stdout.take().context("it is piped")?);
            feeder = Some(cat);
        }
        let program = command.spawn().with_context(|| format!("cannot start {line}"))?;
        // Our ends of the pipes are closed with the command.
        Ok(Running { program, feeder })
    }

    /// Runs a command line, and returns what it prints.
    pub(crate) fn printed_by(&self, line: &str) -> Result<String> {
        output(&mut self.command(line)).with_context(|| format!("in {}: {line}", self.dir.display()))
    }

    /// Copies `from` to `to`, replacing it.
    pub(crate) fn copy(&self, from: &str, to: &str) -> Result<()> {
        remove(&self.path(to))?;
        self.run(&format!("cp -a --reflink=auto {from} {to}"))
    }

    /// Copies `start` to `work`, replacing it.
    pub(crate) fn begin(&self, start: &str) -> Result<()> {
        self.copy(start, "work")?;
        self.adopt()
    }

    /// Adopts an installed tree that was copied to `work`, since its record belongs to the directory that it was copied from.
    pub(crate) fn adopt(&self) -> Result<()> {
        if !self.path("work/out/.target.sealift-state").exists() {
            return Ok(());
        }
        let line = "sealift unpack old.sealift work/out/target --update --adopt --yes TRUST --quiet";
        let done = self.command(line).output()?;
        ensure!(done.status.success(), "{line} fails: {}", String::from_utf8_lossy(&done.stderr));
        Ok(())
    }

    /// Removes the folder after a successful run.
    pub(crate) fn remove(self) -> Result<()> {
        unmount_below(&self.dir)?;
        remove(&self.dir)
    }
}

/// A running program, and the program that writes to its pipe.
pub(crate) struct Running {
    pub(crate) program: Child,
    feeder: Option<Child>,
}

impl Running {
    /// Waits until it ends successfully.
    pub(crate) fn finish(mut self) -> Result<()> {
        let said = self.program.stderr.take().map(std::io::read_to_string).transpose()?.unwrap_or_default();
        let status = self.program.wait()?;
        ensure!(status.success(), "it ends with {status}: {}", said.trim());
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(feeder) = &mut self.feeder {
            // This program ends by itself once its reader is gone; it only has to be reaped.
            let _ = feeder.kill();
            let _ = feeder.wait();
        }
    }
}

/// Returns the differences that `rsync` finds between two trees; nothing if content and all metadata are equal.
pub(crate) fn difference(a: &Path, b: &Path) -> Result<Option<String>> {
    for tree in [a, b] {
        ensure!(tree.is_dir(), "{} is no directory", tree.display());
    }
    let mut command = Command::new("rsync");
    command.args(["-aHAXnci", "--modify-window=-1", "--delete"]);
    // xfs shows each ACL a second time, under a name of its own.
    command.arg("--filter=-x trusted.SGI_ACL_*").arg(a.join("")).arg(b.join(""));
    let text = output(&mut command)?;
    let lines: Vec<_> = text.lines().take(4).collect();
    Ok(if lines.is_empty() { None } else { Some(lines.join("; ")) })
}

/// Returns the names in a folder, sorted.
pub(crate) fn names(dir: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// Unmounts the file systems that a killed run left.
fn unmount_below(dir: &Path) -> Result<()> {
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let below = |line: &&str| line.split(' ').nth(1).is_some_and(|at| Path::new(at).starts_with(dir));
    let mut points: Vec<_> = mounts.lines().filter(below).filter_map(|line| line.split(' ').nth(1)).collect();
    points.reverse();
    for point in points {
        if run(Command::new("umount").arg(point)).is_err() {
            bail!("{point} is still in use");
        }
    }
    Ok(())
}
