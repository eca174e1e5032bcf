//! Small file systems that fill up or lose power during a run.

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::fs::{FallocateFlags, fallocate};
use xtask::shell::remove;

use super::findings::Findings;
use super::ground::Ground;
use super::trees;
use super::trial::Trial;
use super::verbs::{Disturbed, VERBS, prepare};
use crate::random::Random;

pub(crate) struct Disk {
    pub(crate) name: &'static str,
    mebibytes: u64,
    make: &'static str,
    /// Whether its power can be cut.
    pub(crate) can_stop: bool,
}

/// Each has the smallest size that its file system supports.
pub(crate) const DISKS: [Disk; 3] = [
    Disk { name: "ext4", mebibytes: 192, make: "mkfs.ext4 -q", can_stop: true },
    Disk { name: "btrfs", mebibytes: 256, make: "mkfs.btrfs -q", can_stop: false },
    Disk { name: "xfs", mebibytes: 320, make: "mkfs.xfs -q", can_stop: true },
];
const ROUNDS: u32 = 12;
/// Room for every run, and little more.
const ROOM_BYTES: u64 = 48 << 20;

pub(crate) fn run() -> Result<()> {
    let findings = &mut Findings::default();
    for disk in &DISKS {
        let ground = Ground::new("disks")?;
        let known = prepare(&ground, |dir| {
            trees::small(dir, &mut Random::fixed())?;
            // Incompressible data, so that a bundle needs room as well.
            for number in 0..16 {
                fs::write(dir.join(format!("noise{number:02}")), Random::fixed().bytes((1 << 20) + number))?;
            }
            Ok(())
        })?;
        make(&ground, disk)?;
        let mut random = Random::new()?;
        for verb in &VERBS {
            disturb(&ground, disk, &Disturbed { verb, known: &known }, ROUNDS, &mut random, findings)?;
        }
        ground.remove()?;
    }
    findings.finish()
}

/// Fills the disk during a command, again and again, and then cuts the power.
pub(crate) fn disturb(
    ground: &Ground,
    disk: &Disk,
    trial: &dyn Trial,
    rounds: u32,
    random: &mut Random,
    findings: &mut Findings,
) -> Result<()> {
    let duration = measure(ground, trial)?;
    let (mut full, mut gone) = (0, 0);
    for _ in 0..rounds {
        full += u32::from(fill_up(ground, disk, trial, random.moment(duration), findings)?);
    }
    for _ in 0..if disk.can_stop { rounds } else { 0 } {
        gone += u32::from(pull_the_plug(ground, disk, trial, random.moment(duration), findings)?);
    }
    println!("   {} on {}: ended by a full disk {full} times, by one that went away {gone}", trial.name(), disk.name);
    Ok(())
}

pub(crate) fn make(ground: &Ground, disk: &Disk) -> Result<()> {
    ground.run(&format!("truncate -s {}M image", disk.mebibytes))?;
    ground.run(&format!("{} image", disk.make))?;
    fs::create_dir_all(ground.path("work"))?;
    ground.run("mount -o loop image work")
}

/// Prepares the disk: it contains what a run starts from, and has little more free space than the run needs.
pub(crate) fn start(ground: &Ground, trial: &dyn Trial) -> Result<()> {
    for name in ["out", "state", "ballast"] {
        remove(&ground.path("work").join(name))?;
    }
    ground.run(&format!("cp -a {0}/out {0}/state work", trial.start()))?;
    ground.adopt()?;
    ground.run("sync -f work")?;
    let room = rustix::fs::statvfs(ground.path("work"))?;
    let free = room.f_bavail * room.f_frsize;
    let ballast = File::create(ground.path("work/ballast"))?;
    fallocate(&ballast, FallocateFlags::empty(), 0, free.saturating_sub(ROOM_BYTES).max(4096))?;
    Ok(())
}

