//! Programs, how they ended, and what they printed.

use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Runs a program to its end, and returns its [`outcome`].
///
/// # Panics
///
/// Panics if it cannot be started.
#[track_caller]
pub fn told(command: &mut Command) -> (Option<i32>, String) {
    outcome(&command.output().unwrap_or_else(|error| panic!("{command:?}: {error}")))
}

/// Returns the exit status of a program, `None` if a signal ended it, and everything that it printed.
#[must_use]
pub fn outcome(done: &Output) -> (Option<i32>, String) {
    (done.status.code(), said(done))
}

/// Runs a program that must succeed, and returns its standard output.
///
/// # Panics
///
/// Panics with what it printed if it did not.
#[track_caller]
pub fn out(command: &mut Command) -> String {
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(done.status.success(), "{command:?}: {}: {}", done.status, said(&done));
    text(&done.stdout)
}

/// Runs a program that must succeed, and returns the most memory that it had (`VmHWM`, proc_pid_status(5)), in bytes: `getrusage` would count what
/// this process had when it started the other one.
///
/// # Panics
///
/// Panics if it does not start, or fails.
#[track_caller]
pub fn peak_of(command: &mut Command) -> u64 {
    let mut child = command.stdout(Stdio::null()).spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let mut peak = 0;
    let status = loop {
        let told = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let most = told.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
        peak = most.map_or(peak, |most: u64| most << 10);
        match child.try_wait().expect("it is a child") {
            Some(status) => break status,
            None => sleep(Duration::from_millis(2)),
        }
    };
    assert!(status.success(), "{command:?}");
    peak
}

/// Starts a program, and kills it after this time.
///
/// # Panics
///
/// Panics if it cannot be started.
#[track_caller]
pub fn kill_after(time: Duration, command: &mut Command) {
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    sleep(time);
    child.kill().expect("it is our child");
    child.wait().expect("it ends");
}

/// Returns everything that a program printed: standard output first.
#[must_use]
pub fn said(done: &Output) -> String {
    text(&[&done.stdout[..], &done.stderr].concat())
}

/// Returns text, even if it is damaged.
#[must_use]
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
