//! Killed at any moment: the repository is sound and its ref is the old or the new one, and the same command completes it and leaves nothing.

use std::fs;

use anyhow::Result;

use super::sources::Sources;
use super::target::Target;
use crate::big::findings::Findings;
use crate::big::ground::Ground;
use crate::big::kills::kill_often;
use crate::big::random::Random;
use crate::big::snapshot::Snapshot;
use crate::big::verbs::{Disturbed, Known, Verb};

const KILLS: u32 = 20;

const PACK: Verb = Verb {
    name: "pack",
    line: "sealift pack ostree:source --depth 1 -o work/out/b.sealift --name os --bundle-version 3 --key key --quiet",
    start: "start-empty",
    output: "b.sealift",
};

pub(crate) fn run() -> Result<()> {
    let ground = Ground::new("repo-kills")?;
    let mut random = Random::new()?;
    let mut findings = Findings::default();
    let sources = Sources::make(&ground, 24)?;
    for target in &Target::all(&ground, &sources)? {
        kill_often(&ground, target, KILLS, &mut random, &mut findings)?;
    }
    let known = prepare_pack(&ground)?;
    kill_often(&ground, &Disturbed { verb: &PACK, known: &known }, KILLS, &mut random, &mut findings)?;
    findings.finish()?;
    ground.remove()
}

/// Makes the bundle that each run is to make.
fn prepare_pack(ground: &Ground) -> Result<Known> {
    fs::create_dir_all(ground.path(PACK.start).join("out"))?;
    fs::create_dir(ground.path(PACK.start).join("state"))?;
    ground.copy(PACK.start, "work")?;
    ground.run(PACK.line)?;
    let bundle = fs::read(ground.path("work/out").join(PACK.output))?;
    let tree = Snapshot::take(&ground.path("source"))?;
    Ok(Known { old: tree.clone(), new: tree, bundle })
}