fn measure(ground: &Ground, trial: &dyn Trial) -> Result<Duration> {
    start(ground, trial)?;
    let begin = Instant::now();
    ground.run(trial.line())?;
    Ok(begin.elapsed())
}

/// Fills the disk during a run. Returns whether that ended the run.
fn fill_up(ground: &Ground, disk: &Disk, trial: &dyn Trial, moment: Duration, findings: &mut Findings) -> Result<bool> {
    let label = format!("{}, {} full after {moment:?}", trial.name(), disk.name);
    start(ground, trial)?;
    let done = AtomicBool::new(false);
    let (code, said) = std::thread::scope(|scope| {
        let fill = scope.spawn(|| fill(&ground.path("work/ballast"), moment, &done));
        let ended = run_line(ground, trial.line());
        done.store(true, Ordering::Relaxed);
        let filled = fill.join().expect("it does not panic");
        ended.and_then(|ended| filled.map(|()| ended))
    })?;
    let is_clear = said.to_lowercase().contains("space") || said.contains("free") || said.contains("inodes");
    if code != 0 && (code != 2 || !is_clear) {
        findings.add(&format!("{label}: it ends with {code}: {said}"))?;
    }
    judge(ground, trial, &label, code == 0, findings)?;
    Ok(code != 0)
}

fn fill(ballast: &Path, moment: Duration, done: &AtomicBool) -> Result<()> {
    std::thread::sleep(moment);
    let file = File::options().write(true).open(ballast)?;
    let mut end = file.metadata()?.len();
    while !done.load(Ordering::Relaxed) {
        for len in [8 << 20, 1 << 20, 4096] {
            while fallocate(&file, FallocateFlags::empty(), end, len).is_ok() {
                end += len;
            }
        }
    }
    Ok(())
}

/// Stops the file system as in a power loss: unsynced data is lost. Returns whether that ended the run.
fn pull_the_plug(
    ground: &Ground,
    disk: &Disk,
    trial: &dyn Trial,
    moment: Duration,
    findings: &mut Findings,
) -> Result<bool> {
    let label = format!("{}, {} gone after {moment:?}", trial.name(), disk.name);
    start(ground, trial)?;
    let (code, said) = std::thread::scope(|scope| {
        let stop = scope.spawn(|| {
            std::thread::sleep(moment);
            ground.run("xfs_io -x -c shutdown work")
        });
        let ended = run_line(ground, trial.line());
        let stopped = stop.join().expect("it does not panic");
        ended.and_then(|ended| stopped.map(|()| ended))
    })?;
    if !matches!(code, 0 | 2) {
        findings.add(&format!("{label}: it ends with {code}: {said}"))?;
    }
    ground.run("umount work")?;
    ground.run("mount -o loop image work")?;
    judge(ground, trial, &label, code == 0, findings)?;
    Ok(code != 0)
}

pub(crate) fn judge(
    ground: &Ground,
    trial: &dyn Trial,
    label: &str,
    ended_well: bool,
    findings: &mut Findings,
) -> Result<()> {
    let kind = label.split(" after").next().unwrap_or_default().to_owned();
    if let Some(problem) = trial.not_whole(ground, ended_well)? {
        findings.add_like(&kind, &format!("{label}: {problem}"))?;
    }
    remove(&ground.path("work/ballast"))?;
    // btrfs frees the space with its next transaction.
    ground.run("sync -f work")?;
    if let Some(problem) = trial.after(ground, false)? {
        findings.add_like(&format!("{kind}, run again"), &format!("{label}, run again: {problem}"))?;
    }
    Ok(())
}

fn run_line(ground: &Ground, line: &str) -> Result<(i32, String)> {
    let done = ground.command(line).stdout(Stdio::null()).output().context("cannot start sealift")?;
    let said = String::from_utf8_lossy(&done.stderr).trim().replace('\n', "; ");
    Ok((done.status.code().unwrap_or(-1), said))
}
