//! Programs that serve a mount.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};

use super::places::Places;

/// A program that serves a mount. It ends when this value is dropped.
pub(super) struct Mounted {
    child: Child,
    mountpoint: PathBuf,
}

impl Mounted {
    pub(super) fn start(command: &mut Command, mountpoint: PathBuf) -> Result<Self> {
        let child = command.spawn().with_context(|| format!("cannot start {:?}", command.get_program()))?;
        Ok(Self { child, mountpoint })
    }

    /// Runs a `sealift mount` command with `--json`, and returns once it reports that the bundle is mounted.
    pub(super) fn of_bundle(line: &str, mountpoint: PathBuf, places: &Places) -> Result<Self> {
        let words: Vec<String> = line.split_whitespace().map(|word| places.resolve(word)).collect();
        let mut command = Command::new(&words[0]);
        let mut mounted =
            Self::start(command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::piped()), mountpoint)?;
        let said = mounted.child.stdout.take().context("it was piped")?;
        let mut line = String::new();
        BufReader::new(said).read_line(&mut line)?;
        ensure!(line.starts_with('{'), "sealift mount did not say that it is mounted");
        Ok(mounted)
    }

    pub(super) fn end(mut self) -> Result<()> {
        self.unmount();
        self.child.wait()?;
        Ok(())
    }

    /// These programs end when their file system is unmounted.
    fn unmount(&self) {
        let unmounted = Command::new("fusermount3").args(["-u", "-q"]).arg(&self.mountpoint).status();
        if !unmounted.is_ok_and(|status| status.success())
            && let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
        {
            let _ = kill_process(pid, Signal::TERM);
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.unmount();
            let _ = self.child.wait();
        }
    }
}
