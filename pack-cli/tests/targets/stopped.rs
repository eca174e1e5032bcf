//! A run that is stopped half-way is resumed by the next one, and an update that has begun to change its target completes.

use std::fs;
use std::io::{Read, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use sealift::audit::{AuditOptions, audit};
use sealift::unpack::{UnpackStats, unpack};
use sealift::verify::{Depth, verify};
use sealift::{Error, Input, Limits, Phase, Progress};
use sealift::{InstallOptions, TreeOptions};
use sealift_desk::{noise, said};

use crate::installed::{Installed, anyone, anyones};

/// A bundle that comes through a pipe, and a caller who requests a stop after half of it was read.
struct Half {
    bytes: Vec<u8>,
    at: usize,
    progress: Arc<Progress>,
}

impl Read for Half {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.at > self.bytes.len() / 2 {
            self.progress.cancel();
        }
        let len = into.len().min(4096).min(self.bytes.len() - self.at);
        into[..len].copy_from_slice(&self.bytes[self.at..self.at + len]);
        self.at += len;
        Ok(len)
    }
}

fn half(desk: &Installed, version: u64) -> (Input, Arc<Progress>) {
    let progress = Arc::new(Progress::default());
    let bytes = fs::read(desk.path(&format!("{version}.sealift"))).unwrap();
    (Input::pipe("pipe", Box::new(Half { bytes, at: 0, progress: Arc::clone(&progress) })), progress)
}

fn stop(desk: &Installed, version: u64, options: &InstallOptions) -> Result<UnpackStats, Error> {
    let (input, progress) = half(desk, version);
    unpack(anyones(input)?, &desk.path("target"), options, &progress)
}

/// Creates versions 7 and 8 of a tree, between which all content differs.
fn large() -> Installed {
    let desk = Installed::new();
    for version in [7, 8] {
        for file in 0..40 {
            desk.write(&format!("tree/{file}"), noise(version * 100 + file, 200_000));
        }
        desk.pack(version);
    }
    desk
}

#[test]
fn an_unpacking_goes_on() {
    let desk = large();
    let stopped = stop(&desk, 8, &InstallOptions::default());
    assert!(matches!(stopped, Err(Error::Cancelled)), "{stopped:?}");
    assert!(!desk.path("target").exists());
    let stats = desk.take(8, "target", &InstallOptions::default(), &Progress::default()).unwrap();
    assert!(stats.resumed_files > 0, "{stats:?}");
    desk.assert_same("target", "tree");
    assert!(!desk.path(".target.sealift-partial").exists());
    // The files that the stopped run built are recorded too.
    assert_eq!(desk.update(8, "target").unwrap().hashed_files, 0);
}

#[test]
fn an_update_goes_on() {
    let desk = large();
    desk.unpack(7, "target");
    desk.unpack(7, "before");
    let options =
        InstallOptions { tree: TreeOptions { update: true, ..TreeOptions::default() }, ..InstallOptions::default() };
    let stopped = stop(&desk, 8, &options);
    assert!(matches!(stopped, Err(Error::Cancelled)), "{stopped:?}");
    desk.assert_same("target", "before");
    let stats = desk.replace(8, "target").unwrap();
    assert!(stats.resumed_files > 0, "{stats:?}");
    desk.assert_same("target", "tree");
    assert!(!desk.path(".target.sealift-partial").exists());
}

#[test]
fn a_signal_stops_the_command_line_and_it_goes_on() {
    let desk = large();
    let bytes = fs::read(desk.path("8.sealift")).unwrap();
    let mut child = desk.command("unpack - target --allow-unsigned").stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&bytes[..bytes.len() / 2]).unwrap();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    // It continues to read until it notices the signal.
    for piece in bytes[bytes.len() / 2..].chunks(50_000) {
        thread::sleep(Duration::from_millis(10));
        if stdin.write_all(piece).is_err() {
            break;
        }
    }
    drop(stdin);
    let done = child.wait_with_output().unwrap();
    assert_eq!((done.status.code(), done.status.signal()), (Some(128 + 2), None), "{}", said(&done));
    assert!(
        said(&done).contains("repeat the command to resume, or discard it: sealift clean target"),
        "{}",
        said(&done)
    );
    desk.says("unpack 8.sealift target --allow-unsigned", "from the interrupted run");
    desk.assert_same("target", "tree");
}

#[test]
fn an_update_that_changes_its_target_ends_well() {
    let desk = large();
    desk.unpack(7, "target");
    let progress = Arc::new(Progress::default());
    let update = thread::spawn({
        let (progress, bundle, target) = (Arc::clone(&progress), desk.path("8.sealift"), desk.path("target"));
        move || {
            let tree = TreeOptions { update: true, ..TreeOptions::default() };
            let options = InstallOptions { jobs: 1, tree, ..InstallOptions::default() };
            unpack(anyones(Input::open(&bundle)?)?, &target, &options, &progress)
        }
    });
    let journal = desk.path(".target.sealift-partial/journal");
    while !journal.exists() && !update.is_finished() {
        thread::yield_now();
    }
    progress.cancel();
    update.join().unwrap().unwrap();
    desk.assert_same("target", "tree");
}

#[test]
fn more_signals_do_not_end_an_update_that_changes_its_target() {
    let desk = large();
    desk.unpack(7, "target");
    // -D: the process that is started is the program itself.
    let delayed = ["-D", "-e", "trace=renameat,renameat2", "-e", "inject=renameat,renameat2:delay_enter=20000"];
    let Some(mut strace) = desk.strace(&delayed, "unpack 8.sealift target --allow-unsigned --update") else { return };
    let mut child = strace.spawn().unwrap();
    let journal = desk.path(".target.sealift-partial/journal");
    while !journal.exists() && child.try_wait().unwrap().is_none() {
        thread::sleep(Duration::from_millis(1));
    }
    for _ in 0..3 {
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        thread::sleep(Duration::from_millis(50));
    }
    let done = child.wait_with_output().unwrap();
    let said = said(&done);
    assert_eq!(said.matches("It would have files of both versions").count(), 2, "{said}");
    assert_eq!(done.status.code(), Some(0), "{said}");
    desk.assert_same("target", "tree");
    assert!(!desk.path(".target.sealift-partial").exists());
}

#[test]
fn verify_and_audit_stop() {
    let desk = Installed::new();
    desk.write("tree/noise", noise(1, 8_000_000));
    fs::File::create_new(desk.path("tree/large")).unwrap().set_len(1 << 30).unwrap();
    desk.pack(8);
    let (input, progress) = half(&desk, 8);
    let stopped = verify(input.begin(Limits::default()).unwrap(), Depth::Objects, 2, &progress);
    assert!(matches!(stopped, Err(Error::Cancelled)));

    desk.unpack(8, "target");
    let progress = Arc::new(Progress::default());
    let auditing = thread::spawn({
        let (progress, target) = (Arc::clone(&progress), desk.path("target"));
        move || audit(&target, None, &AuditOptions::default(), Limits::default(), &anyone(), &progress)
    });
    while progress.snapshot().phase != Phase::Hashing && !auditing.is_finished() {
        thread::yield_now();
    }
    progress.cancel();
    assert!(matches!(auditing.join().unwrap(), Err(Error::Cancelled)));
}
