//! Directories and files of an ext4 file system.

use sealift_format::num::at;

use super::Superblock;
use super::block_map::BlockMap;
use super::run::Run;
use super::{extents, inline};
use crate::anatomy::Part;
use crate::draft::Draft;
use crate::fault::ContainerFault;
use crate::parts::{PART, Parts};
use crate::reader::{Reader, le16, le32, size};
use crate::walk::{FileSystem, Names, Node, target};

const ROOT: u64 = 2;
/// Flags of inodes.
const HAS_EXTENTS: u32 = 0x8_0000;
const IS_INLINE: u32 = 0x1000_0000;
const IS_ENCRYPTED: u32 = 0x800;
/// Targets of symbolic links of fewer bytes lie in the inode.
const FAST_SYMLINK: u32 = 60;
/// The size limit of a directory.
const MOST_DIRECTORY: u64 = 64 << 20;

pub(super) struct Ext4<'a> {
    reader: &'a Reader<'a>,
    superblock: Superblock,
}

impl<'a> Ext4<'a> {
    pub(super) fn new(reader: &'a Reader<'a>, superblock: Superblock) -> Self {
        Self { reader, superblock }
    }

    /// Returns an inode, and where it lies.
    fn inode(&self, number: u64) -> Result<(Vec<u8>, u64), ContainerFault> {
        let Superblock { inodes, inodes_per_group, groups_at, group_len, block_len, inode_len } = self.superblock;
        let index = u32::try_from(number).ok().filter(|number| (1..=inodes).contains(number));
        let index = index.ok_or_else(|| self.reader.damaged(0, "a directory entry has an invalid inode number"))? - 1;
        let (group, within) = (index / inodes_per_group, index % inodes_per_group);
        let group_at = groups_at + u64::from(group) * group_len;
        let group = self.reader.bytes(group_at, size(group_len))?;
        let high = if group_len >= 64 { le32(&group, 0x28) } else { 0 };
        let table = u64::from(high) << 32 | u64::from(le32(&group, 8));
        let place = table.checked_mul(block_len).and_then(|place| place.checked_add(u64::from(within) * inode_len));
        let beyond = || self.reader.damaged(group_at, "a group's table of inodes lies beyond the end");
        let place = place.ok_or_else(beyond)?;
        Ok((self.reader.bytes(place, size(inode_len))?, place))
    }

    /// Returns the content of an inode of so many bytes.
    fn parts(&self, inode: &[u8], place: u64, len: u64) -> Result<Parts, ContainerFault> {
        let flags = le32(inode, 0x20);
        let tree = inode.get(0x28..0x64).unwrap_or_default();
        if flags & IS_ENCRYPTED != 0 {
            return Err(self.reader.unsupported(place, "an encrypted file of an ext4 file system"));
        }
        if flags & IS_INLINE != 0 {
            return Ok(inline::parts(inode, place, len));
        }
        let mut parts = Parts::default();
        let block_len = self.superblock.block_len;
        let mut take = |run: Run| {
            self.reader.hold(PART)?;
            let from = run.logical.saturating_mul(block_len);
            if from < parts.len() {
                return Err(self.reader.damaged(place, "the blocks of an ext4 file overlap or are out of order"));
            }
            // Blocks beyond the end of the file are reserved for it, and not part of it.
            parts.extend_to(from.min(len));
            let part_len = run.count.saturating_mul(block_len).min(len.saturating_sub(from));
            parts.push(Part::Stored { offset: run.block.saturating_mul(block_len), len: part_len });
            Ok(())
        };
        if flags & HAS_EXTENTS != 0 {
            extents::visit(self.reader, block_len, (tree, place + 0x28), None, &mut take)?;
        } else {
            BlockMap { reader: self.reader, block_len, blocks: len.div_ceil(block_len) }.visit(tree, &mut take)?;
        }
        parts.extend_to(len);
        Ok(parts)
    }

    /// Returns the names in a directory.
    fn names(&self, inode: &[u8], place: u64) -> Result<Names, ContainerFault> {
        let len = u64::from(le32(inode, 4));
        if len > MOST_DIRECTORY {
            return Err(self.reader.limit("an ext4 directory is too large"));
        }
        let mut names = Vec::new();
        let is_inline = le32(inode, 0x20) & IS_INLINE != 0;
        for (number, part) in (0..).zip(self.parts(inode, place, len)?.into_list()) {
            let Part::Stored { mut offset, len } = part else { continue };
            let end = offset.saturating_add(len);
            // The first part of an inline directory begins with the number of its parent.
            offset += if is_inline && number == 0 { 4 } else { 0 };
            while offset < end {
                let block_len = if is_inline { end - offset } else { self.superblock.block_len.min(end - offset) };
                self.add_names(&self.reader.bytes(offset, size(block_len))?, offset, &mut names)?;
                offset += block_len;
            }
        }
        Ok(names)
    }

    /// Adds the names in a block of a directory. Blocks of its hash tree are one record without a name.
    fn add_names(&self, block: &[u8], place: u64, names: &mut Names) -> Result<(), ContainerFault> {
        let mut rest = block;
        while rest.len() >= 8 {
            // A length of 65536 does not fit into 16 bits, and is written as one of these.
            let len = match le16(rest, 4) {
                0 | 65_535 => rest.len(),
                len => usize::from(len),
            };
            let (inode, name_len) = (le32(rest, 0), rest.get(6).copied().map_or(0, usize::from));
            let damaged = || self.reader.damaged(place, "a record of an ext4 directory is damaged");
            let name = rest.get(..len).and_then(|record| record.get(8..8 + name_len)).ok_or_else(damaged)?;
            if inode != 0 && !matches!(name, b"" | b"." | b"..") {
                names.push((name.to_vec(), u64::from(inode)));
            }
            rest = rest.get(len..).unwrap_or_default();
        }
        Ok(())
    }
}

impl FileSystem for Ext4<'_> {
    fn root(&self) -> u64 {
        ROOT
    }

    fn node(&mut self, number: u64, _: &mut Draft<'_>) -> Result<Node, ContainerFault> {
        let (inode, place) = self.inode(number)?;
        match le16(&inode, 0) >> 12 {
            0o04 => self.names(&inode, place).map(Node::Directory),
            0o10 => {
                let len = u64::from(le32(&inode, 4)) | u64::from(le32(&inode, 0x6c)) << 32;
                if i64::try_from(len).is_err() {
                    return Err(self.reader.damaged(place, "an ext4 inode has an impossible length"));
                }
                self.parts(&inode, place, len).map(Node::File)
            }
            0o12 => {
                let len = le32(&inode, 4);
                // A short target lies where the map of blocks would be (kernel: ext4_inode_is_fast_symlink).
                match inode.get(0x28..0x28 + at(len)).filter(|_| len < FAST_SYMLINK) {
                    Some(target) => Ok(Node::Symlink(target.to_vec())),
                    None => target(self.parts(&inode, place, len.into())?, self.reader),
                }
            }
            _ => Ok(Node::Other),
        }
    }
}
