//! The free space that a repository's configuration reserves.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;

use super::config::MinFree;
use crate::fs::FreeSpace;

/// The bytes and the inodes that may still be taken.
#[derive(Debug)]
pub(crate) struct Room {
    left: AtomicU64,
    /// Free inodes at the beginning; `None` where they are made on demand.
    inodes: Option<u64>,
    reserved: u64,
}

/// Files take whole blocks of the usual size.
const BLOCK_LEN: u64 = 4096;

impl Room {
    /// Returns the space of the file system beyond `min_free`.
    pub(crate) fn of(directory: BorrowedFd<'_>, min_free: MinFree) -> Result<Self, Errno> {
        let free = FreeSpace::of(directory)?;
        let reserved = match min_free {
            MinFree::Bytes(bytes) => bytes,
            MinFree::Percent(percent) => free.size / free.block_len.max(1) / 100 * percent * free.block_len,
        };
        Ok(Self { left: AtomicU64::new(free.bytes.saturating_sub(reserved)), inodes: free.inodes, reserved })
    }

    /// Measures the free bytes again. Nothing that was taken may still be unwritten.
    pub(crate) fn measure(&self, directory: BorrowedFd<'_>) -> Result<(), Errno> {
        let free = FreeSpace::of(directory)?;
        self.left.store(free.bytes.saturating_sub(self.reserved), Ordering::Relaxed);
        Ok(())
    }

    /// Returns the bytes that stay free.
    pub(crate) fn reserved(&self) -> u64 {
        self.reserved
    }

    /// Checks that there is space for that many bytes; the error is the space that is left.
    pub(crate) fn check(&self, len: u64) -> Result<(), u64> {
        let left = self.left.load(Ordering::Relaxed);
        if len <= left { Ok(()) } else { Err(left) }
    }

    /// Checks that there are inodes for that many files; the error is the number that was free.
    pub(crate) fn check_inodes(&self, files: u64) -> Result<(), u64> {
        self.inodes.filter(|free| *free < files).map_or(Ok(()), Err)
    }

    /// Returns the space of a file of this many bytes.
    pub(crate) fn of_file(len: u64) -> u64 {
        len.div_ceil(BLOCK_LEN).saturating_mul(BLOCK_LEN)
    }

    /// Reserves the space of a file of this many bytes; the error is the space that is left.
    pub(crate) fn take(&self, len: u64) -> Result<(), u64> {
        let needed = Self::of_file(len);
        let take = |left: u64| left.checked_sub(needed);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).map(drop)
    }
}
