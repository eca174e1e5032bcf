//! The verbs that write, on directories.

use std::fs;
use std::path::Path;

use anyhow::Result;

use super::ground::{Ground, difference, names};
use super::snapshot::Snapshot;
use super::trees;
use super::trial::Trial;
use crate::random::Random;

/// What is run, from what, and where its output is.
#[derive(Clone, Copy)]
pub(crate) struct Verb {
    pub(crate) name: &'static str,
    pub(crate) line: &'static str,
    pub(crate) start: &'static str,
    /// In `work/out`.
    pub(crate) output: &'static str,
}

#[rustfmt::skip] // a table
pub(crate) const VERBS: [Verb; 3] = [
    Verb {
        name: "pack", start: "start-empty", output: "b.sealift",
        line: "sealift pack --force new -o work/out/b.sealift --name os --bundle-version 2 --key key --chunk-size 64KiB --quiet",
    },
    Verb {
        name: "unpack", start: "start-empty", output: "target",
        line: "sealift unpack new.sealift work/out/target TRUST --quiet",
    },
    Verb {
        name: "update", start: "start-tree", output: "target",
        line: "sealift unpack new.sealift work/out/target --update --delete TRUST --quiet",
    },
];

pub(crate) struct Known {
    pub(crate) old: Snapshot,
    pub(crate) new: Snapshot,
    pub(crate) bundle: Vec<u8>,
}

/// Makes `old` and `new`, their bundles, and what a run starts from.
pub(crate) fn prepare(ground: &Ground, make: impl FnOnce(&Path) -> Result<()>) -> Result<Known> {
    make(&ground.path("old"))?;
    ground.copy("old", "new")?;
    trees::change(&ground.path("new"), &mut Random::fixed())?;
    for (tree, version) in [("old", 1), ("new", 2)] {
        ground.run(&format!(
            "sealift pack --force {tree} -o {tree}.sealift --name os --bundle-version {version} --key key --chunk-size 64KiB --quiet"
        ))?;
    }
    for start in ["start-empty", "start-tree"] {
        fs::create_dir_all(ground.path(start).join("out"))?;
        fs::create_dir(ground.path(start).join("state"))?;
    }
    ground.run("sealift unpack old.sealift start-tree/out/target --trust signers --state start-tree/state --quiet")?;
    Ok(Known {
        old: Snapshot::take(&ground.path("old"))?,
        new: Snapshot::take(&ground.path("new"))?,
        bundle: fs::read(ground.path("new.sealift"))?,
    })
}

/// A verb that is disturbed.
pub(crate) struct Disturbed<'a> {
    pub(crate) verb: &'a Verb,
    pub(crate) known: &'a Known,
}

impl Trial for Disturbed<'_> {
    fn name(&self) -> &str {
        self.verb.name
    }

    fn line(&self) -> &str {
        self.verb.line
    }

    fn start(&self) -> &str {
        self.verb.start
    }

    fn not_whole(&self, ground: &Ground, ended_well: bool) -> Result<Option<String>> {
        let Self { verb, known } = self;
        let output = ground.path("work/out").join(verb.output);
        if !output.exists() {
            return Ok((ended_well || verb.start == "start-tree").then(|| "the output is missing".to_owned()));
        }
        if output.is_file() {
            return Ok((fs::read(output)? != known.bundle).then(|| "the bundle has other bytes".to_owned()));
        }
        if verb.start == "start-empty" || ended_well {
            let found = difference(&ground.path("new"), &output)?;
            return Ok(found.map(|found| format!("the target differs: {found}")));
        }
        Ok(Snapshot::take(&output)?.neither(&known.old, &known.new))
    }

    fn after(&self, ground: &Ground, cleans: bool) -> Result<Option<String>> {
        let verb = self.verb;
        let out = ground.path("work/out");
        let is_there = out.join(verb.output).exists();
        let line = match verb.output {
            output if cleans => format!("sealift clean work/out/{output} --quiet"),
            // A new tree is not made where one is.
            "target" if is_there && verb.start == "start-empty" => format!("{} --update", verb.line),
            _ => verb.line.to_owned(),
        };
        if let Err(error) = ground.run(&line) {
            return Ok(Some(format!("{error:#}")));
        }
        let left = names(&out)?;
        let wanted: &[&str] = match verb.output {
            "target" => &[".target.sealift-state", "target"],
            _ => &["b.sealift"],
        };
        if left != wanted && !(cleans && !is_there && left.is_empty()) {
            return Ok(Some(format!("in its folder is {}", left.join(" "))));
        }
        if let [left, ..] = names(&ground.path("tmp"))?.as_slice() {
            return Ok(Some(format!("in TMPDIR is {left}")));
        }
        if cleans && verb.start == "start-tree" {
            let differs = |tree| difference(&ground.path(tree), &out.join("target"));
            return Ok(differs("old")?.and(differs("new")?).map(|found| format!("it is neither old nor new: {found}")));
        }
        if cleans && !is_there { Ok(None) } else { self.not_whole(ground, true) }
    }
}
