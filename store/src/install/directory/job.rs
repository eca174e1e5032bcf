//! What a new tree and an update have in common: the settings, and what is expected of the target.

use std::collections::HashSet;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;

use sealift_format::Bundle;

use super::disk::Blocks;
use super::files::{Builder, has_reflinks};
use super::finished::Finished;
use super::installed::Installed;
use super::metadata::Privilege;
use super::plan::Selection;
use super::sealing::Sealing;
use super::stats::{Consent, UnpackStats, expected};
use super::trial::{Findings, Wanted};
use crate::base::Bases;
use crate::delivery::feed::requests;
use crate::directory::stage::Leftovers;
use crate::directory::{TreeStage, state};
use crate::fs::stat_cache::StatCache;
use crate::input::Input;
use crate::install::options::InstallOptions;
use crate::install_record::{self, NewRecord};
use crate::kept_order::KeptOrder;
use crate::seal::KernelSignature;
use crate::trust::{Admission, Survey, TargetId};
use crate::{Error, Keeps, Progress, Record, Site};

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

    /// Returns how many requests reading the selection takes, if the bundle is at an address.
    pub(super) fn requests(&self, input: &Input, selection: &Selection) -> Option<u64> {
        requests(input, &self.bundle.head, &self.bundle.layout.chunks, selection.reads.chunks())
    }

    /// Returns the record of a target that holds this very bundle: a killed run had finished, or the command is repeated.
    pub(super) fn complete(&self) -> Result<Option<Installed>, Error> {
        if self.sealing.is_on && !self.sealing.is_done(&self.bundle.head) {
            return Ok(None);
        }
        let installed = Installed::kept(self.site, self.options)?;
        Ok(installed.filter(|installed| installed.is_of(&self.bundle.head, self.reference)))
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

    /// Writes the next record of the target, a directory with this inode number, to the stage. Returns what happened to the signature for the kernel.
    ///
    /// # Errors
    /// Returns an error if what was sealed does not match the index.
    pub(super) fn write_record(
        &self,
        stage: &TreeStage,
        inode: u64,
        keeps: Keeps,
        had_linked_duplicates: bool,
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

    /// Makes the device remember that the target holds the bundle.
    pub(super) fn admit(&self) -> Result<(), Error> {
        self.admission.commit(Some(&TargetId::of_directory(self.site)?))
    }

    /// Returns the bytes that the selection needs on the target.
    pub(super) fn disk(&self, selection: &Selection) -> u64 {
        let disk = selection.disk(self.bundle, self.blocks, self.options.tree.hardlink_duplicates);
        disk.saturating_add(self.sealing.room(&self.bundle.index, &selection.regulars))
    }

    /// Returns the bytes of a new target's record.
    pub(super) fn state_len(&self) -> u64 {
        let (head, index) = (&self.bundle.head, &self.bundle.index);
        let lens = [head.head_len(), head.root().contents.index_len, StatCache::encoded_len(index.entries().len())];
        lens.iter().map(|len| self.blocks.file(&[], *len)).fold(0, u64::saturating_add)
    }

    /// Checks that the target's file system has the space needed for the selection and `beside` bytes, less what the stage already holds. Returns
    /// the free bytes.
    pub(super) fn check_room(&self, stage: &TreeStage, selection: &Selection, beside: u64) -> Result<u64, Error> {
        let held = stage.held(&self.bundle.index, &selection.directories)?;
        self.compare_room(selection, beside, &held)
    }

    /// As [`Self::check_room`], before a stage is made or opened.
    pub(super) fn expect_room(&self, selection: &Selection, beside: u64) -> Result<u64, Error> {
        self.compare_room(selection, beside, &Leftovers::beside(self.site)?)
    }

    pub(super) fn compare_room(&self, selection: &Selection, beside: u64, held: &Leftovers) -> Result<u64, Error> {
        let free = self.site.free_space()?;
        let inodes = selection.inodes().saturating_sub(held.inodes);
        let bytes = self.disk(selection).saturating_add(beside).saturating_sub(held.bytes);
        free.check(&self.site.ground_path(), bytes, inodes)?;
        Ok(free.bytes)
    }
}
