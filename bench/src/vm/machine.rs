//! The virtual machine: starts with a suite, and ends when the guest reports the result, or is killed.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::debian::Tools;

pub(super) struct Machine<'a> {
    tools: &'a Tools,
    image: PathBuf,
    log: PathBuf,
    limit: Duration,
    /// QEMU's options for memory and processors.
    pub(super) size: &'static [&'static str],
}

/// How a boot ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// The guest ran its suite, in which this many cases failed.
    Over { failed: u32 },
    /// It was killed on request.
    Killed,
}

impl<'a> Machine<'a> {
    /// Its disks and the kernel's messages are in `work`; a suite is aborted after `limit`.
    pub(super) fn new(tools: &'a Tools, image: &Path, work: &Path, limit: Duration) -> Self {
        Self { tools, image: image.to_owned(), log: work.join("kernel.log"), limit, size: &["-m", "768"] }
    }

    /// Returns the file with the kernel's messages.
    pub(super) fn log(&self) -> &Path {
        &self.log
    }

    /// Boots it with these words on the kernel's command line and these options of QEMU's -drive, and passes each line of the guest's output to
    /// `stop`. At the first line for which that returns true, it is killed, as in a power loss.
    pub(super) fn boot(&self, words: &str, drives: &[String], mut stop: impl FnMut(&str) -> bool) -> Result<Ended> {
        let mut qemu = self.qemu(words, drives).spawn().context("cannot start QEMU")?;
        let ended = watch(&mut qemu, self.limit, &mut stop);
        // The process is never left running.
        let _ = qemu.kill();
        qemu.wait()?;
        ended.with_context(|| format!("the boot with {words}; what the kernel said is in {}", self.log.display()))
    }

    fn qemu(&self, words: &str, drives: &[String]) -> std::process::Command {
        let mut qemu = self.tools.command("usr/bin/qemu-system-x86_64");
        for folder in ["usr/share/seabios", "usr/share/qemu", "usr/lib/ipxe/qemu"] {
            qemu.arg("-L").arg(self.tools.root.join(folder));
        }
        qemu.args(["-accel", "tcg", "-cpu", "max", "-nodefaults", "-no-user-config", "-no-reboot"]);
        qemu.args(self.size);
        qemu.args(["-display", "none", "-serial"]).arg(format!("file:{}", self.log.display()));
        qemu.args(["-serial", "stdio", "-kernel"]).arg(&self.tools.kernel).arg("-initrd").arg(&self.image);
        qemu.arg("-append").arg(format!("console=ttyS0 panic=-1 loglevel=4 random.trust_cpu=1 {words}"));
        for (number, drive) in drives.iter().enumerate() {
            qemu.arg("-drive").arg(format!("{drive},if=none,id=disk{number},format=raw"));
            qemu.arg("-device").arg(format!("virtio-blk-pci,drive=disk{number}"));
        }
        qemu.stdin(Stdio::null()).stdout(Stdio::piped());
        qemu
    }
}

fn watch(qemu: &mut Child, limit: Duration, stop: &mut dyn FnMut(&str) -> bool) -> Result<Ended> {
    let (sender, lines) = channel();
    let said = BufReader::new(qemu.stdout.take().context("QEMU's output is ours")?);
    // The output ends with QEMU, which closes it.
    std::thread::spawn(move || said.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let end = Instant::now() + limit;
    let mut failed = None;
    loop {
        let line = match lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => bail!("the guest is not done after {} s", limit.as_secs()),
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let line = line.trim_end();
        if stop(line) {
            return Ok(Ended::Killed);
        }
        if let Some(rest) = line.strip_prefix("vm: over, ") {
            failed = rest.split(' ').next().and_then(|number| number.parse().ok());
        }
    }
    failed.map(|failed| Ended::Over { failed }).context("the guest died")
}
