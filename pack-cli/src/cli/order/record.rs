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
use sealift::{Error, Output};
use signal_hook::consts::SIGTERM;

use super::{OutputArgs, Remarks};
use crate::failure::Failure;
use crate::interrupt;
use crate::show::Show;

/// Record which files a command reads, in order
///
/// Runs COMMAND, and notes each regular file below --root when the command or one of its descendants, however short-lived, first opens,
/// executes or reads it; the recording ends when COMMAND exits. Does not record files that are only written. Does not record what other
/// processes read, even services that act on the command's behalf, or what is read in a container, which has its own mounts; use --mount for
/// these. The exit status is that of the command. COMMAND may write to standard output, so -o must name a file.
///
/// On SIGINT, SIGTERM or SIGHUP, sends SIGTERM to the command and keeps what was recorded; the exit status is then 130, 143 or 129, unless
/// the command exits with a status of its own.
///
/// Requires root (CAP_SYS_ADMIN), for fanotify. Without it, run the command on a bundle that is mounted with `sealift mount --record`, or
/// trace it and use `sealift order import strace`.
///
/// For files over 1 MiB, records the ranges that are in the page cache when the file is closed and when the recording ends. These include
/// what the kernel read ahead, what other processes read and, without --drop-cache, what was cached before. A file with no cached pages, such
/// as one read with O_DIRECT, is recorded whole.
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
    /// Record what all processes read on the file system of DIR, below --root, until COMMAND ends, or without COMMAND until SIGINT, SIGTERM or
    /// SIGHUP
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    mount: Option<PathBuf>,
    /// First drop files over 1 MiB below --root from the page cache, so that their ranges contain only what is read during the recording
    ///
    /// Flushes the file system of --root to the disk, and walks the tree on it. Pages that running programs have mapped stay cached, and
    /// count as read. Other programs that use these files have to read them from the disk again.
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
        // Checked before the command runs, since a profile that cannot be written would be lost.
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
        self.output.write(&place, &recorded.profile, remarks, self.show, status.is_some())?;
        match status {
            Some(status) if !status.success() => Err(Failure::of_command(number(status))),
            _ => Ok(()),
        }
    }
}

/// Adds what recording requires, if it was not permitted.
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

/// Returns the exit status as in a shell: if a signal ended the command, 128 plus its number. If sealift ended it after a signal, the
/// number of that signal counts.
fn number(status: ExitStatus) -> u8 {
    if status.signal() == Some(SIGTERM) && interrupt::pending() {
        return interrupt::status();
    }
    let number = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    number.and_then(|number| u8::try_from(number).ok()).unwrap_or(u8::MAX)
}
