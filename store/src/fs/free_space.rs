//! The free space of a file system. All kinds of targets and the state ask here, and so do a run and its dry run.

use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::fs::{FsWord, fstatfs, fstatvfs};
use rustix::io::Errno;
use sealift_format::BLOCK_LEN;

use crate::Error;

/// The magic number of xfs (statfs(2)).
const XFS: FsWord = 0x5846_5342;
/// File systems whose clusters may be larger than any block of others: exFAT and ntfs3 (linux/magic.h and fs/ntfs3/super.c of the kernel).
const IN_CLUSTERS: [FsWord; 2] = [0x2011_BAB0, 0x7366_746E];
/// The largest block of a file system, and the largest cluster (exFAT 3.1.15).
const BLOCK_LEN_MAX: u64 = 64 << 10;
const CLUSTER_LEN_MAX: u64 = 32 << 20;

/// What is free on a file system for this user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreeSpace {
    /// Free bytes; `u64::MAX` on a file system without blocks, such as ramfs, which has no limit.
    pub bytes: u64,
    /// Free inodes; `None` if they are allocated on demand.
    pub inodes: Option<u64>,
    /// Bytes that a new inode needs.
    pub inode_len: u64,
    /// Bytes in which files are allocated: 4096 where the file system, such as one of the network, reports something else.
    pub block_len: u64,
    /// Bytes of the whole file system.
    pub size: u64,
}

impl FreeSpace {
    /// Returns what is free on the file system of an open directory.
    pub fn of(directory: BorrowedFd<'_>) -> Result<Self, Errno> {
        let stat = fstatvfs(directory)?;
        let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
        // xfs counts as free the inodes that it could make from free blocks.
        let kind = fstatfs(directory)?.f_type;
        let inode_len = if kind == XFS { 512 } else { 0 };
        Ok(Self {
            bytes: if stat.f_blocks == 0 { u64::MAX } else { bytes(stat.f_bavail) },
            // Some file systems do not count inodes.
            inodes: (stat.f_files > 0).then_some(stat.f_favail),
            inode_len,
            block_len: block_len(kind, stat.f_frsize),
            size: bytes(stat.f_blocks),
        })
    }

    /// Returns whether not even an empty file can be made.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.bytes == 0 || self.inodes == Some(0)
    }

    /// Checks that there is space for that many bytes and inodes at `path`.
    ///
    /// # Errors
    /// Returns [`Error::NoInodes`] or [`Error::NoSpace`].
    pub fn check(&self, path: &Path, bytes: u64, inodes: u64) -> Result<(), Error> {
        if let Some(free) = self.inodes.filter(|free| *free < inodes) {
            return Err(Error::NoInodes { path: path.to_owned(), needed: inodes, free });
        }
        let needed = bytes.saturating_add(inodes.saturating_mul(self.inode_len));
        if self.bytes < needed {
            return Err(Error::NoSpace { path: path.to_owned(), needed, free: self.bytes, reserved: 0 });
        }
        Ok(())
    }
}

/// Returns the length in which a file system of this kind allocates, from what it reports.
fn block_len(kind: FsWord, reported: u64) -> u64 {
    let max = if IN_CLUSTERS.contains(&kind) { CLUSTER_LEN_MAX } else { BLOCK_LEN_MAX };
    if reported.is_power_of_two() && (512..=max).contains(&reported) { reported } else { BLOCK_LEN }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_a_usual_length() {
        const NFS: FsWord = 0x6969;
        for (kind, reported, expected) in [
            (XFS, 1024, 1024),
            (XFS, 65_536, 65_536),
            (NFS, 1 << 20, 4096),
            (IN_CLUSTERS[0], 128 << 10, 128 << 10),
            (IN_CLUSTERS[1], 2 << 20, 2 << 20),
            (IN_CLUSTERS[0], 64 << 20, 4096),
        ] {
            assert_eq!(block_len(kind, reported), expected, "{kind:#x}, {reported}");
        }
        for reported in [0, 1, 256, 1000, u64::MAX] {
            assert_eq!(block_len(XFS, reported), 4096, "{reported}");
        }
    }

    const ROOMY: FreeSpace =
        FreeSpace { bytes: 100_000, inodes: Some(9), inode_len: 0, block_len: 4096, size: 200_000 };

    #[test]
    fn bytes_and_inodes_both_have_to_suffice() {
        let check = |free: FreeSpace, bytes, inodes| free.check(Path::new("here"), bytes, inodes);
        check(ROOMY, 100_000, 9).expect("it just fits");
        assert!(matches!(check(ROOMY, 100_001, 1), Err(Error::NoSpace { needed: 100_001, free: 100_000, .. })));
        assert!(matches!(check(ROOMY, 1, 10), Err(Error::NoInodes { needed: 10, free: 9, .. })));
        let uncounted = FreeSpace { inodes: None, inode_len: 512, ..ROOMY };
        check(uncounted, 0, 195).expect("they are made of blocks");
        assert!(matches!(check(uncounted, 0, 196), Err(Error::NoSpace { .. })));
        assert!(FreeSpace { bytes: 0, ..ROOMY }.is_full() && FreeSpace { inodes: Some(0), ..ROOMY }.is_full());
    }
}
