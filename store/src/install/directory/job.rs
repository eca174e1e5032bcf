//! The steps that a new tree and an update have in common.

use std::collections::HashSet;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use sealift_format::{Bundle, num};

use super::disk::Blocks;
use super::files::{Builder, has_reflinks};
use super::finished::Finished;
use super::from_base;
use super::hot_files::{HotFiles, Moved};
use super::installed::Installed;
use super::metadata::Privilege;
use super::plan::{PlannedName, Selection};
use super::recorded_stats::gather_new;
use super::sealing::Sealing;
use super::staged;
use super::stats::{Consent, UnpackStats, expected};
use super::trial::{Findings, Wanted};
use crate::base::Bases;
use crate::delivery::Delivery;
use crate::directory::stage::StageKind;
use crate::directory::walk::Walk;
use crate::directory::{Target, TreeStage, state};
use crate::fs::stat_cache::next_moment;
use crate::fs::writeback::with_writeback;
use crate::input::Input;
use crate::install::options::{Durability, InstallOptions};
use crate::install_record::{self, NewRecord};
use crate::kept_order::KeptOrder;
use crate::progress::Phase;
use crate::seal::KernelSignature;
use crate::trust::{Admission, Survey, TargetId};
use crate::{Error, Keeps, Progress, Record, Site, inode_id};

/// The settings common to all steps of unpacking.
pub(super) struct Job<'a> {
    pub(super) site: &'a Site,
    pub(super) admission: &'a Admission,
    pub(super) bundle: &'a Bundle,
    /// The bases of a delta bundle.
    pub(super) bases: &'a Bases,
    /// The order in which the contents are read, if it is known.
    pub(super) order: Option<&'a KeptOrder>,
    pub(super) reference: &'a str,
    pub(super) sealing: &'a Sealing,
    /// The blocks of the target's file system.
    pub(super) blocks: Blocks,
    /// The stats of the finished files of a new tree.
    pub(super) finished: Finished,
    pub(super) options: &'a InstallOptions,
    pub(super) progress: &'a Progress,
    /// The files and folders that this run needs.
    pub(super) needed: Vec<PathBuf>,
    /// Asked before a directory is adopted.
    pub(super) consent: Option<&'a Consent<'a>>,
    /// What was known of the target before this run.
    pub(super) survey: &'a Survey,
}

