//! The blocks that inodes take on a disk (core 4.4).

use alloc::vec::Vec;

use super::{BLOCK_LEN, Extent, Layout};
use crate::num::wide;
use crate::{Index, Inode, InodeKind, Row, Xattrs};

/// Bytes that a name takes in a directory beside its own.
const NAME_FRAME_LEN: u64 = 16;
/// Bytes of a symbolic link's target, and of extended attributes, for which an inode has room.
const TARGET_WITHIN: usize = 59;
const XATTRS_WITHIN: u64 = 64;

/// The bytes that each inode of a bundle takes on a disk.
#[derive(Debug)]
pub(super) struct Disk<'a> {
    index: &'a Index,
    /// The blocks of each object and of each attribute row, counted once: otherwise the time would grow with the number of files times that of their
    /// holes or attributes.
    contents: Vec<u64>,
    attributes: Vec<u64>,
}

impl<'a> Disk<'a> {
    pub(super) fn new(index: &'a Index, layout: &Layout) -> Self {
        let objects = Row::all(index.objects());
        let contents = objects.map(|(number, object)| of_content(object.size, layout.holes_of(number))).collect();
        let attributes = index.attribute_rows().iter().map(|row| of_xattrs(&row.xattrs)).collect();
        Self { index, contents, attributes }
    }

    /// Returns the bytes that an inode of the index takes, however many names it has.
    pub(super) fn of(&self, inode: &Inode) -> u64 {
        let own = match inode.kind {
            InodeKind::Directory(directory) => {
                let entries = self.index.directory(directory).entries();
                of_names(entries.map(|entry| self.index.name(self.index.entry(entry)).len()))
            }
            InodeKind::Regular(object) => self.contents[object.at()],
            InodeKind::Symlink(symlink) => of_target(self.index.symlink_target(symlink).len()),
            InodeKind::CharDevice(_) | InodeKind::BlockDevice(_) | InodeKind::Fifo | InodeKind::Socket => 0,
        };
        (own + self.attributes[inode.attributes.at()]) * BLOCK_LEN
    }
}

fn of_content(size: u64, holes: &[Extent]) -> u64 {
    let holes: u64 = holes.iter().map(|hole| hole.len).sum();
    size.div_ceil(BLOCK_LEN).saturating_sub(holes)
}

fn of_names(lens: impl Iterator<Item = usize>) -> u64 {
    1 + lens.map(|len| wide(len) + NAME_FRAME_LEN).sum::<u64>() / BLOCK_LEN
}

fn of_target(len: usize) -> u64 {
    u64::from(len > TARGET_WITHIN)
}

fn of_xattrs(xattrs: &Xattrs) -> u64 {
    let len: u64 = xattrs.iter().map(|xattr| wide(xattr.name.len() + xattr.value.len())).sum();
    len.saturating_sub(XATTRS_WITHIN).div_ceil(BLOCK_LEN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Xattr;

    #[test]
    fn a_file_takes_the_blocks_outside_of_its_holes() {
        let hole = |start, len| Extent { start, len };
        for (size, holes, blocks) in [
            (0, &[][..], 0),
            (1, &[], 1),
            (4096, &[], 1),
            (4097, &[], 2),
            (100 * 4096, &[hole(0, 100)], 0),
            (100 * 4096 + 1, &[hole(0, 16), hole(17, 83)], 2),
            ((1 << 63) - 1, &[], 1 << 51),
        ] {
            assert_eq!(of_content(size, holes), blocks, "{size} bytes, {} holes", holes.len());
        }
    }

    #[test]
    fn names_take_their_length_and_sixteen_bytes() {
        let of = |count, len| of_names(core::iter::repeat_n(len, count));
        assert_eq!([of(0, 0), of(1, 255), of(255, 0), of(256, 0), of(128, 15), of(128, 16)], [1, 1, 1, 2, 1, 2]);
    }

    #[test]
    fn long_targets_and_attributes_take_blocks() {
        assert_eq!([59, 60, 4095].map(of_target), [0, 1, 1]);
        let of = |lens: &[usize]| {
            let xattr = |len: &usize| Xattr { name: b"user.n".to_vec(), value: alloc::vec![1; *len] };
            of_xattrs(&lens.iter().map(xattr).collect::<Vec<_>>().try_into().expect("they fit"))
        };
        assert_eq!([of(&[]), of(&[58]), of(&[59]), of(&[4154]), of(&[4155])], [0, 0, 1, 1, 2]);
        assert_eq!([of(&[26, 26]), of(&[26, 27])], [0, 1]);
    }
}
