//! Whether the target's file system has room for what is unpacked.

use super::job::Job;
use super::plan::Selection;
use crate::directory::TreeStage;
use crate::directory::stage::Leftovers;
use crate::fs::FreeSpace;
use crate::fs::stat_cache::StatCache;
use crate::{Error, Site};

/// Returns the free space of the file system of a target.
pub(super) fn room(site: &Site) -> Result<FreeSpace, Error> {
    FreeSpace::of(site.ground()).map_err(|error| Error::io("look at", site.ground_path(), error))
}

impl Job<'_> {
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
        let free = room(self.site)?;
        let inodes = selection.inodes().saturating_sub(held.inodes);
        let bytes = self.disk(selection).saturating_add(beside).saturating_sub(held.bytes);
        free.check(self.site.ground_path(), bytes, inodes)?;
        Ok(free.bytes)
    }
}
