//! EROFS (Linux: fs/erofs/erofs_fs.h).

mod clusters;
mod index;
mod inodes;

use super::anatomy::Anatomy;
use super::block::Hint;
use super::draft::Draft;
use super::fault::ContainerFault;
use super::reader::{Reader, le16, le32, le64};
use super::walk::walk;
use inodes::Erofs;

const SUPERBLOCK: u64 = 1024;
const MAGIC: u32 = 0xe0f5_e1e2;
/// Incompatible features that are known: padding with zeros before compressed data, configurations and big clusters, chunks, a second algorithm or
/// other devices, inline tails, the packed inode, and prefixes of attributes.
const ZERO_PADDING: u32 = 0x1;
const KNOWN: u32 = ZERO_PADDING | 0x2 | 0x4 | 0x8 | 0x10 | PACKED | 0x40;
const PACKED: u32 = 0x20;

/// The fields of the superblock that are used.
struct Superblock {
    block_bits: u32,
    directory_len: u64,
    inodes_at: u64,
    root: u64,
    /// The inode that holds the tails of files, and whole small ones.
    packed: Option<u64>,
    is_zero_padded: bool,
}

/// Returns whether a container that begins with these bytes is an EROFS file system.
pub(super) fn is(head: &[u8]) -> bool {
    le32(head, 1024) == MAGIC
}

/// Takes a file system apart.
pub(super) fn read(reader: &Reader<'_>) -> Result<Anatomy, ContainerFault> {
    let superblock = Superblock::read(reader)?;
    let mut draft = Draft::new(reader);
    let mut erofs = Erofs::new(reader, superblock);
    erofs.read_packed(&mut draft)?;
    walk(&mut erofs, reader, &mut draft)?;
    draft.finish(Hint::None)
}

impl Superblock {
    fn read(reader: &Reader<'_>) -> Result<Self, ContainerFault> {
        let head = reader.bytes(SUPERBLOCK, 128)?;
        let features = le32(&head, 80);
        if features & !KNOWN != 0 {
            return Err(reader.unsupported(SUPERBLOCK + 80, "an EROFS file system with unknown features"));
        }
        let byte = |at: usize| u32::from(head.get(at).copied().unwrap_or(0));
        let (block_bits, directory_bits) = (byte(12), byte(90));
        if !(9..=16).contains(&block_bits) || directory_bits > 4 {
            return Err(reader.damaged(SUPERBLOCK, "the EROFS superblock is damaged"));
        }
        let packed = le64(&head, 96);
        Ok(Self {
            block_bits,
            directory_len: 1 << (block_bits + directory_bits),
            inodes_at: u64::from(le32(&head, 40)) << block_bits,
            root: le16(&head, 14).into(),
            packed: (features & PACKED != 0 && packed != 0).then_some(packed),
            is_zero_padded: features & ZERO_PADDING != 0,
        })
    }

    fn block_len(&self) -> u64 {
        1 << self.block_bits
    }

    /// Returns where a block begins.
    fn place(&self, block: u64) -> u64 {
        block.saturating_mul(self.block_len())
    }
}
