//! The deltas of a channel, from the versions that a rule names to the newest.

use std::path::{Path, PathBuf};

use sealift_format::{Envelope, Head, ListedFile};
use sealift_store::base::Base;
use sealift_store::fs::found::found_at;
use sealift_store::source::{BundleSource, Source};

use super::{Missing, PublishOptions, Run, VersionRule, checked_name, row_of, short};
use crate::pack::{DeltaFor, Outcome, PackOptions, PackRef, PackStats, pack_delta, read_for_deltas};
use crate::trust::sign::{SignChange, sign_bundle, sign_root};
use crate::verify::{Depth, verify};
use crate::{Error, Input, Output, Progress};

/// A delta that a rule names, and that the list does not have.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// The name of its file.
    pub(super) file: String,
    pub(super) from: ListedFile,
    pub(super) to: ListedFile,
    pub(super) level: i32,
}

impl Run<'_> {
    /// Takes or makes the deltas that the rule names and that the list does not have, except those that are not smaller than the full bundle.
    pub(super) fn add_deltas(&mut self, rule: &VersionRule) -> Result<(), Error> {
        let mut lacking = Vec::new();
        for wanted in self.wanted(rule)? {
            match self.take_delta(&wanted) {
                Ok(true) => {}
                Ok(false) => lacking.push(wanted),
                Err(error) if is_of_file(&error) => {
                    tracing::info!(file = wanted.file, %error, "is made again");
                    lacking.push(wanted);
                }
                Err(error) => return Err(error),
            }
        }
        self.notes.add_unlisted(lacking.iter().map(|wanted| wanted.file.clone()))?;
        for deltas in lacking.chunk_by(|a, b| a.to.file == b.to.file) {
            let Some(first) = deltas.first() else { continue };
            let goal = Goal::open(self.directory, &first.to.file, self.options, self.progress)?;
            let (directory, options, progress) = (self.directory, self.options, self.progress);
            goal.pack_all(directory, deltas, options, progress, &mut |wanted| {
                let head = check_delta(directory, wanted, options)?;
                self.list_delta(wanted, &head)
            })?;
        }
        Ok(())
    }

    /// Returns the deltas that the rule names, and that the list does not have.
    pub(super) fn wanted(&mut self, rule: &VersionRule) -> Result<Vec<Wanted>, Error> {
        let full: Vec<ListedFile> = self.files.iter().filter(|row| row.bases.is_empty()).cloned().collect();
        let newest = full.iter().map(|row| row.version).max();
        let older: Vec<&ListedFile> = full.iter().filter(|row| Some(row.version) < newest).collect();
        let named = rule.named(&older.iter().map(|row| (row.version, row.created)).collect::<Vec<_>>());
        let level = self.options.level;
        let mut wanted = Vec::new();
        for to in full.iter().filter(|row| Some(row.version) == newest) {
            let is_lacking = |from: &&&ListedFile| {
                let is_there = |row: &ListedFile| is_between(row, from, to);
                let is_tried = self.notes.not_smaller.contains(&(level, from.root_digest, to.root_digest));
                let is_same = from.index_digest == to.index_digest;
                named.contains(&from.version) && !is_same && !is_tried && !self.files.iter().any(is_there)
            };
            let from: Vec<&&ListedFile> = older.iter().filter(is_lacking).collect();
            if from.is_empty() {
                continue;
            }
            if has_commits(self.directory, to, self.options)? {
                self.stats.commits.push(to.file.clone());
                continue;
            }
            let head = self.head(to)?;
            for from in from {
                if self.head(from)?.root().identity.compatible != head.root().identity.compatible {
                    tracing::info!(from = from.file, to = to.file, "are for different devices: no delta");
                    continue;
                }
                let file = self.name_of_delta(from, to)?;
                wanted.push(Wanted { file, from: (*from).clone(), to: to.clone(), level });
            }
        }
        Ok(wanted)
    }

    /// Returns the name of a delta between two full bundles, which no other file of the channel has.
    fn name_of_delta(&self, from: &ListedFile, to: &ListedFile) -> Result<String, Error> {
        let stem = |row: &ListedFile| row.file.strip_suffix(".sealift").unwrap_or(&row.file).to_owned();
        let name = self.name.as_deref().unwrap_or_default();
        let base = stem(from);
        let base = base.strip_prefix(name).and_then(|rest| rest.strip_prefix('-')).unwrap_or(&base);
        let mut file = format!("{}-from-{base}.sealift", stem(to));
        if self.files.iter().any(|row| row.file == file) {
            file = format!("{}-from-{base}-{}.sealift", stem(to), short(&from.index_digest));
        }
        checked_name(file, &self.directory.join(&to.file))
    }

    /// Takes a delta that is there under its name: lists it, or removes it if it is not smaller than the full bundle. Returns whether it is there.
    ///
    /// # Errors
    /// Returns an error if it is damaged, or not what is wanted.
    pub(super) fn take_delta(&mut self, wanted: &Wanted) -> Result<bool, Error> {
        let path = self.directory.join(&wanted.file);
        if found_at(&path)?.is_none() {
            return Ok(false);
        }
        let mut head = check_delta(self.directory, wanted, self.options)?;
        let input = Input::open(&path)?.begin(self.options.limits.clone())?;
        // Whoever made it, what is damaged is neither signed nor published.
        verify(input, Depth::Stored, self.options.jobs, self.progress)?;
        if head.file_len() < wanted.to.len {
            let change = SignChange { keys: self.options.keys, ..SignChange::default() };
            head = sign_bundle(&path, &change, self.progress)?.head;
        }
        self.list_delta(wanted, &head)?;
        Ok(true)
    }

    /// Lists a delta with this head, or removes it if it is not smaller than the full bundle.
    fn list_delta(&mut self, wanted: &Wanted, head: &Head) -> Result<(), Error> {
        let Wanted { file, from, to, level } = wanted;
        if head.file_len() >= to.len {
            self.stats.not_smaller.push(file.clone());
            self.notes.not_smaller.insert((*level, from.root_digest, to.root_digest));
            self.notes.deltas.remove(file);
            return self.notes.add_unlisted([file.clone()]);
        }
        self.stats.deltas.push(file.clone());
        self.put(row_of(head, file.clone(), &self.directory.join(file))?);
        Ok(())
    }

    /// Reads the head of a full bundle of the channel.
    fn head(&self, row: &ListedFile) -> Result<Head, Error> {
        head_of(self.directory, row, self.options)
    }

    /// Takes what a plan names.
    pub(super) fn take_plan(&mut self) -> Result<(), Error> {
        let (bundles, deltas) = (self.notes.bundles.clone(), self.notes.deltas.clone());
        if bundles.is_empty() && deltas.is_empty() {
            return Err(Error::unexpected(self.directory, "has no plan: publish with --plan first"));
        }
        for file in bundles {
            let taken = self.take_bundle(&file);
            self.note_missing(file, taken)?;
        }
        for (file, planned) in deltas {
            let row = |file: &str| self.files.iter().find(|row| row.file == file).cloned();
            // Without both its bundles, nothing can be said of it; it leaves the plan.
            let (Some(from), Some(to)) = (row(&planned.from), row(&planned.to)) else { continue };
            if self.files.iter().any(|row| is_between(row, &from, &to)) {
                continue;
            }
            let taken = self.take_delta(&Wanted { file: file.clone(), from, to, level: planned.level });
            if taken.as_ref().is_err_and(is_of_file) {
                let path = self.directory.join(&file);
                std::fs::remove_file(&path).map_err(|error| Error::io("remove", &path, error))?;
            }
            self.note_missing(file, taken)?;
        }
        Ok(())
    }

    /// Keeps in mind what was not there or not usable, and goes on.
    fn note_missing(&mut self, file: String, taken: Result<bool, Error>) -> Result<(), Error> {
        match taken {
            Ok(true) => {}
            Ok(false) => self.stats.missing.push(Missing { file, error: None }),
            Err(error) if is_of_file(&error) => {
                self.stats.missing.push(Missing { file, error: Some(error) });
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Lists a full bundle that a plan has put here. Returns whether it is there.
    fn take_bundle(&mut self, file: &str) -> Result<bool, Error> {
        let path = self.directory.join(file);
        if self.files.iter().any(|row| row.file == file) {
            return Ok(true);
        }
        if found_at(&path)?.is_none() {
            return Ok(false);
        }
        let row = self.planned_row(file)?;
        let input = Input::open(&path)?.begin(self.options.limits.clone())?;
        verify(input, Depth::Stored, self.options.jobs, self.progress)?;
        self.stats.added.push(file.to_owned());
        self.put(row);
        Ok(true)
    }

    /// Returns the row of a full bundle that a plan has put here.
    pub(super) fn planned_row(&mut self, file: &str) -> Result<ListedFile, Error> {
        let path = self.directory.join(file);
        let head = Input::open(&path)?.read_head(self.options.limits.clone())?;
        let name = self.name.get_or_insert_with(|| head.root().identity.name.clone());
        if *name != head.root().identity.name || head.bodies(Envelope::SSH_SIGNATURE).next().is_none() {
            return Err(Error::unexpected(&path, "is not the bundle that was planned"));
        }
        row_of(&head, file.to_owned(), &path)
    }
}

/// Returns whether a file is at fault, so that the others can go on.
fn is_of_file(error: &Error) -> bool {
    error.kind().is_some() || matches!(error, Error::Unexpected { .. })
}

/// Returns whether a file leads from one full bundle to another.
fn is_between(row: &ListedFile, from: &ListedFile, to: &ListedFile) -> bool {
    row.bases == [from.index_digest] && row.index_digest == to.index_digest
}

/// Reads the head of a full bundle of a channel.
fn head_of(directory: &Path, row: &ListedFile, options: &PublishOptions<'_>) -> Result<Head, Error> {
    let path = directory.join(&row.file);
    let head = Input::open(&path)?.read_head(options.limits.clone())?;
    if head.root_digest() != row.root_digest {
        return Err(Error::unexpected(&path, "is not the bundle that the channel's list names"));
    }
    Ok(head)
}

/// Returns whether a bundle has OSTree commits.
fn has_commits(directory: &Path, row: &ListedFile, options: &PublishOptions<'_>) -> Result<bool, Error> {
    head_of(directory, row, options)?;
    let whole = Base::of_bundle(Input::open(&directory.join(&row.file))?, options.limits.clone(), options.guard)?;
    Ok(whole.index.refs().iter().any(|found| found.ostree.is_some()))
}

/// Checks that a file is a delta between two full bundles, and is to devices what the second one is. Returns its head.
pub(super) fn check_delta(directory: &Path, wanted: &Wanted, options: &PublishOptions<'_>) -> Result<Head, Error> {
    let path = directory.join(&wanted.file);
    let head = Input::open(&path)?.read_head(options.limits.clone())?;
    let to = head_of(directory, &wanted.to, options)?;
    let (root, goal) = (head.root(), to.root());
    let is_same = root.identity == goal.identity && root.annotations == goal.annotations && root.images == goal.images;
    let row = row_of(&head, wanted.file.clone(), &path)?;
    if !is_same || !is_between(&row, &wanted.from, &wanted.to) {
        let problem = format!("would not install what {} does, from {}", wanted.to.file, wanted.from.file);
        return Err(Error::unexpected(&path, problem));
    }
    Ok(head)
}

/// The full bundle to which deltas are made.
pub(super) struct Goal {
    path: PathBuf,
    head: Head,
    sources: Vec<(String, Source)>,
}

impl Goal {
    /// Opens a full bundle of a channel.
    pub(super) fn open(
        directory: &Path,
        file: &str,
        options: &PublishOptions<'_>,
        progress: &Progress,
    ) -> Result<Self, Error> {
        let path = directory.join(file);
        let head = Input::open(&path)?.read_head(options.limits.clone())?;
        let whole = Base::of_bundle(Input::open(&path)?, options.limits.clone(), options.guard)?;
        let mut reader = whole.reader();
        let mut read = |object, range, out: &mut Vec<u8>| reader.read(object, range, out);
        let sources = BundleSource::open_all(&whole.index, &mut read, directory, progress)?;
        let sources = sources.into_iter().map(|(name, source)| (name, Source::Bundle(source))).collect();
        Ok(Self { path, head, sources })
    }

    /// Packs the delta from another full bundle, signed with the keys in `options`.
    pub(super) fn pack(
        &self,
        from: &Path,
        output: &Output,
        options: &PublishOptions<'_>,
        progress: &Progress,
    ) -> Result<(), Error> {
        let sign = |signed: &[u8]| sign_root(signed, options.keys);
        let made = pack_delta(&self.refs(), base(from, options)?, output, &self.packing(options), &sign, progress)?;
        self.check(&made)
    }

    /// Packs deltas from other full bundles, and calls `done` after each. What they lead to is read once.
    fn pack_all(
        &self,
        directory: &Path,
        deltas: &[Wanted],
        options: &PublishOptions<'_>,
        progress: &Progress,
        done: &mut dyn FnMut(&Wanted) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let sign = |signed: &[u8]| sign_root(signed, options.keys);
        read_for_deltas(&self.refs(), directory, &self.packing(options), progress, &mut |sources| {
            for wanted in deltas {
                let target = base(&directory.join(&wanted.from.file), options)?;
                let output = Output::File(directory.join(&wanted.file));
                self.check(&sources.pack_delta(target, &output, &sign)?)?;
                done(wanted)?;
            }
            Ok(())
        })
    }

    fn refs(&self) -> Vec<PackRef<'_>> {
        self.sources.iter().map(|(name, source)| PackRef { name, source }).collect()
    }

    fn packing(&self, options: &PublishOptions<'_>) -> PackOptions {
        let root = self.head.root();
        let mut packing = PackOptions::new(root.identity.clone());
        packing.annotations.clone_from(&root.annotations);
        for image in &root.images {
            let algorithm = image.digest.algorithm();
            if !packing.images.contains(&algorithm) {
                packing.images.push(algorithm);
            }
        }
        packing.recipes = root.recipes.is_some();
        packing.level = options.level;
        packing.jobs = options.jobs;
        packing.limits = options.limits.clone();
        packing
    }

    fn check(&self, made: &Outcome<PackStats>) -> Result<(), Error> {
        match made {
            Outcome::New(_) => Ok(()),
            Outcome::Unchanged(_) => Err(Error::unexpected(&self.path, "has the content of its base")),
        }
    }
}

fn base(from: &Path, options: &PublishOptions<'_>) -> Result<DeltaFor, Error> {
    let base = Base::of_bundle(Input::open(from)?, options.limits.clone(), options.guard)?;
    Ok(DeltaFor::Bases(vec![base]))
}
