//! An updater: makes a tree match a bundle, draws its progress, and stops on Ctrl-C. The next run goes on from there.
//!
//! ```text
//! updater BUNDLE TARGET ALLOWED_SIGNERS STATE
//! ```
//!
//! BUNDLE is a file or a pipe, such as /dev/stdin. The library is built without any of its features for this.

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use sealift::trust::{Guard, TrustOptions};
use sealift::unpack::{UnpackStats, unpack};
use sealift::{Class, Error, Input, InstallOptions, Limits, Progress, TreeOptions};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

fn main() -> ExitCode {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let (Ok(paths), Ok(mut signals)) = (<[PathBuf; 4]>::try_from(arguments), Signals::new([SIGINT, SIGTERM])) else {
        eprintln!("usage: updater BUNDLE TARGET ALLOWED_SIGNERS STATE");
        return ExitCode::from(2);
    };
    let (progress, handle) = (Progress::default(), signals.handle());
    let updated = thread::scope(|scope| {
        scope.spawn(|| signals.forever().for_each(|_| progress.cancel()));
        let worker = scope.spawn(|| update(paths, &progress));
        while !worker.is_finished() {
            let now = progress.snapshot();
            let percent = now.fraction().map_or(String::new(), |done| format!(" {:.0} %", done * 100.0));
            let phase = if progress.is_cancelled() { "stopping" } else { now.phase.word() };
            eprint!("\r\x1b[K{phase}{percent}, {} files kept", now.files_kept);
            thread::sleep(Duration::from_millis(40));
        }
        eprint!("\r\x1b[K");
        handle.close();
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    match updated {
        Ok(stats) => {
            let deleted = stats.deleted.files + stats.deleted.symlinks + stats.deleted.others;
            println!("updated: {} files new, {} kept, {deleted} deleted", stats.files, stats.kept_files);
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("{}: {error}; {}", error.word(), advice(&error));
            ExitCode::from(if error.class() == Class::Cancelled { 130 } else { error.exit_status() })
        }
    }
}

/// The whole update: trust, content, and the device's state.
fn update([bundle, target, signers, state]: [PathBuf; 4], progress: &Progress) -> Result<UnpackStats, Error> {
    let guard = Guard::load(&TrustOptions { signers: Some(signers), state: Some(state), ..TrustOptions::default() })?;
    let tree = TreeOptions { update: true, delete: true, ..TreeOptions::default() };
    let jobs = thread::available_parallelism().map_or(1, usize::from);
    let options = InstallOptions { tree, jobs, ..InstallOptions::default() };
    unpack(guard.admit(Input::open(&bundle)?, Limits::default())?, &target, &options, progress)
}

/// What the user of a device can do, who knows nothing of bundles.
fn advice(error: &Error) -> &'static str {
    match error.class() {
        Class::Damaged if error.kind().is_some() => "copy the update again",
        Class::Damaged => "install the update once more to repair what is there",
        Class::Refused => "this device does not accept this update",
        Class::BaseMissing => "get the full update",
        Class::DiskFull => "free some space, and repeat the update",
        Class::Cancelled => "the next run goes on from here",
        Class::Busy => "try again later",
        _ => "ask for help",
    }
}
