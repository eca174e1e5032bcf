//! Space for many files that lies together. ext4 allocates small files and those of more than 16 blocks in different places, so that files which
//! are written in turn do not lie in turn: the space for all of them is reserved at once, in one file, and each gets its part of it.

use std::fs::File;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{FallocateFlags, FsWord, fallocate, fstatfs, ftruncate};
use sealift_verify::kernel::{exchange_blocks, page_len};

use crate::fs::unnamed::unnamed_in;

/// The magic number of ext4 (statfs(2)), which alone exchanges blocks of files.
const EXT4: FsWord = 0xEF53;

/// Reserved space, which files get in turn.
pub(super) struct Stretch {
    file: File,
    block_len: u64,
    /// Where a file's part may begin: at a block that is a page's first.
    align: u64,
    /// How much of it was given away.
    at: u64,
}

impl Stretch {
    /// Reserves space for files of these lengths; `None` where it cannot be given to them, or there is too little.
    pub(super) fn reserve(directory: BorrowedFd<'_>, lens: impl Iterator<Item = u64>) -> Option<Self> {
        let kind = fstatfs(directory).ok().filter(|kind| kind.f_type == EXT4)?;
        let block_len = u64::try_from(kind.f_bsize).ok().filter(|len| *len > 0)?;
        let align = block_len.max(page_len().ok()?);
        let len = lens.map(|len| len.next_multiple_of(align)).fold(0, u64::saturating_add);
        let file = unnamed_in(directory).ok()?;
        fallocate(&file, FallocateFlags::empty(), 0, len).ok()?;
        Some(Self { file, block_len, align, at: 0 })
    }

    /// Gives an empty file that is open for reading and writing its space, and this length. Returns whether that was possible:
    /// otherwise it is empty again.
    pub(super) fn give(&mut self, file: &OwnedFd, len: u64) -> bool {
        let blocks = len.next_multiple_of(self.block_len);
        // Both have unwritten blocks there, so that no content is copied.
        let given = fallocate(file, FallocateFlags::empty(), 0, len).is_ok()
            && exchange_blocks(file, &self.file, self.at, blocks, self.block_len).is_ok();
        if !given {
            // Its own blocks are where the file system would not put it.
            let _ = ftruncate(file, 0);
            return false;
        }
        // What the file had before is free again.
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let _ = fallocate(&self.file, hole, self.at, blocks);
        self.at += blocks.next_multiple_of(self.align);
        true
    }
}
