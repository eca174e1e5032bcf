//! squashfs 4.0 (Linux: fs/squashfs/squashfs_fs.h).

mod inodes;
mod metadata;
mod options;
mod tables;

use super::anatomy::Anatomy;
use super::block::BlockCodec;
use super::draft::Draft;
use super::fault::ContainerFault;
use super::reader::{Reader, le16, le32, le64};
use super::walk::walk;
use inodes::Squashfs;

const MAGIC: &[u8] = b"hsqs";
/// The bytes of the superblock.
const SUPERBLOCK: usize = 96;

/// The fields of the superblock that are used.
#[derive(Clone, Copy)]
struct Superblock {
    codec: BlockCodec,
    block_len: u64,
    has_options: bool,
    fragments: u32,
    ids: u16,
    root: u64,
    ids_at: u64,
    xattrs_at: u64,
    inodes_at: u64,
    names_at: u64,
    fragments_at: u64,
    inodes: u32,
    export_at: u64,
}

/// Returns whether a container that begins with these bytes is a squashfs file system.
pub(super) fn is(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

/// Takes a file system apart: contents and fragments, then the blocks of its tables.
pub(super) fn read(reader: &Reader<'_>) -> Result<Anatomy, ContainerFault> {
    let superblock = Superblock::read(reader)?;
    let mut draft = Draft::new(reader);
    let mut squashfs = Squashfs::new(reader, superblock);
    walk(&mut squashfs, reader, &mut draft)?;
    tables::add(reader, &superblock, squashfs.metadata(), &mut draft)?;
    draft.finish(options::hint(reader, &superblock)?)
}

impl Superblock {
    fn read(reader: &Reader<'_>) -> Result<Self, ContainerFault> {
        let head = reader.bytes(0, SUPERBLOCK)?;
        if le16(&head, 28) != 4 {
            return Err(reader.unsupported(28, "a squashfs file system of a version other than 4"));
        }
        let codec = match le16(&head, 20) {
            1 => BlockCodec::Zlib,
            4 => BlockCodec::Xz,
            5 => BlockCodec::Lz4Block,
            6 => BlockCodec::Zstd,
            _ => {
                let what = "a squashfs file system whose compressor is none of gzip, xz, lz4 and zstd";
                return Err(reader.unsupported(20, what));
            }
        };
        let block_len = u64::from(le32(&head, 12));
        if !(4096..=1 << 20).contains(&block_len) || !block_len.is_power_of_two() {
            return Err(reader.damaged(12, "the squashfs superblock is damaged"));
        }
        Ok(Self {
            codec,
            block_len,
            has_options: le16(&head, 24) & 0x400 != 0,
            fragments: le32(&head, 16),
            ids: le16(&head, 26),
            root: le64(&head, 32),
            ids_at: le64(&head, 48),
            xattrs_at: le64(&head, 56),
            inodes_at: le64(&head, 64),
            names_at: le64(&head, 72),
            fragments_at: le64(&head, 80),
            inodes: le32(&head, 4),
            export_at: le64(&head, 88),
        })
    }
}
