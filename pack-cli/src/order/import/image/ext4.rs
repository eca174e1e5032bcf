//! Where files lie in an ext4 file system (Linux: Documentation/filesystems/ext4).

use sealift_format::num::{self, size};
use sealift_store::OrderFault;

use super::{FileSystem, Image, Node, Span, le16, le32};
use crate::order::import::Fault;

const SUPERBLOCK: usize = 1024;
const MAGIC: u16 = 0xef53;
const ROOT: u64 = 2;
/// Incompatible features: EXTENTS is required, IS_64_BIT is supported, and with any of the others the file system is refused.
const META_BG: u32 = 0x10;
const EXTENTS: u32 = 0x40;
const IS_64_BIT: u32 = 0x80;
const ENCRYPT: u32 = 0x1_0000;
const COMPRESSION: u32 = 0x1;
const JOURNAL_DEVICE: u32 = 0x8;
/// Flags of inodes.
const HAS_EXTENTS: u32 = 0x8_0000;
const EXTENT_MAGIC: u16 = 0xf30a;
/// Levels of an extent tree.
const DEEPEST: u16 = 5;
/// A length above this marks an extent that was allocated but not written; its length is the excess.
const UNWRITTEN: u16 = 32_768;
/// The size limit of a directory.
const MOST_DIRECTORY: u64 = 64 << 20;

pub(super) struct Ext4<'a> {
    image: &'a Image,
    block_len: u64,
    inode_len: u64,
    inodes: u32,
    inodes_per_group: u32,
    groups_at: u64,
    group_len: u64,
}

/// Blocks of an inode: the first one's number in the file and in the image, and how many.
struct Extent {
    logical: u64,
    block: u64,
    count: u64,
    is_written: bool,
}

/// Returns whether an image that begins with these bytes has an ext4 file system.
pub(super) fn is(head: &[u8]) -> bool {
    le16(head, SUPERBLOCK + 0x38) == MAGIC
}

impl<'a> Ext4<'a> {
    pub(super) fn open(image: &'a Image, head: &[u8]) -> Result<Self, Fault> {
        let head = &head[SUPERBLOCK.min(head.len())..];
        let features = le32(head, 0x60);
        let refused = |what| image.fault(1024, what);
        if features & EXTENTS == 0 {
            return Err(refused("an ext2 or ext3 file system, which is not supported").into());
        }
        if features & (META_BG | ENCRYPT | COMPRESSION | JOURNAL_DEVICE) != 0 {
            return Err(refused("an ext4 file system with unsupported features (such as meta_bg or encrypt)").into());
        }
        let shift = le32(head, 0x18);
        let (inode_len, group_len) = (u64::from(le16(head, 0x58)), le16(head, 0xfe));
        let group_len = if features & IS_64_BIT == 0 { 32 } else { u64::from(group_len) };
        let inodes_per_group = le32(head, 0x28);
        if shift > 6
            || !(128..=65_536).contains(&inode_len)
            || !(32..=1024).contains(&group_len)
            || inodes_per_group == 0
        {
            return Err(refused("the ext4 superblock is damaged").into());
        }
        let block_len = 1024 << shift;
        let groups_at = (u64::from(le32(head, 0x14)) + 1) * block_len;
        Ok(Self { image, block_len, inode_len, inodes: le32(head, 0), inodes_per_group, groups_at, group_len })
    }

    /// Returns an inode, and where it lies.
    fn inode(&self, number: u64) -> Result<(Vec<u8>, u64), Fault> {
        let index = u32::try_from(number).ok().filter(|number| (1..=self.inodes).contains(number));
        let index = index.ok_or(OrderFault::Whole("a directory entry has an invalid inode number"))? - 1;
        let (group, within) = (index / self.inodes_per_group, index % self.inodes_per_group);
        let group = self.image.bytes(self.groups_at + u64::from(group) * self.group_len, size(self.group_len))?;
        let high = if self.group_len >= 64 { le32(&group, 0x28) } else { 0 };
        let table = u64::from(high) << 32 | u64::from(le32(&group, 8));
        let place =
            table.checked_mul(self.block_len).and_then(|place| place.checked_add(u64::from(within) * self.inode_len));
        let place = place.ok_or(OrderFault::Whole("a group's table of inodes lies beyond the image"))?;
        Ok((self.image.bytes(place, 128)?, place))
    }

