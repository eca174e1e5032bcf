//! ext2, ext3 and ext4 (Linux: Documentation/filesystems/ext4).

mod block_map;
mod extents;
mod inline;
mod inodes;
mod run;

use super::anatomy::Anatomy;
use super::block::Hint;
use super::draft::Draft;
use super::fault::ContainerFault;
use super::reader::{Reader, le16, le32};
use super::walk::walk;
use inodes::Ext4;

const SUPERBLOCK: u64 = 1024;
const MAGIC: u16 = 0xef53;
/// Incompatible features that are known: types in directories, a journal to replay, extents, 64 bits, multiple mounts, flexible groups, attributes
/// in inodes, a checksum's seed, large directories, inline data, and names without case.
const RECOVER: u32 = 0x4;
const IS_64_BIT: u32 = 0x80;
const KNOWN: u32 = 0x2 | RECOVER | 0x40 | IS_64_BIT | 0x100 | 0x200 | 0x400 | 0x2000 | 0x4000 | 0x8000 | 0x2_0000;

/// The fields of the superblock that are used.
struct Superblock {
    block_len: u64,
    inode_len: u64,
    inodes: u32,
    inodes_per_group: u32,
    groups_at: u64,
    group_len: u64,
}

/// Returns whether a container that begins with these bytes is such a file system.
pub(super) fn is(head: &[u8]) -> bool {
    le16(head, 1024 + 0x38) == MAGIC
}

/// Takes a file system apart.
pub(super) fn read(reader: &Reader<'_>) -> Result<Anatomy, ContainerFault> {
    let superblock = Superblock::read(reader)?;
    let mut draft = Draft::new(reader);
    walk(&mut Ext4::new(reader, superblock), reader, &mut draft)?;
    draft.finish(Hint::None)
}

impl Superblock {
    fn read(reader: &Reader<'_>) -> Result<Self, ContainerFault> {
        let head = reader.bytes(SUPERBLOCK, 1024)?;
        let features = le32(&head, 0x60);
        if features & !KNOWN != 0 {
            let what = "an ext4 file system with unsupported features (such as meta_bg or encrypt)";
            return Err(reader.unsupported(SUPERBLOCK + 0x60, what));
        }
        let shift = le32(&head, 0x18);
        // The first revision has no field for the length of inodes.
        let inode_len = if le32(&head, 0x4c) == 0 { 128 } else { u64::from(le16(&head, 0x58)) };
        let group_len = if features & IS_64_BIT == 0 { 32 } else { u64::from(le16(&head, 0xfe)) };
        let inodes_per_group = le32(&head, 0x28);
        if shift > 6
            || !(128..=65_536).contains(&inode_len)
            || !(32..=1024).contains(&group_len)
            || inodes_per_group == 0
        {
            return Err(reader.damaged(SUPERBLOCK, "the ext4 superblock is damaged"));
        }
        let block_len = 1024 << shift;
        // They follow the superblock's block.
        let groups_at = (SUPERBLOCK / block_len + 1) * block_len;
        Ok(Self { block_len, inode_len, inodes: le32(&head, 0), inodes_per_group, groups_at, group_len })
    }
}
