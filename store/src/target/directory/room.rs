//! Whether the target's file system has room for what is unpacked.

use sealift_format::Blocks;

use super::job::Job;
use super::plan::Selection;
use crate::directory::TreeStage;
use crate::directory::stage::Leftovers;
use crate::fs::stat_cache::StatCache;
use crate::{Error, Site};

/// The magic number of xfs (statfs(2)).
const XFS: rustix::fs::FsWord = 0x5846_5342;

/// The free space of a file system.
pub(super) struct Room {
    pub(super) bytes: u64,
    /// `None` if inodes are allocated on demand.
    inodes: Option<u64>,
    /// The bytes that a new inode needs.
    inode_len: u64,
    pub(super) blocks: Blocks,
}

/// Returns the free space of the file system of a target.
pub(super) fn room(site: &Site) -> Result<Room, Error> {
    let failed = |error| Error::io("look at", site.ground_path(), error);
    let room = rustix::fs::fstatvfs(site.ground()).map_err(failed)?;
    // A file system without blocks, such as ramfs, has no limit either.
    let bytes = if room.f_blocks == 0 { u64::MAX } else { room.f_bavail.saturating_mul(room.f_frsize) };
    let inodes = (room.f_files > 0).then_some(room.f_favail);
    let kind = rustix::fs::fstatfs(site.ground()).map_err(failed)?.f_type;
    // xfs counts as free the inodes that it could make from free blocks.
    let inode_len = if kind == XFS { 512 } else { 0 };
    Ok(Room { bytes, inodes, inode_len, blocks: Blocks::new(room.f_frsize) })
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

    /// As [`Self::check_room`], before a stage is made.
    pub(super) fn expect_room(&self, selection: &Selection, beside: u64) -> Result<u64, Error> {
        match self.site.has_stage()? {
            // What an interrupted run left there is not examined, and already covers some of the need.
            true => room(self.site).map(|room| room.bytes),
            false => self.compare_room(selection, beside, &Leftovers::default()),
        }
    }

    pub(super) fn compare_room(&self, selection: &Selection, beside: u64, held: &Leftovers) -> Result<u64, Error> {
        let room = room(self.site)?;
        let needed = selection.inodes().saturating_sub(held.inodes);
        let path = self.site.ground_path();
        if let Some(free) = room.inodes.filter(|free| *free < needed) {
            return Err(Error::NoInodes { path: path.to_owned(), needed, free });
        }
        let of_inodes = needed.saturating_mul(room.inode_len);
        let needed = self.disk(selection).saturating_add(beside).saturating_sub(held.bytes).saturating_add(of_inodes);
        if room.bytes < needed {
            return Err(Error::NoSpace { path: path.to_owned(), needed, free: room.bytes, reserved: 0 });
        }
        Ok(room.bytes)
    }
}