impl Job<'_> {
    /// Returns the expected stats of making the selection.
    pub(super) fn expected(&self, selection: &Selection) -> UnpackStats {
        let mut stats = UnpackStats {
            disk_bytes: self.disk(selection),
            found: self.survey.run,
            ..expected(self.bundle, selection)
        };
        stats.install.is_sealed = self.sealing.is_on;
        stats.install.gone_back_from = self.survey.gone_back_from();
        stats
    }

    /// Returns the record of a target that holds this very bundle: a killed run had finished, or the command is repeated.
    pub(super) fn complete(&self) -> Result<Option<Installed>, Error> {
        if self.sealing.is_on && !self.sealing.is_done(&self.bundle.head) {
            return Ok(None);
        }
        let installed = Installed::kept(self.site, self.options)?;
        Ok(installed.filter(|installed| installed.is_of(&self.bundle.head, self.reference)))
    }

    /// Builds the selection in the stage; `all` are the regular files that it then holds, some of which may exist already. Then writes
    /// the hot set again, if it is `gathered`.
    pub(super) fn build<'g>(
        &self,
        input: &mut Input,
        stage: &TreeStage,
        mut selection: Selection,
        (all, gathered): (&[PlannedName], &'g HotFiles<'_>),
        (privilege, stats): (&Privilege, &mut UnpackStats),
    ) -> Result<Moved<'g>, Error> {
        // An update does this before it copies from the target.
        if stage.is_resumed() && stage.layout() == StageKind::Tree {
            self.reuse_staged(stage, &mut selection, privilege, stats)?;
            stats.install.stored_bytes = selection.reads.stored_bytes();
        }
        let mut builder = self.builder(&selection, stage, privilege);
        let mut build = || {
            let moved = self.fill(&mut builder, input, (all, gathered))?;
            if self.sealing.is_on {
                let moved = moved.iter().flatten().map(|file| file.place);
                let all: Vec<PlannedName> = all.iter().copied().chain(moved).collect();
                self.sealing.seal_staged(&builder, &all, self.options.jobs)?;
            }
            builder.finish_directories(&mut Walk::default()).map(|()| moved)
        };
        let moved = match self.options.tree.durability {
            Durability::End => with_writeback(|| stage.sync(), build)?,
            Durability::None | Durability::Each => build()?,
        };
        input.finish(&self.bundle.head)?;
        stats.shared_bytes = builder.duplicate_bytes.load(Ordering::Relaxed);
        let skipped = privilege.skipped();
        stats.owners_skipped = skipped.owners.load(Ordering::Relaxed);
        stats.set_ids_skipped = skipped.set_ids.load(Ordering::Relaxed);
        stats.xattrs_skipped = skipped.xattrs.load(Ordering::Relaxed);
        stats.devices_skipped = skipped.devices.load(Ordering::Relaxed);
        Ok(moved)
    }

    pub(super) fn builder<'b>(
        &'b self,
        selection: &'b Selection,
        stage: &'b TreeStage,
        privilege: &'b Privilege,
    ) -> Builder<'b> {
        Builder {
            bundle: self.bundle,
            selection,
            stage,
            finished: &self.finished,
            privilege,
            progress: self.progress,
            options: self.options,
            reflinks: has_reflinks(stage.root()),
            premade: HashSet::new(),
            duplicate_bytes: AtomicU64::new(0),
        }
    }

    /// Determines what the target will keep of the selection's metadata, by trying it in `directory`, which is on its file system.
    ///
    /// # Errors
    /// As [`Wanted::try_in`].
    pub(super) fn keeping(
        &self,
        directory: BorrowedFd<'_>,
        selection: &Selection,
        may_name: bool,
    ) -> Result<Findings, Error> {
        // A damaged record says nothing.
        let record = state::kept_record(self.site).ok().flatten();
        let inode = self.site.inode_id().ok().map(|id| id.1);
        let before = record.filter(|record| inode == Some(record.inode)).map(|record| record.keeps);
        let (target, index, options) = (self.site.path(), &self.bundle.index, &self.options.tree);
        Wanted { target, index, selection, options, before }.try_in(directory, may_name)
    }

    /// As [`Self::keeping`], in the directory where a stage would be.
    pub(super) fn keeping_beside(&self, selection: &Selection, may_name: bool) -> Result<Findings, Error> {
        self.keeping(self.site.ground(), selection, may_name)
    }

    /// Adopts what an interrupted run left in the stage.
    pub(super) fn reuse_staged(
        &self,
        stage: &TreeStage,
        selection: &mut Selection,
        privilege: &Privilege,
        stats: &mut UnpackStats,
    ) -> Result<(), Error> {
        self.progress.enter(Phase::Hashing, 0, 0);
        let builder = self.builder(selection, stage, privilege);
        let reused = staged::reuse(&builder)?;
        stats.resumed_files = num::wide(reused.entries.len());
        self.progress.keep(stats.resumed_files);
        tracing::info!(files = stats.resumed_files, "reused files from an interrupted run");
        selection.take_away(self.bundle, |entry| reused.entries.contains(&entry), reused.pieces);
        Ok(())
    }

    /// Writes the next record of the target, a directory with this inode number, to the stage. Returns what happened to the signature for the kernel.
    ///
    /// # Errors
    /// Returns an error if what was sealed does not match the index.
    pub(super) fn write_state(
        &self,
        stage: &TreeStage,
        (inode, keeps, had_linked_duplicates): (u64, Keeps, bool),
        durable: bool,
    ) -> Result<KernelSignature, Error> {
        let part = Record {
            reference: self.reference.to_owned(),
            prefix: self.options.tree.prefix.clone(),
            inode,
            keeps,
            links_duplicates: self.options.tree.hardlink_duplicates || had_linked_duplicates,
        };
        let sealed = self.sealing.table(&self.bundle.index)?;
        let new = NewRecord {
            bundle: self.bundle,
            files: state::files(&part, sealed.as_deref()),
            order: self.order,
            is_sealed: sealed.is_some(),
            signature: self.sealing.signature(&self.bundle.head),
            durable,
        };
        new.write(&stage.new_state()?)
    }

    /// Checks before content is read that the kernel accepts the bundle's signature, if that is required. The actual record replaces what this
    /// writes.
    pub(super) fn try_signature(&self, stage: &TreeStage) -> Result<(), Error> {
        match self.sealing.signature(&self.bundle.head) {
            Some(signature) if signature.is_required => {
                install_record::try_signature(&stage.new_state()?, self.bundle, signature)
            }
            _ => Ok(()),
        }
    }

    /// Makes the device remember that the target holds the bundle.
    pub(super) fn commit(&self) -> Result<(), Error> {
        self.admission.commit(Some(&TargetId::of_directory(self.site)?))
    }

    /// Makes the built tree and its record durable. The record gets its name before the tree does: a tree without its record would be bound to no
    /// name. Returns what happened to the signature for the kernel.
    pub(super) fn write_record(
        &self,
        stage: &TreeStage,
        selection: &Selection,
        keeps: Keeps,
    ) -> Result<KernelSignature, Error> {
        let durable = self.options.tree.durability != Durability::None;
        let failed = |error| Error::io("look at", stage.target(), error);
        let tree = inode_id(stage.root()).map_err(failed)?;
        let kernel_signature = self.write_state(stage, (tree.1, keeps, false), false)?;
        if let Some(state) = stage.state()? {
            let since = next_moment(stage.own().fd()).map_err(failed)?;
            // The root may be closed to its own user by now.
            let stats = stage.while_open(|| {
                let built = Target::staged(stage.target(), stage.root(), &self.bundle.index)?;
                let of = self.bundle.head.root().contents.index_digest;
                let finished = (&self.finished.take()[..], since, &keeps);
                gather_new(&built, of, selection, finished, self.options.jobs)
            })?;
            state::write_stats(&state, &stats)?;
        }
        self.progress.enter(Phase::Syncing, 0, 0);
        if durable {
            stage.sync()?;
        }
        stage.check(self.site)?;
        // All new content is complete and checked. From here on the device remembers this version.
        self.commit()?;
        state::replace(stage, self.site).map(|()| kernel_signature)
    }

    fn fill<'g>(
        &self,
        builder: &mut Builder<'_>,
        input: &mut Input,
        (all, gathered): (&[PlannedName], &'g HotFiles<'_>),
    ) -> Result<Moved<'g>, Error> {
        let (bundle, bases, jobs) = (self.bundle, self.bases, self.options.jobs);
        let (selection, mut hand) = (builder.selection, Walk::default());
        builder.make_directories(&mut hand)?;
        builder.premade = self.make_hot_set(builder, &mut hand)?;
        let builder = &*builder;
        builder.make_large(&mut hand)?;
        let (first, rest) = from_base::lacking(builder, self.order);
        from_base::copy(builder, bases, &first, jobs)?;
        let files = num::wide(selection.regulars.len() + selection.others.len());
        self.progress.enter(Phase::Unpacking, selection.reads.stored_bytes(), files);
        let is_gathered = !gathered.is_empty();
        if self.order.is_some() && bundle.layout.landmark.is_none() && !is_gathered {
            // The delta brings nothing of the hot set.
            self.progress.first_is_written();
        }
        Delivery::new((bundle, bases), &selection.reads, jobs, self.progress).telling(!is_gathered).run(
            input,
            Walk::default,
            |hand, content| builder.take(hand, content),
            |hand, object| builder.finish_large(hand, object),
        )?;
        from_base::copy(builder, bases, &rest, jobs)?;
        let mut moved = None;
        if is_gathered {
            let beside = self.state_len().saturating_add(self.sealing.room(&bundle.index, all));
            moved = self.write_hot_set(builder, gathered, beside)?;
            self.progress.first_is_written();
        }
        for &place in &selection.others {
            builder.make_other(&mut hand, place)?;
        }
        let mut from = Walk::default();
        for link in &selection.links {
            builder.link(&mut from, &mut hand, link)?;
        }
        Ok(moved)
    }
}
