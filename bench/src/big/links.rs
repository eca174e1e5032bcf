//! Another user plants links, fifos and directories in or beside the target, before and during an update: nothing outside the target may change, and
//! nothing may block on a fifo.

use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use xtask::shell::remove;

use super::findings::Findings;
use super::ground::Ground;
use super::snapshot::Snapshot;
use super::trees;
use super::verbs::{VERBS, Verb, prepare};
use crate::random::Random;

const RACES: u32 = 100;
/// A time limit that none of these runs reaches.
const PATIENCE: &str = "timeout --signal=KILL 20";

/// An object that the other user plants.
#[derive(Clone, Copy, Debug)]
enum Plant {
    Fifo,
    /// A link to the directory outside.
    Link,
    /// A link to a file outside.
    FileLink,
    /// A hard link to a file outside.
    HardLink,
    Directory,
    /// A directory that another user owns.
    Foreign,
}

const PLANTS: [Plant; 6] =
    [Plant::Fifo, Plant::Link, Plant::FileLink, Plant::HardLink, Plant::Directory, Plant::Foreign];

/// Paths below `work/out` where a plant may be met. `PLACE/inside` is created as a plain directory first.
const PLACES: [&str; 17] = [
    ".target.sealift-partial",
    ".target.sealift-partial/tree",
    ".target.sealift-partial/tree/d1",
    ".target.sealift-partial/tree/large",
    ".target.sealift-partial/files",
    ".target.sealift-partial/files/7",
    ".target.sealift-partial/state",
    ".target.sealift-partial/journal",
    ".target.sealift-state",
    ".target.sealift-state/head",
    ".target.sealift-state/index",
    ".b.sealift.1.sealift-partial",
    "b.sealift",
    "target/d1",
    "target/d1/e0/f21",
    "target/large",
    "target/extra",
];

pub(crate) fn run() -> Result<()> {
    let ground = Ground::new("links")?;
    prepare(&ground, |dir| trees::small(dir, &mut Random::fixed()))?;
    make_canary(&ground.path("kept"))?;
    ground.copy("kept", "canary")?;
    let before = Snapshot::take(&ground.path("canary"))?;
    let mut findings = Findings::default();
    let mut number = 0;
    for verb in &VERBS {
        for place in PLACES {
            for plant in PLANTS {
                number += 1;
                planted(&ground, verb, place, plant, &before, &mut findings)?;
            }
        }
    }
    println!("   {number} runs with something in their way");
    let [_, unpack, update] = &VERBS;
    // Not nested: the attacker would follow its own links.
    let directories = &["d0", "d1", "d2/e1", "d3", "names", "more"];
    race(&ground, unpack, (".target.sealift-partial/tree", directories), &before, &mut findings)?;
    race(&ground, update, ("target", directories), &before, &mut findings)?;
    race(&ground, update, (".target.sealift-partial", &["files", "state"]), &before, &mut findings)?;
    findings.finish()?;
    ground.remove()
}

/// Creates a tree with the names that an update changes.
fn make_canary(canary: &Path) -> Result<()> {
    trees::small(canary, &mut Random::fixed())?;
    for name in ["d1/e0/f99", "head", "index", "record", "journal"] {
        fs::write(canary.join(name), "nobody may touch this\n")?;
    }
    fs::create_dir_all(canary.join("tree/d1"))?;
    fs::write(canary.join("tree/d1/f"), "nor this\n")?;
    Ok(())
}

fn planted(
    ground: &Ground,
    verb: &Verb,
    place: &str,
    plant: Plant,
    before: &Snapshot,
    findings: &mut Findings,
) -> Result<()> {
    ground.begin(verb.start)?;
    let at = ground.path("work/out").join(place);
    if let Some(parent) = at.parent() {
        fs::create_dir_all(parent)?;
    }
    let canary = ground.path("canary");
    remove(&at)?;
    put(plant, &at, &canary).with_context(|| format!("cannot plant {plant:?} at {}", at.display()))?;
    let label = format!("{}, {plant:?} at {place}", verb.name);
    for line in [verb.line.to_owned(), format!("sealift clean work/out/{}", verb.output)] {
        let status = ground.command(&format!("{PATIENCE} {line}")).output()?.status;
        match status.code() {
            Some(0..=2) => {}
            Some(137) | None => findings.add(&format!("{label}: it hangs: {line}"))?,
            Some(code) => findings.add(&format!("{label}: it ends with {code}: {line}"))?,
        }
        outside(ground, before, &label, findings)?;
    }
    Ok(())
}

