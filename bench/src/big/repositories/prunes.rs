//! Prunes repeatedly while commits are unpacked: when a run has ended, nothing that a ref names may be missing.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use anyhow::Result;

use super::sources::Sources;
use super::target::{Target, TargetForm};
use crate::big::findings::Findings;
use crate::big::ground::Ground;
use crate::big::trial::Trial as _;
use crate::random::Random;

const ROUNDS: u32 = 40;
const PLACES: [TargetForm; 3] = [TargetForm::Repo("archive"), TargetForm::Repo("bare"), TargetForm::Usb];

pub(crate) fn run() -> Result<()> {
    let ground = Ground::new("repo-prunes")?;
    let mut findings = Findings::default();
    let sources = Sources::make(&ground, 4)?;
    for place in PLACES {
        let target = Target::make(&ground, &sources, place, true)?;
        ground.copy(target.start(), "work")?;
        let prunes = prune_meanwhile(&ground, &target, || {
            (0..ROUNDS).try_for_each(|round| take_back_and_forth(&ground, &target, round, &mut findings))
        })?;
        println!("   {}: {ROUNDS} times back and forth, pruned {prunes} times", target.name());
    }
    findings.finish()?;
    ground.remove()
}

/// Held while the repository is checked: a repository that is being pruned cannot be judged.
static QUIET: Mutex<()> = Mutex::new(());

fn prune_meanwhile(ground: &Ground, target: &Target<'_>, work: impl FnOnce() -> Result<()>) -> Result<u32> {
    let (done, prunes) = (AtomicBool::new(false), AtomicU32::new(0));
    let line = format!("ostree prune --refs-only --repo={}", target.repo());
    std::thread::scope(|scope| {
        let pruner = scope.spawn(|| {
            let mut pause = Random::fixed();
            while !done.load(Ordering::Relaxed) {
                let quiet = QUIET.lock();
                let pruned = ground.run(&line);
                drop(quiet);
                pruned?;
                prunes.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(pause.moment(Duration::from_millis(20)));
            }
            Ok(())
        });
        let worked = work();
        done.store(true, Ordering::Relaxed);
        let pruned = pruner.join().expect("it does not panic");
        worked.and(pruned)
    })?;
    Ok(prunes.into_inner())
}

/// Unpacks the old commit and the new one in turn. In every other round there is no ref before, so that pruning may remove everything.
fn take_back_and_forth(ground: &Ground, target: &Target<'_>, round: u32, findings: &mut Findings) -> Result<()> {
    let source = target.source();
    for (line, commit) in [(target.old_line(), &source.old), (target.line(), &source.new)] {
        if round % 2 == 1 {
            let _quiet = QUIET.lock();
            target.delete_ref(ground)?;
        }
        let ended = ground.run(line);
        let quiet = QUIET.lock();
        let problem = match ended {
            Ok(()) => target.problem(ground, &[commit], false)?,
            Err(error) => Some(format!("{error:#}")),
        };
        drop(quiet);
        if let Some(problem) = problem {
            findings.add_like(target.name(), &format!("{}, round {round}, {line}: {problem}", target.name()))?;
        }
    }
    Ok(())
}
