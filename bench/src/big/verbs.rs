//! The commands that write, on directories.

use std::fs;
use std::path::Path;

use anyhow::Result;

use super::ground::{Ground, difference, names};
use super::snapshot::Snapshot;
use super::trees;
use super::trial::Trial;
use crate::random::Random;

/// The command, its starting point and its output.
#[derive(Clone, Copy)]
pub(crate) struct Verb {
    pub(crate) name: &'static str,
    pub(crate) line: &'static str,
    pub(crate) start: &'static str,
    /// Below `work/out`.
    pub(crate) output: &'static str,
    /// Whether the bundle comes through a pipe.
    pub(crate) piped: bool,
}

#[rustfmt::skip] // a table
pub(crate) const VERBS: [Verb; 3] = [
    Verb {
        name: "pack", start: "start-empty", output: "b.sealift", piped: false,
        line: "sealift pack --force new -o work/out/b.sealift --name os --bundle-version 2 --key key --chunk-size 64KiB --quiet",
    },
    Verb {
        name: "unpack", start: "start-empty", output: "target", piped: false,
        line: "sealift unpack new.sealift work/out/target TRUST --quiet",
    },
    Verb {
        name: "update", start: "start-tree", output: "target", piped: false,
        line: "sealift unpack new.sealift work/out/target --update --delete TRUST --quiet",
    },
];

pub(crate) struct Known {
    pub(crate) old: Snapshot,
    pub(crate) new: Snapshot,
    pub(crate) old_bundle: Vec<u8>,
    pub(crate) new_bundle: Vec<u8>,
}

/// Creates `old` and `new`, their bundles, and the starting point of each run.
pub(crate) fn prepare(ground: &Ground, make: impl FnOnce(&Path) -> Result<()>) -> Result<Known> {
    make(&ground.path("old"))?;
    ground.copy("old", "new")?;
    trees::change(&ground.path("new"), &mut Random::fixed())?;
    for (tree, version) in [("old", 1), ("new", 2)] {
        ground.run(&format!(
            "sealift pack --force {tree} -o {tree}.sealift --name os --bundle-version {version} --key key --chunk-size 64KiB --quiet"
        ))?;
    }
    for start in ["start-empty", "start-bundle", "start-tree"] {
        fs::create_dir_all(ground.path(start).join("out"))?;
        fs::create_dir(ground.path(start).join("state"))?;
    }
    fs::copy(ground.path("old.sealift"), ground.path("start-bundle/out/b.sealift"))?;
    ground.run("sealift unpack old.sealift start-tree/out/target --trust signers --state start-tree/state --quiet")?;
    Ok(Known {
        old: Snapshot::take(&ground.path("old"))?,
        new: Snapshot::take(&ground.path("new"))?,
        old_bundle: fs::read(ground.path("old.sealift"))?,
        new_bundle: fs::read(ground.path("new.sealift"))?,
    })
}

/// A command that is disturbed.
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

    fn is_from_pipe(&self) -> bool {
        self.verb.piped
    }

    fn not_whole(&self, ground: &Ground, ended_well: bool) -> Result<Option<String>> {
        let Self { verb, known } = self;
        let output = ground.path("work/out").join(verb.output);
        if !output.exists() {
            return Ok((ended_well || verb.start != "start-empty").then(|| "the output is missing".to_owned()));
        }
        if output.is_file() {
            let bytes = fs::read(output)?;
            let is_old = !ended_well && verb.start == "start-bundle" && bytes == known.old_bundle;
            return Ok((!is_old && bytes != known.new_bundle).then(|| "the bundle has other bytes".to_owned()));
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
        let line = if cleans { &format!("sealift clean work/out/{} --quiet", verb.output) } else { verb.line };
        if let Err(error) = ground.start(line, verb.piped && !cleans)?.finish() {
            return Ok(Some(format!("{line}: {error:#}")));
        }
        let left = names(&out)?;
        let wanted: &[&str] = match verb.output {
            "target" => &[".target.sealift-state", "target"],
            _ => &["b.sealift"],
        };
        if left != wanted && !(cleans && !is_there && left.is_empty()) {
            return Ok(Some(format!("in its folder is {}", left.join(" "))));
        }
        // A disk of its own contains more than the target, such as lost+found.
        let known = ["out", "state", "lost+found"];
        for (folder, known) in [("work", &known[..]), ("tmp", &[])] {
            if let Some(left) = names(&ground.path(folder))?.iter().find(|name| !known.contains(&name.as_str())) {
                return Ok(Some(format!("in {folder} is {left}")));
            }
        }
        if cleans && verb.start == "start-bundle" {
            return self.not_whole(ground, false);
        }
        if cleans && verb.start == "start-tree" {
            let differs = |tree| difference(&ground.path(tree), &out.join("target"));
            return Ok(differs("old")?.and(differs("new")?).map(|found| format!("it is neither old nor new: {found}")));
        }
        if cleans && !is_there { Ok(None) } else { self.not_whole(ground, true) }
    }
}
