//! What is mounted: programs that serve it, mount points, and caches.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Pid, Signal, kill_process};

use super::job::Job;
use super::places::Places;

/// How long what is served may take to appear.
const PATIENCE: Duration = Duration::from_secs(20);

/// A program that serves a mount. It ends when this value is dropped.
pub(super) struct Mounted {
    child: Child,
    mountpoint: PathBuf,
}

impl Mounted {
    /// Starts a program, and waits until it serves something.
    pub(super) fn start(command: &mut Command, mountpoint: PathBuf, serves: impl Fn() -> bool) -> Result<Self> {
        let program = command.get_program().display().to_string();
        let child = command.stdin(Stdio::null()).spawn().with_context(|| format!("cannot start {program}"))?;
        let mounted = Self { child, mountpoint };
        let since = Instant::now();
        while !serves() {
            ensure!(since.elapsed() < PATIENCE, "{program} shows nothing");
            thread::sleep(Duration::from_millis(20));
        }
        Ok(mounted)
    }

    /// Runs a `sealift mount` command with `--json`, and returns once it reports that the bundle is mounted.
    pub(super) fn of_bundle(line: &str, mountpoint: PathBuf, places: &Places) -> Result<Self> {
        let mut command = Job::new(line, places).command()?;
        let mut mounted = Self::start(command.stdout(Stdio::piped()), mountpoint, || true)?;
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

/// Mount points, unmounted on drop.
pub(super) struct Mounts(pub(super) Vec<PathBuf>);

impl Drop for Mounts {
    fn drop(&mut self) {
        for path in self.0.iter().rev() {
            let _ = unmount(path, UnmountFlags::empty());
        }
    }
}

/// Drops the page cache and what is cached of file systems.
pub(super) fn drop_caches() -> Result<()> {
    rustix::fs::sync();
    fs::write("/proc/sys/vm/drop_caches", "3").context("cannot drop caches")
}
