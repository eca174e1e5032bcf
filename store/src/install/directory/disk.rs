//! The disk space that files take on a file system like ext4, with blocks of the length that it reports: more exact than the sum in the root
//! (core 4.4), which knows neither that length nor the blocks of runs and of hash trees.

use crate::fs::FreeSpace;
use sealift_format::num::wide;
use sealift_format::{Extent, Index, Inode, InodeKind, Layout, Row, Xattrs, data_ranges};

/// A file system with blocks of one length. Results that exceed 2^64-1 bytes are 2^64-1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blocks {
    len: u64,
}

/// Runs of data for which an inode has room.
const RUNS_WITHIN: u64 = 4;
/// Bytes of a run in a block of runs, and of such a block's header and checksum.
const RUN_LEN: u64 = 12;
const RUNS_FRAME_LEN: u64 = 16;
/// Bytes of a directory's first block that are not available for names: `.`, `..` and a checksum.
const DIRECTORY_FRAME_LEN: u64 = 36;
/// Bytes of a directory entry without its name, and of an extended attribute without name and value.
const ENTRY_LEN: u64 = 8;
const XATTR_LEN: u64 = 16;
/// Bytes of a symbolic link's target, and of extended attributes, for which an inode of 256 bytes has room.
const TARGET_WITHIN: usize = 59;
const XATTRS_WITHIN: u64 = 88;

fn padded(len: usize) -> u64 {
    wide(len).next_multiple_of(4)
}

impl Blocks {
    /// Returns the blocks of a file system.
    pub(crate) fn of(free: &FreeSpace) -> Self {
        Self { len: free.block_len }
    }

    fn round_up(self, len: u64) -> u64 {
        len.checked_next_multiple_of(self.len).unwrap_or(u64::MAX)
    }

    /// Returns the bytes that the content of a regular file takes.
    pub(crate) fn file(self, holes: &[Extent], size: u64) -> u64 {
        let (mut data, mut runs) = (0_u64, 0_u64);
        for range in data_ranges(holes, 0..size) {
            data = data.saturating_add(range.end - range.start);
            runs += 1;
        }
        let of_runs = match runs {
            0..=RUNS_WITHIN => 0,
            more => more.div_ceil((self.len - RUNS_FRAME_LEN) / RUN_LEN).saturating_mul(self.len),
        };
        self.round_up(data).saturating_add(of_runs)
    }

    /// Returns the bytes that a directory with names of these lengths takes.
    pub(crate) fn directory(self, names: impl Iterator<Item = usize>) -> u64 {
        let entries = names.fold(0_u64, |sum, len| sum.saturating_add(padded(len) + ENTRY_LEN));
        if entries <= self.len - DIRECTORY_FRAME_LEN {
            return self.len;
        }
        // A hash tree: a root block, and leaves that are two thirds full.
        self.round_up(entries.saturating_add(entries / 2)).saturating_add(self.len)
    }

    /// Returns the bytes that a symbolic link takes.
    pub(crate) fn symlink(self, target: &[u8]) -> u64 {
        if target.len() > TARGET_WITHIN { self.len } else { 0 }
    }

    /// Returns the bytes that the extended attributes of one inode take.
    pub(crate) fn xattrs(self, xattrs: &Xattrs) -> u64 {
        let sum = xattrs.iter().fold(0_u64, |sum, xattr| {
            // The namespace is stored as a number.
            let name =
                xattr.name.iter().position(|byte| *byte == b'.').map_or(xattr.name, |dot| &xattr.name[dot + 1..]);
            sum.saturating_add(XATTR_LEN + padded(name.len()) + padded(xattr.value.len()))
        });
        if sum > XATTRS_WITHIN { self.len } else { 0 }
    }
}

/// The disk space that each inode of a bundle takes.
#[derive(Clone, Debug)]
pub(crate) struct DiskUse<'a> {
    index: &'a Index,
    blocks: Blocks,
    /// The bytes for each object and for each attribute row, computed once: otherwise the time would grow with the number of files times that of
    /// their holes or attributes.
    contents: Vec<u64>,
    attributes: Vec<u64>,
}