fn put(plant: Plant, at: &Path, canary: &Path) -> Result<()> {
    match plant {
        Plant::Fifo => mknodat(CWD, at, FileType::Fifo, Mode::from_raw_mode(0o666), 0)?,
        Plant::Link => symlink(canary, at)?,
        Plant::FileLink => symlink(canary.join("large"), at)?,
        Plant::HardLink => fs::hard_link(canary.join("attributes"), at)?,
        Plant::Directory => {
            fs::create_dir(at)?;
            symlink(canary, at.join("tree"))?;
            symlink(canary, at.join("e0"))?;
        }
        Plant::Foreign => {
            fs::create_dir(at)?;
            symlink(canary, at.join("tree"))?;
            chown(at, Some(4711), Some(4711))?;
        }
    }
    Ok(())
}

/// Checks that the tree outside is unchanged. If it is not, restores it, so that one cause is one finding.
fn outside(ground: &Ground, before: &Snapshot, label: &str, findings: &mut Findings) -> Result<()> {
    let now = Snapshot::take(&ground.path("canary"))?;
    // A hard link was made by the test; it changes only the link count.
    let Some(path) = now.first_difference_but_links(before) else { return Ok(()) };
    findings.add(&format!("{label}: outside of the target {} has changed", path.display()))?;
    ground.copy("kept", "canary")
}

/// Swaps directories for links as fast as possible during a run.
fn race(
    ground: &Ground,
    verb: &Verb,
    (where_, names): (&str, &[&str]),
    before: &Snapshot,
    findings: &mut Findings,
) -> Result<()> {
    let canary = ground.path("canary");
    let (swaps, mut ended_well) = (AtomicU64::new(0), 0);
    for round in 0..RACES {
        ground.begin(verb.start)?;
        let tree = ground.path("work/out").join(where_);
        let done = AtomicBool::new(false);
        let status = std::thread::scope(|scope| {
            for name in names {
                let (at, link) = (tree.join(name), ground.path("work").join(name.replace('/', "-")));
                let (done, swaps, aim) = (&done, &swaps, canary.join(name));
                scope.spawn(move || {
                    let _ = symlink(aim, &link);
                    let swap = || renameat_with(CWD, &at, CWD, &link, RenameFlags::EXCHANGE).is_ok();
                    let mut pause = Random::fixed();
                    while !done.load(Ordering::Relaxed) {
                        if swap() {
                            swaps.fetch_add(1, Ordering::Relaxed);
                            std::thread::sleep(pause.moment(Duration::from_micros(300)));
                            // Swaps back: a run that meets only links is refused at once.
                            swap();
                        }
                        std::thread::sleep(pause.moment(Duration::from_millis(6)));
                    }
                });
            }
            let status = ground.command(&format!("{PATIENCE} {}", verb.line)).output().map(|output| output.status);
            done.store(true, Ordering::Relaxed);
            status
        })?;
        let label = format!("{}, links swapped in {where_}, round {round}", verb.name);
        match status.code() {
            Some(0) => ended_well += 1,
            Some(1 | 2) => {}
            Some(137) | None => findings.add(&format!("{label}: it hangs"))?,
            Some(code) => findings.add(&format!("{label}: it ends with {code}"))?,
        }
        outside(ground, before, &label, findings)?;
    }
    println!(
        "   {RACES} times {}, while directories in {where_} were swapped {} times: {ended_well} ended well",
        verb.name,
        swaps.into_inner()
    );
    Ok(())
}
