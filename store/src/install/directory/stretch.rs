//! Contiguous space for many files. ext4 places files of up to 16 blocks elsewhere than larger ones, so files that are written one after the other
//! do not lie one after the other. Therefore the space for all of them is reserved at once, in one file, and each gets its part of it.

use std::fs::File;
use std::os::fd::{BorrowedFd, OwnedFd};

use crate::kernel::{exchange_blocks, page_len};
use rustix::fs::{FallocateFlags, FsWord, fallocate, fstatfs, ftruncate};

use crate::fs::unnamed::unnamed_in;

/// The magic number of ext4 (statfs(2)), the only file system that can exchange blocks between files.
const EXT4: FsWord = 0xEF53;

/// Reserved space, handed out to files in turn.
pub(super) struct Stretch {
    file: File,
    block_len: u64,
    /// A file's part begins at a multiple of this: at a block that is the first of a page.
    align: u64,
    /// The bytes already handed out.
    at: u64,
}

impl Stretch {
    /// Reserves space for files of these lengths; `None` if the file system cannot hand it out, or has too little.
    pub(super) fn reserve(directory: BorrowedFd<'_>, lens: impl Iterator<Item = u64>) -> Option<Self> {
        let kind = fstatfs(directory).ok().filter(|kind| kind.f_type == EXT4)?;
        let block_len = u64::try_from(kind.f_bsize).ok().filter(|len| *len > 0)?;
        let align = block_len.max(page_len().ok()?);
        let len = lens.map(|len| len.next_multiple_of(align)).fold(0, u64::saturating_add);
        let file = unnamed_in(directory).ok()?;
        fallocate(&file, FallocateFlags::empty(), 0, len).ok()?;
        Some(Self { file, block_len, align, at: 0 })
    }

    /// Gives its part of the space, and this length, to an empty file that is open for reading and writing. Returns whether that was possible:
    /// otherwise the file is empty again.
    pub(super) fn give(&mut self, file: &OwnedFd, len: u64) -> bool {
        let blocks = len.next_multiple_of(self.block_len);
        // Both files have only unwritten blocks there, so the exchange copies no content.
        let given = fallocate(file, FallocateFlags::empty(), 0, len).is_ok()
            && exchange_blocks(file, &self.file, self.at, blocks, self.block_len).is_ok();
        if !given {
            // Frees the blocks that fallocate gave it: the file system would place the file's content elsewhere.
            let _ = ftruncate(file, 0);
            return false;
        }
        // Frees the blocks that the file had before the exchange.
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let _ = fallocate(&self.file, hole, self.at, blocks);
        self.at += blocks.next_multiple_of(self.align);
        true
    }
}