impl<'a> DiskUse<'a> {
    /// Computes the disk space for an index, given the layout of its objects.
    pub(crate) fn new(index: &'a Index, layout: &Layout, blocks: Blocks) -> Self {
        let objects = Row::all(index.objects());
        let contents = objects.map(|(number, object)| blocks.file(layout.holes_of(number), object.size)).collect();
        let attributes = index.attribute_rows().iter().map(|row| blocks.xattrs(&row.xattrs)).collect();
        Self { index, blocks, contents, attributes }
    }

    /// Returns the bytes that an inode of the index takes, however many names it has.
    pub(crate) fn of(&self, inode: &Inode) -> u64 {
        let own = match inode.kind {
            InodeKind::Directory(directory) => {
                let entries = self.index.directory(directory).entries();
                self.blocks.directory(entries.map(|entry| self.index.name(self.index.entry(entry)).len()))
            }
            InodeKind::Regular(object) => self.contents[object.at()],
            InodeKind::Symlink(symlink) => self.blocks.symlink(self.index.symlink_target(symlink)),
            InodeKind::CharDevice(_) | InodeKind::BlockDevice(_) | InodeKind::Fifo | InodeKind::Socket => 0,
        };
        own.saturating_add(self.attributes[inode.attributes.at()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sealift_format::Xattr;

    const BLOCK: u64 = 4096;
    const USUAL: Blocks = Blocks { len: BLOCK };

    #[test]
    fn a_file_takes_whole_blocks_of_data() {
        let holes = |count: u64| (0..count).map(|hole| Extent { start: 1 + hole * 17, len: 16 }).collect::<Vec<_>>();
        for (holes, size, blocks) in [
            (holes(0), 0, 0),
            (holes(0), 1, 1),
            (holes(0), BLOCK, 1),
            (holes(0), BLOCK + 1, 2),
            (vec![Extent { start: 0, len: 100 }], 100 * BLOCK, 0),
            // The inode has room for four runs.
            (holes(3), (3 * 17 + 1) * BLOCK, 4),
            (holes(4), 4 * 17 * BLOCK, 4),
            (holes(4), (4 * 17 + 1) * BLOCK, 5 + 1),
            (holes(339), (339 * 17 + 1) * BLOCK, 340 + 1),
            (holes(340), (340 * 17 + 1) * BLOCK, 341 + 2),
        ] {
            assert_eq!(USUAL.file(&holes, size), blocks * BLOCK, "{size} bytes, {} holes", holes.len());
        }
        assert_eq!(USUAL.file(&[], u64::MAX), u64::MAX);
    }

    #[test]
    fn a_directory_takes_what_its_names_need() {
        let of = |count, len| USUAL.directory(std::iter::repeat_n(len, count)) / BLOCK;
        assert_eq!([of(0, 0), of(1, 255), of(203, 10), of(338, 1), of(339, 4)], [1, 1, 1, 1, 3]);
        // One block has room for 4060 bytes of entries.
        assert_eq!([of(145, 20), of(146, 20)], [1, 3]);
        assert_eq!(of(100_000, 10), 734);
    }

    #[test]
    fn links_and_attributes_take_blocks_where_an_inode_is_too_small() {
        assert_eq!([59, 60].map(|len| USUAL.symlink(&[b'x'; 60][..len])), [0, BLOCK]);
        let xattrs = |list: &[(&[u8], usize)]| {
            let xattr = |(name, len): &(&[u8], usize)| Xattr { name: name.to_vec(), value: vec![1; *len] };
            USUAL.xattrs(&list.iter().map(xattr).collect::<Vec<_>>().try_into().expect("they fit"))
        };
        let selinux: (&[u8], usize) = (b"security.selinux", 37);
        for (list, len) in [
            (&[][..], 0),
            (&[selinux], 0),
            (&[(b"security.capability", 20), (b"user.x", 17)], 0),
            (&[(b"security.capability", 20), (b"user.x", 21)], BLOCK),
            (&[(b"security.ima", 64)], 0),
            (&[(b"security.ima", 65), selinux], BLOCK),
            (&[(b"nodot", 64)], 0),
            (&[(b"nodot", 65)], BLOCK),
        ] {
            assert_eq!(xattrs(list), len, "{list:?}");
        }
    }

    #[test]
    fn files_take_blocks_of_the_length_of_the_file_system() {
        let of = |len| Blocks { len };
        assert_eq!((of(1024).file(&[], 1), of(1 << 20).file(&[], 1)), (1024, 1 << 20));
        assert_eq!(of(65_536).directory(std::iter::empty()), 65_536);
    }
}
