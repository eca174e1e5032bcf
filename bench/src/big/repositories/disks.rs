//! Small file systems that fill up during a write to a repository, or lose power at any system call.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use xtask::shell::remove;

use super::sources::Sources;
use super::target::{Target, TargetForm};
use crate::big::disks::{DISKS, Disk, disturb, judge, make, start};
use crate::big::faults::{CHANGING, KILLED, Status, count_calls, moments, run_patiently};
use crate::big::findings::Findings;
use crate::big::ground::Ground;
use crate::big::trial::Trial;
use crate::random::Random;

/// xfs, the largest of the disks, finds nothing that ext4 does not.
const USED: [&str; 2] = ["ext4", "btrfs"];
const ROUNDS: u32 = 4;
/// How often the power is cut at each kind of call.
const CUTS: u32 = 3;
const MEBIBYTES: usize = 12;

/// The target, whether the old commit is there, and how much space the repository is to keep free.
const PLACES: [(TargetForm, bool, Option<&str>); 4] = [
    (TargetForm::Usb, false, None),
    (TargetForm::Repo("bare"), true, None),
    (TargetForm::Repo("archive"), false, Some("16MB")),
    (TargetForm::Repo("bare-user"), false, Some("0MB")),
];

pub(crate) fn run() -> Result<()> {
    let findings = &mut Findings::default();
    let mut random = Random::new()?;
    for disk in DISKS.iter().filter(|disk| USED.contains(&disk.name)) {
        let ground = Ground::new("repo-disks")?;
        let sources = Sources::make(&ground, MEBIBYTES)?;
        let mut targets = Vec::new();
        for (place, has_old, min_free) in PLACES {
            let target = Target::make(&ground, &sources, place, has_old)?;
            if let Some(size) = min_free {
                let repo = format!("{}/out/repo", target.start());
                ground.run(&format!("ostree config set --repo={repo} core.min-free-space-size {size}"))?;
            }
            let counts = count_calls(&ground, &target)?;
            targets.push((target, counts));
        }
        remove(&ground.path("work"))?;
        make(&ground, disk)?;
        for (target, counts) in &targets {
            disturb(&ground, disk, target, ROUNDS, &mut random, findings)?;
            cut_everywhere(&ground, disk, target, counts, findings)?;
        }
        ground.remove()?;
    }
    findings.finish()
}

/// Cuts the power at each kind of call.
fn cut_everywhere(
    ground: &Ground,
    disk: &Disk,
    trial: &dyn Trial,
    counts: &BTreeMap<String, u32>,
    findings: &mut Findings,
) -> Result<()> {
    let mut runs = 0;
    for call in CHANGING.split(' ') {
        for when in moments(counts.get(call).copied().unwrap_or(0), CUTS)? {
            runs += 1;
            cut(ground, disk, trial, (call, when), findings)?;
        }
    }
    println!("   {} on {}: without power {runs} times", trial.name(), disk.name);
    Ok(())
}

fn cut(
    ground: &Ground,
    disk: &Disk,
    trial: &dyn Trial,
    (call, when): (&str, u32),
    findings: &mut Findings,
) -> Result<()> {
    let label = format!("{}, {} without power at {call} {when}", trial.name(), disk.name);
    start(ground, trial)?;
    let line =
        format!("strace -f -qq -e signal=none -o injected -e inject={call}:{KILLED}:when={when} {}", trial.line());
    let ended = run_patiently(ground, &line)?;
    let ended_well = matches!(ended, Some((Status::Ended(0), _)));
    ensure!(ended_well || matches!(ended, Some((Status::Killed, _))), "{label}: it ends with {ended:?}");
    // From now on, the disk has only the data that it was told to write.
    ground.run("cp --sparse=always image kept")?;
    ground.run("umount work")?;
    ground.run("mv kept image")?;
    ground.run("mount -o loop image work")?;
    judge(ground, trial, &label, ended_well, findings)
}
