//! `sealift order record`: a profile of what a command reads.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Args, ValueHint};
use sealift::order::record::{Options, RECORDING, Scope, record_command, record_session};
use sealift::{Error, pack::Output};
use signal_hook::consts::SIGTERM;

use super::{OutputArgs, Remarks};
use crate::failure::Failure;
use crate::interrupt;
use crate::show::Show;

/// Record which files a command reads, in order
///
/// Runs COMMAND, and notes each regular file below --root when it is first opened, executed or read by the command or one of its descendants,
/// however briefly they live; the recording ends when COMMAND exits. Nothing else counts: not a file that is only written, not what another
/// process reads meanwhile, nor what a service reads on the command's behalf, nor what happens in a container, which has mounts of its own; use
/// --mount for these. The exit status is that of the command. COMMAND may write to standard output, so that -o must name a file.
///
/// SIGINT, SIGTERM and SIGHUP end the command, with SIGTERM, and keep what was recorded; the exit status is then 130, 143 or 129, unless the
/// command has one of its own.
///
/// Requires root (CAP_SYS_ADMIN), for fanotify. Without it, run the command on a bundle that is mounted with `sealift mount --record`, or trace it
/// and use `sealift order import strace`.
///
/// Of files over 1 MiB, records the ranges that are in the page cache when a file is closed and when the recording ends: what was read, what the
/// kernel read ahead, what others read, and what was there before, unless --drop-cache drops it. A file that is not there at all, since it was
/// read with O_DIRECT, is recorded whole.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  sealift order record -o editor.order -- editor --version
  sealift order record -o os.order --root os --drop-cache -- chroot os start
  sealift order record -o session.order --mount /")]
pub(crate) struct Record {
    /// The command and its arguments
    #[arg(value_name = "COMMAND", last = true, value_hint = ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
    /// Write paths relative to DIR, and ignore files outside it [default: DIR of --mount, else /]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    root: Option<PathBuf>,
    /// Record everything that is read on the file system that DIR is on, below --root: until the command ends, or without one until SIGINT, SIGTERM or
    /// SIGHUP
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    mount: Option<PathBuf>,
    /// Drop files over 1 MiB below --root from the page cache first, so that their ranges have only what is read
    ///
    /// Walks the tree, on the file system of --root, and writes first what is not yet on the disk. What running programs have mapped stays, and
    /// counts as read. Afterwards, what else uses these files has to read them again.
    #[arg(long)]
    drop_cache: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    show: Show,
}

impl Record {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let place = self.output.place()?;
        if place == Output::Stdout && !self.command.is_empty() {
            return Err(Failure::usage(
                "the command may write to standard output: name a file for the profile with -o",
            ));
        }
        // A recording that cannot be kept would be lost when the command has ended.
        place.check()?;
        let stop = Arc::new(AtomicBool::new(false));
        interrupt::serve_patiently({
            let stop = Arc::clone(&stop);
            move || stop.store(true, Ordering::Relaxed)
        });
        let options = Options {
            root: self.root.as_ref().or(self.mount.as_ref()).cloned().unwrap_or_else(|| PathBuf::from("/")),
            scope: self.mount.clone().map_or(Scope::Command, Scope::Mount),
            drop_cache: self.drop_cache,
        };
        let (status, recorded) = match &self.command[..] {
            [] if self.mount.is_none() => {
                return Err(Failure::usage("give the command to record after --, or a file system with --mount"));
            }
            [] => (None, record_session(&options, &stop).map_err(refused)?),
            [program, arguments @ ..] => {
                let mut command = Command::new(program);
                command.args(arguments);
                let (status, recorded) = record_command(command, &options, &stop).map_err(refused)?;
                (Some(status), recorded)
            }
        };
        let remarks = Remarks { cached: recorded.cached_files, ..Remarks::default() };
        self.output.write(&place, (&recorded.profile, remarks), (self.show, status.is_some()))?;
        match status {
            Some(status) if !status.success() => Err(Failure::of_command(number(status))),
            _ => Ok(()),
        }
    }
}

/// Says what recording takes, if it was not permitted.
fn refused(error: Error) -> Failure {
    match &error {
        Error::Io { doing, source, .. } if *doing == RECORDING && source.kind() == io::ErrorKind::PermissionDenied => {
            Failure::usage(format!(
                "{error}: recording requires root (CAP_SYS_ADMIN); without it, read a bundle through `sealift mount \
                 --record PROFILE`, or use `strace -f -y -e trace=open,openat,execve,mmap,read,pread64 -o LOG COMMAND` \
                 and `sealift order import strace LOG`"
            ))
        }
        _ => error.into(),
    }
}

/// Returns the exit status as a shell has it: 128 and the number of the signal that ended a command. One that was ended here has the number of the
/// signal that asked for it.
fn number(status: ExitStatus) -> u8 {
    if status.signal() == Some(SIGTERM) && interrupt::pending() {
        return interrupt::status();
    }
    let number = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    number.and_then(|number| u8::try_from(number).ok()).unwrap_or(u8::MAX)
}
