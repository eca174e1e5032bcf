//! The command of `--then`, which is run once a bundle is installed.

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use sealift::Head;
use sealift_format::hex;
use serde::Serialize;

use super::failure::Failure;
use super::{file_limit, interrupt};

const SHELL: &str = "/bin/sh";

/// How the command ended.
#[derive(Debug)]
pub(crate) enum CommandEnd {
    /// With this exit status.
    Exited(i32),
    /// By this signal.
    Killed(i32),
    /// It could not be started.
    NotStarted(io::Error),
    /// It was not started, since a signal had requested a stop.
    Stopped,
}

/// The same in JSON.
#[derive(Serialize)]
pub(crate) struct CommandStats {
    exit_status: Option<i32>,
    signal: Option<i32>,
}

/// Runs a shell command line, which is told about the installed bundle by its environment alone: nothing from the bundle is among its words.
/// `target` is as the user wrote it. With `is_stdout_taken`, what the command prints goes to standard error.
pub(crate) fn run(line: &OsStr, target: &Path, head: &Head, is_stdout_taken: bool) -> CommandEnd {
    if interrupt::pending() {
        return CommandEnd::Stopped;
    }
    let root = head.root();
    let mut command = Command::new(SHELL);
    command.arg("-c").arg(line).stdin(Stdio::null());
    command.env("SEALIFT_NAME", &root.identity.name);
    command.env("SEALIFT_VERSION", root.identity.version.to_string());
    command.env("SEALIFT_TARGET", target);
    command.env("SEALIFT_DIGEST", hex(&root.contents.index_digest));
    match start(&mut command, is_stdout_taken) {
        Ok(end) => end,
        Err(error) => CommandEnd::NotStarted(error),
    }
}

fn start(command: &mut Command, is_stdout_taken: bool) -> io::Result<CommandEnd> {
    if is_stdout_taken {
        command.stdout(io::stderr().as_fd().try_clone_to_owned()?);
    }
    file_limit::lower();
    let status = interrupt::run(command)?;
    // One that did not exit was killed: nobody asked for stopped ones.
    Ok(status.code().map_or_else(|| CommandEnd::Killed(status.signal().unwrap_or(0)), CommandEnd::Exited))
}

impl CommandEnd {
    /// Returns what JSON says about the end.
    pub(crate) fn stats(&self) -> CommandStats {
        match *self {
            Self::Exited(status) => CommandStats { exit_status: Some(status), signal: None },
            Self::Killed(signal) => CommandStats { exit_status: None, signal: Some(signal) },
            Self::NotStarted(_) | Self::Stopped => CommandStats { exit_status: None, signal: None },
        }
    }

    /// Returns a failure unless the command succeeded.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let how = match self {
            Self::Exited(0) => return Ok(()),
            Self::Exited(status) => format!("ended with status {status}: repeat sealift's command to run it again"),
            Self::Killed(signal) => format!("was ended by signal {signal}: repeat sealift's command to run it again"),
            Self::NotStarted(error) => format!("could not be started: {SHELL}: {error}"),
            Self::Stopped => "was not run, since a signal had arrived: repeat sealift's command to run it".to_owned(),
        };
        Err(Failure::of_then(&format!("the bundle is installed; the command of --then {how}")))
    }
}