    /// Gives the extents of a tree to `take`.
    fn extents(
        &self,
        node: &[u8],
        place: u64,
        depth: Option<u16>,
        take: &mut dyn FnMut(Extent) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let fault = |what| Fault::from(self.image.fault(place, what));
        let (count, own) = (le16(node, 2), le16(node, 6));
        // Each level is one less deep, so that the tree ends.
        if le16(node, 0) != EXTENT_MAGIC || own > DEEPEST || depth.is_some_and(|depth| own != depth) {
            return Err(fault("an ext4 extent tree is damaged"));
        }
        let records = node[12..].chunks_exact(12).take(usize::from(count));
        for record in records {
            let logical = u64::from(le32(record, 0));
            if own > 0 {
                let block = u64::from(le16(record, 8)) << 32 | u64::from(le32(record, 4));
                let place = block.saturating_mul(self.block_len);
                let node = self.image.bytes(place, size(self.block_len))?;
                self.extents(&node, place, Some(own - 1), take)?;
                continue;
            }
            let len = le16(record, 4);
            let block = u64::from(le16(record, 6)) << 32 | u64::from(le32(record, 8));
            let is_written = len <= UNWRITTEN;
            let count = u64::from(if is_written { len } else { len - UNWRITTEN });
            take(Extent { logical, block, count, is_written })?;
        }
        Ok(())
    }

    /// Returns the names in a directory.
    fn names(&self, node: &[u8], place: u64, size: u64) -> Result<Vec<(Vec<u8>, u64)>, Fault> {
        let mut names = Vec::new();
        let mut read = 0;
        self.extents(node, place, None, &mut |extent| {
            for block in extent.block..extent.block + extent.count {
                let place = block.saturating_mul(self.block_len);
                read += self.block_len;
                if read > size.min(MOST_DIRECTORY) {
                    return Err(self.image.fault(place, "a directory exceeds its stated size, or is too large").into());
                }
                self.block_names(&self.image.bytes(place, num::size(self.block_len))?, place, &mut names)?;
            }
            Ok(())
        })?;
        Ok(names)
    }

    /// Adds the names in a block of a directory. Blocks of its hash tree are one record without a name.
    fn block_names(&self, block: &[u8], place: u64, names: &mut Vec<(Vec<u8>, u64)>) -> Result<(), Fault> {
        let mut rest = block;
        while rest.len() >= 8 {
            // A length of 65536 does not fit into 16 bits, and is written as one of these.
            let len = match le16(rest, 4) {
                0 | 65_535 => rest.len(),
                len => usize::from(len),
            };
            let (inode, name_len) = (le32(rest, 0), usize::from(rest[6]));
            let record = rest.get(..len).filter(|record| record.len() >= 8 + name_len);
            let record = record.ok_or_else(|| self.image.fault(place, "a record of an ext4 directory is damaged"))?;
            let name = &record[8..8 + name_len];
            if inode != 0 && !matches!(name, b"" | b"." | b"..") {
                names.push((name.to_vec(), u64::from(inode)));
            }
            rest = &rest[len..];
        }
        Ok(())
    }
}

impl FileSystem for Ext4<'_> {
    fn root(&self) -> u64 {
        ROOT
    }

    fn node(&mut self, number: u64, take: &mut dyn FnMut(Span) -> Result<(), OrderFault>) -> Result<Node, Fault> {
        let (inode, place) = self.inode(number)?;
        let size = u64::from(le32(&inode, 4)) | u64::from(le32(&inode, 0x6c)) << 32;
        let has_extents = le32(&inode, 0x20) & HAS_EXTENTS != 0;
        let (tree, at) = (&inode[0x28..0x64], place + 0x28);
        match le16(&inode, 0) >> 12 {
            0o04 if has_extents => self.names(tree, at, size).map(Node::Directory),
            0o04 => Err(self.image.fault(place, "an unsupported directory without extents (inline_data)").into()),
            0o10 => {
                // Without extents, the content is in the inode.
                if has_extents {
                    self.extents(tree, at, None, &mut |extent| {
                        let bytes = |blocks: u64| blocks.saturating_mul(self.block_len);
                        let (start, from) = (bytes(extent.block), bytes(extent.logical));
                        let len = bytes(extent.count);
                        if extent.is_written {
                            take(Span { place: start..start.saturating_add(len), within: from..from + len })?;
                        }
                        Ok(())
                    })?;
                }
                Ok(Node::File(size))
            }
            _ => Ok(Node::Other),
        }
    }
}
