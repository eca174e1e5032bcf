//! Plans the deltas of a channel, so that other processes or machines make them.

use std::path::{Path, PathBuf};

use sealift_format::{ListedFile, SignedList};
use sealift_store::fs::found::found_at;

use super::delta::{Goal, Wanted, check_delta};
use super::notes::{Notes, PlannedDelta};
use super::{PublishError, PublishOptions, Run, row_of};
use crate::channel::{self, list_path};
use crate::{Error, Input, Output, Progress};

/// What a plan names.
#[derive(Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "there is no more to tell")]
pub struct DeltaPlan {
    /// The deltas to be made: the name of each, and the paths of the full bundles that it leads from and to.
    pub deltas: Vec<(String, PathBuf, PathBuf)>,
    /// The full bundles to which no delta is made, since they have OSTree commits: their deltas are packed from the repository.
    pub commits: Vec<String>,
}

/// What became of a delta of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "there is no more to tell")]
pub enum Made {
    /// It was made.
    New,
    /// It was there already.
    Unchanged,
}

/// Copies bundles into the channel in `directory`, without listing them, and plans the deltas that the rule names and that are not there. [`publish`]
/// with `commit` lists bundles and deltas.
///
/// # Errors
/// As [`publish`]. The list is not touched.
///
/// [`publish`]: super::publish
pub fn plan(
    bundles: &[PathBuf],
    directory: &Path,
    options: &PublishOptions<'_>,
    progress: &Progress,
) -> Result<DeltaPlan, PublishError> {
    let Some(rule) = &options.deltas else {
        return Err(Error::Usage("a plan needs a rule that says from which versions deltas are made".into()).into());
    };
    let mut run = Run::begin(directory, options, progress)?;
    for file in run.notes.bundles.clone() {
        if found_at(&directory.join(&file))?.is_some() && !run.files.iter().any(|row| row.file == file) {
            let row = run.planned_row(&file)?;
            run.put(row);
        }
    }
    for bundle in bundles {
        let added = run.plan_bundle(bundle);
        added.map_err(|error| PublishError { bundle: Some(bundle.clone()), error })?;
    }
    if run.files.is_empty() {
        return Err(Error::unexpected(directory, "is not a channel yet: give the bundles to publish").into());
    }
    let mut plan = DeltaPlan::default();
    for wanted in run.wanted(rule)? {
        let path = directory.join(&wanted.file);
        if found_at(&path)?.is_none() || check_delta(directory, &wanted, options).is_err() {
            plan.deltas.push((wanted.file.clone(), directory.join(&wanted.from.file), directory.join(&wanted.to.file)));
        }
        let Wanted { file, from, to, level } = wanted;
        run.notes.unlisted.remove(&file);
        run.notes.deltas.insert(file, PlannedDelta { from: from.file, to: to.file, level });
    }
    run.notes.write()?;
    plan.commits = run.stats.commits;
    Ok(plan)
}

impl Run<'_> {
    /// Copies a bundle into the channel, and notes that it is to be listed.
    fn plan_bundle(&mut self, path: &Path) -> Result<(), Error> {
        let before: Vec<ListedFile> = self.files.clone();
        let file = self.add(path)?;
        if !before.iter().any(|row| row.file == file) {
            self.notes.unlisted.remove(&file);
            self.notes.bundles.insert(file);
            self.notes.write()?;
        }
        Ok(())
    }
}

/// Makes a delta of the plan of a channel, without a signature unless there are keys. It appears when it is complete, and several runs at once, on
/// any machine that sees the directory, do not harm each other.
///
/// # Errors
/// Returns an error if no plan names the file, or if it cannot be made.
pub fn make_planned(
    file: &str,
    directory: &Path,
    options: &PublishOptions<'_>,
    progress: &Progress,
) -> Result<Made, Error> {
    let Some(planned) = Notes::read(directory)?.deltas.remove(file) else {
        let path = list_path(directory);
        let list = channel::read(&path)?.as_deref().map(SignedList::parse).transpose();
        let list = list.map_err(|error| channel::fault(&path, &error))?;
        // A batch engine may repeat a command after the commit.
        if list.is_some_and(|list| list.list().files.iter().any(|row| row.file == file)) {
            return Ok(Made::Unchanged);
        }
        return Err(Error::unexpected(
            directory.join(file),
            "is not in this channel's plan: publish with --plan first",
        ));
    };
    let row = |file: String| -> Result<ListedFile, Error> {
        let path = directory.join(&file);
        row_of(&Input::open(&path)?.read_head(options.limits.clone())?, file, &path)
    };
    let (from, to) = (row(planned.from)?, row(planned.to)?);
    let wanted = Wanted { file: file.to_owned(), from, to, level: options.level };
    let path = directory.join(file);
    let is_there = || Ok::<_, Error>(found_at(&path)?.is_some() && check_delta(directory, &wanted, options).is_ok());
    if is_there()? {
        return Ok(Made::Unchanged);
    }
    if found_at(&path)?.is_some() {
        std::fs::remove_file(&path).map_err(|error| Error::io("remove", &path, error))?;
    }
    let goal = Goal::open(directory, &wanted.to.file, options, progress)?;
    match goal.pack(&directory.join(&wanted.from.file), &Output::New(path.clone()), options, progress) {
        // Another run was faster. What it made may be listed meanwhile, and is not replaced.
        Err(Error::Exists { .. }) if is_there()? => Ok(Made::Unchanged),
        made => made.map(|()| Made::New),
    }
}
