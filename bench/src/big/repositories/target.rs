//! A repository that a bundle is unpacked into, empty or with the previous commit.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use super::COLLECTION;
use super::sources::{Commit, Source, Sources, listing};
use crate::big::ground::{Ground, names};
use crate::big::trial::Trial;

pub(super) struct Target<'a> {
    name: String,
    line: String,
    /// The command that unpacks the old commit, whichever commit is there.
    old_line: String,
    start: String,
    source: &'a Source,
    has_old: bool,
    place: TargetForm,
    /// All names that exist after an undisturbed run, and the summary.
    names: BTreeSet<PathBuf>,
    summary: Option<Vec<u8>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TargetForm {
    /// A repository of this mode.
    Repo(&'static str),
    /// A removable medium, on which it is created.
    Usb,
}

impl<'a> Target<'a> {
    /// Creates the start of a run, `start-NAME`, and records the result of an undisturbed one.
    pub(super) fn make(ground: &Ground, sources: &'a Sources, place: TargetForm, has_old: bool) -> Result<Self> {
        let mode = match place {
            TargetForm::Repo(mode) => mode,
            TargetForm::Usb => "usb",
        };
        let source = if mode == "bare-user-only" { &sources.plain } else { &sources.full };
        let start = format!("start-{mode}{}", if has_old { "-old" } else { "" });
        fs::create_dir_all(ground.path(&start).join("out"))?;
        fs::create_dir(ground.path(&start).join("state"))?;
        let to = |folder: &str| match place {
            TargetForm::Repo(_) => format!("ostree:{folder}/out/repo"),
            TargetForm::Usb => format!("--usb {folder}/out/stick"),
        };
        match place {
            TargetForm::Repo(mode) => {
                ground.run(&format!("ostree init --repo={start}/out/repo --mode={mode}"))?;
            }
            TargetForm::Usb => fs::create_dir(ground.path(&start).join("out/stick"))?,
        }
        if has_old {
            let state = format!("--trust signers --state {start}/state --quiet");
            ground.run(&format!("sealift unpack {} {} {state}", source.old.bundle, to(&start)))?;
        }
        let line = format!("sealift unpack {} {} TRUST --quiet", source.new.bundle, to("work"));
        let old_line = format!("sealift unpack {} {} TRUST --allow-downgrade --quiet", source.old.bundle, to("work"));
        let name = format!("{mode}, {}", if has_old { "from the commit before" } else { "from nothing" });
        let (names, summary) = (BTreeSet::new(), None);
        let mut target = Self { name, line, old_line, start, source, has_old, place, names, summary };
        ground.copy(&target.start, "work")?;
        ground.run(&target.line)?;
        target.names = target.names_below(ground)?;
        target.summary = target.summary(ground);
        let problem = target.not_whole(ground, true)?;
        ensure!(problem.is_none(), "{}, undisturbed: {}", target.name, problem.unwrap_or_default());
        Ok(target)
    }

    /// Creates one target of each kind.
    pub(super) fn all(ground: &Ground, sources: &'a Sources) -> Result<Vec<Self>> {
        const PLACES: [TargetForm; 5] = [
            TargetForm::Repo("archive"),
            TargetForm::Repo("bare-user"),
            TargetForm::Repo("bare"),
            TargetForm::Repo("bare-user-only"),
            TargetForm::Usb,
        ];
        let each = PLACES.into_iter().flat_map(|place| [false, true].map(|has_old| (place, has_old)));
        each.map(|(place, has_old)| Self::make(ground, sources, place, has_old)).collect()
    }

    pub(super) fn repo(&self) -> &'static str {
        match self.place {
            TargetForm::Repo(_) => "work/out/repo",
            TargetForm::Usb => "work/out/stick/.ostree/repo",
        }
    }

    pub(super) fn old_line(&self) -> &str {
        &self.old_line
    }

    fn ref_path(&self, ground: &Ground) -> PathBuf {
        let folder = match self.place {
            TargetForm::Repo(_) => "refs/heads".to_owned(),
            TargetForm::Usb => format!("refs/mirrors/{COLLECTION}"),
        };
        ground.path(self.repo()).join(folder).join(self.source.reference)
    }

    pub(super) fn delete_ref(&self, ground: &Ground) -> Result<()> {
        let path = self.ref_path(ground);
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))
    }

    /// Returns what is wrong with the repository, or with the commit of its ref, which must be one of `wanted`. A missing ref is accepted only with
    /// `may_lack_ref`.
    pub(super) fn problem(&self, ground: &Ground, wanted: &[&Commit], may_lack_ref: bool) -> Result<Option<String>> {
        let repo = self.repo();
        if let Err(error) = ground.run(&format!("ostree fsck --quiet --repo={repo}")) {
            return Ok(Some(format!("{error:#}")));
        }
        let tip = match fs::read_to_string(self.ref_path(ground)) {
            Ok(text) => text.trim_end().to_owned(),
            Err(_) if may_lack_ref => return Ok(None),
            Err(error) => return Ok(Some(format!("its ref: {error}"))),
        };
        let Some(commit) = wanted.iter().find(|commit| commit.checksum == tip) else {
            return Ok(Some(format!("its ref names {tip:?}")));
        };
        Ok(match listing(ground, repo, &tip) {
            Ok(found) if found == commit.listing => None,
            Ok(_) => Some("its commit holds something else".to_owned()),
            Err(error) => Some(format!("{error:#}")),
        })
    }

    pub(super) fn source(&self) -> &'a Source {
        self.source
    }

    fn summary(&self, ground: &Ground) -> Option<Vec<u8>> {
        fs::read(ground.path(self.repo()).join("summary")).ok()
    }

    fn names_below(&self, ground: &Ground) -> Result<BTreeSet<PathBuf>> {
        let root = ground.path("work/out");
        let (mut found, mut pending) = (BTreeSet::new(), vec![PathBuf::new()]);
        while let Some(below) = pending.pop() {
            for entry in fs::read_dir(root.join(&below))? {
                let entry = entry?;
                let path = below.join(entry.file_name());
                if entry.file_type()?.is_dir() {
                    pending.push(path.clone());
                }
                // Lock files stay, as those of libostree do.
                if !path.ends_with(".lock") {
                    found.insert(path);
                }
            }
        }
        Ok(found)
    }

    /// Returns which names are extra or missing, compared with an undisturbed run.
    fn left(&self, ground: &Ground) -> Result<Option<String>> {
        let found = self.names_below(ground)?;
        let list = |paths: Vec<&PathBuf>| {
            paths.iter().take(4).map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ")
        };
        let more: Vec<_> = found.difference(&self.names).collect();
        if !more.is_empty() {
            return Ok(Some(format!("it leaves {}", list(more))));
        }
        let less: Vec<_> = self.names.difference(&found).collect();
        Ok((!less.is_empty()).then(|| format!("it lacks {}", list(less))))
    }
}

