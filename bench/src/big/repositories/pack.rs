//! Packs `source`, with both of its refs and their history.

use std::fs;

use anyhow::Result;

use crate::big::ground::Ground;
use crate::big::snapshot::Snapshot;
use crate::big::verbs::{Known, Verb};

pub(super) const VERB: Verb = Verb {
    name: "pack",
    line: "sealift pack --force ostree:source --depth 1 -o work/out/b.sealift --name os --bundle-version 3 --key key --quiet",
    start: "start-empty",
    output: "b.sealift",
    piped: false,
};

/// The command that makes the expected bundle.
pub(super) fn prepare(ground: &Ground) -> Result<Known> {
    fs::create_dir_all(ground.path(VERB.start).join("out"))?;
    fs::create_dir(ground.path(VERB.start).join("state"))?;
    ground.copy(VERB.start, "work")?;
    ground.run(VERB.line)?;
    let bundle = fs::read(ground.path("work/out").join(VERB.output))?;
    let tree = Snapshot::take(&ground.path("source"))?;
    Ok(Known { old: tree.clone(), new: tree, old_bundle: Vec::new(), new_bundle: bundle })
}
