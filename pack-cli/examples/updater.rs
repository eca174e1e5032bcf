//! The engine of a graphical updater: a worker thread updates a target, this thread draws, and Enter cancels.
//!
//! ```text
//! updater BUNDLE TARGET ALLOWED_SIGNERS STATE
//! ```
//!
//! Ctrl-C ends the process at once, which is just as safe: the next run resumes.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use sealift::trust::{Guard, TrustOptions};
use sealift::unpack::{UnpackStats, unpack};
use sealift::{Error, Input, Limits, Phase, Progress, Snapshot};
use sealift::{InstallOptions, TreeOptions};

fn main() -> ExitCode {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [bundle, target, signers, state] = &arguments[..] else {
        eprintln!("usage: updater BUNDLE TARGET ALLOWED_SIGNERS STATE");
        return ExitCode::from(2);
    };
    let trust = TrustOptions { signers: Some(signers.clone()), state: Some(state.clone()), ..TrustOptions::default() };
    match run(bundle.clone(), target.clone(), trust) {
        Ok(stats) => {
            let deleted = stats.deleted.files + stats.deleted.symlinks + stats.deleted.others;
            println!("updated: {} files new, {} kept, {deleted} deleted", stats.files, stats.kept_files);
            ExitCode::SUCCESS
        }
        Err(Error::Cancelled) => {
            println!("stopped: the target is as it was, and the next run goes on from here");
            ExitCode::from(130)
        }
        Err(error) => {
            // A window would choose an icon by the word, and show the sentence.
            println!("{}: {error}", error.word());
            ExitCode::from(error.exit_status())
        }
    }
}

/// Updates on a separate thread, and draws until it ends.
fn run(bundle: PathBuf, target: PathBuf, trust: TrustOptions) -> Result<UnpackStats, Error> {
    let progress = Arc::new(Progress::default());
    let worker = thread::spawn({
        let progress = Arc::clone(&progress);
        move || update(&bundle, &target, &trust, &progress)
    });
    thread::spawn({
        let progress = Arc::clone(&progress);
        move || {
            let mut line = String::new();
            if std::io::stdin().read_line(&mut line).is_ok_and(|len| len > 0) {
                progress.cancel(); // the button
            }
        }
    });
    while !worker.is_finished() {
        draw(&progress.snapshot(), progress.is_cancelled());
        thread::sleep(Duration::from_millis(40));
    }
    eprint!("\r\x1b[K");
    worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The whole update: trust, content, and the device's state.
fn update(bundle: &Path, target: &Path, trust: &TrustOptions, progress: &Progress) -> Result<UnpackStats, Error> {
    let guard = Guard::load(trust)?;
    let jobs = thread::available_parallelism().map_or(1, usize::from);
    let options = InstallOptions {
        jobs,
        tree: TreeOptions { update: true, delete: true, ..TreeOptions::default() },
        ..InstallOptions::default()
    };
    unpack(guard.admit(Input::open(bundle)?, Limits::default())?, target, &options, progress)
}

/// Prints one line: the phase, its progress, and how many files needed no work.
fn draw(now: &Snapshot, stopping: bool) {
    const WIDTH: usize = 30;
    let what = match now.phase {
        _ if stopping => "Stopping",
        Phase::Hashing => "Looking at what is there",
        Phase::Copying | Phase::Unpacking | Phase::Moving | Phase::Sealing => "Installing",
        Phase::Syncing => "Waiting for the disk",
        _ => "Starting",
    };
    let bar = match now.fraction() {
        Some(done) => {
            let filled =
                (0..WIDTH).take_while(|cell| (f64::from(u32::try_from(*cell).unwrap_or(0)) + 0.5) / 30.0 < done);
            let filled = filled.count();
            format!("[{}{}] {:3.0} %", "#".repeat(filled), ".".repeat(WIDTH - filled), done * 100.0)
        }
        None => String::new(),
    };
    eprint!("\r\x1b[K{what:<24} {bar} {} kept  (Enter stops)", now.files_kept);
    let _ = std::io::stderr().flush(); // without a terminal, a failure does not matter
}