impl Trial for Target<'_> {
    fn name(&self) -> &str {
        &self.name
    }

    fn line(&self) -> &str {
        &self.line
    }

    fn start(&self) -> &str {
        &self.start
    }

    fn can_clean(&self) -> bool {
        false
    }

    fn not_whole(&self, ground: &Ground, ended_well: bool) -> Result<Option<String>> {
        let is_new = !ended_well && !self.has_old;
        if !is_repository(&ground.path(self.repo())) {
            return Ok((!is_new || self.place != TargetForm::Usb).then(|| "it is no repository".to_owned()));
        }
        let Source { old, new, .. } = self.source;
        let wanted: &[_] = if ended_well || is_new { &[new] } else { &[old, new] };
        if let Some(problem) = self.problem(ground, wanted, is_new)? {
            return Ok(Some(problem));
        }
        let mark = ground.path(self.repo()).join(format!("state/{}.commitpartial", new.checksum));
        Ok((ended_well && mark.exists()).then(|| "its commit counts as partial".to_owned()))
    }

    fn after(&self, ground: &Ground, _cleans: bool) -> Result<Option<String>> {
        if let Err(error) = ground.run(&self.line) {
            return Ok(Some(format!("{error:#}")));
        }
        if let Some(problem) = self.not_whole(ground, true)? {
            return Ok(Some(problem));
        }
        if let Some(problem) = self.left(ground)? {
            return Ok(Some(problem));
        }
        if self.summary(ground) != self.summary {
            return Ok(Some("the summary has other bytes".to_owned()));
        }
        Ok(names(&ground.path("tmp"))?.first().map(|left| format!("in TMPDIR is {left}")))
    }
}

/// Returns whether libostree would recognize a repository.
fn is_repository(path: &Path) -> bool {
    path.join("config").exists() && path.join("objects").exists()
}
