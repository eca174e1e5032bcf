//! Where files lie in a squashfs file system, version 4.0 (Linux: fs/squashfs/squashfs_fs.h).

use std::collections::HashMap;
use std::io::Read as _;
use std::rc::Rc;

use lzma_rust2::XzReader;
use sealift_format::num::{at, wide};
use sealift_store::OrderFault;

use super::{FileSystem, Image, Node, Span, le16, le32, le64};
use crate::order::import::Fault;

const MAGIC: &[u8] = b"hsqs";
/// The bytes of a block of inodes, names or tables.
const BLOCK_LEN: usize = 8192;
/// What decoding a block of xz may take, in KiB. Its dictionary is no longer than a block of data.
const XZ_MEMORY: u32 = 4096;
const NO_FRAGMENT: u32 = u32::MAX;
/// Blocks that are kept decoded: 32 MiB.
const KEPT: usize = 4096;
/// Entries of a block of the fragment table.
const ENTRIES: u32 = 512;
/// The size limit of a directory.
const MOST_DIRECTORY: u32 = 64 << 20;

pub(super) struct Squashfs<'a> {
    image: &'a Image,
    codec: Codec,
    block_len: u64,
    root: u64,
    inodes_at: u64,
    names_at: u64,
    fragments: u32,
    fragments_at: u64,
    kept: HashMap<u64, Rc<Block>>,
}

#[derive(Clone, Copy)]
enum Codec {
    Gzip,
    Xz,
    Lz4,
    Zstd,
}

impl Codec {
    /// Returns what a block of metadata decodes to, if it does.
    fn decoded(self, stored: &[u8]) -> Option<Vec<u8>> {
        let mut decoded = vec![0; BLOCK_LEN];
        let len = match self {
            Self::Gzip => libdeflater::Decompressor::new().zlib_decompress(stored, &mut decoded).ok()?,
            Self::Xz => {
                let mut reader = XzReader::new_mem_limit(stored, false, XZ_MEMORY).take(wide(BLOCK_LEN));
                decoded.clear();
                reader.read_to_end(&mut decoded).ok()?
            }
            Self::Lz4 => lz4_flex::block::decompress_into(stored, &mut decoded).ok()?,
            Self::Zstd => zstd_safe::decompress(&mut decoded[..], stored).ok()?,
        };
        decoded.truncate(len);
        Some(decoded)
    }
}

/// A decoded block, and where the next one lies.
struct Block {
    bytes: Vec<u8>,
    next: u64,
}

/// A place in decoded blocks.
#[derive(Clone, Copy)]
struct Position {
    block: u64,
    within: usize,
}

/// Returns whether an image that begins with these bytes has a squashfs file system.
pub(super) fn is(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

impl<'a> Squashfs<'a> {
    pub(super) fn open(image: &'a Image, head: &[u8]) -> Result<Self, Fault> {
        let refused = |what| Fault::from(image.fault(0, what));
        if head.len() < 96 || le16(head, 28) != 4 {
            return Err(refused("a squashfs file system of a version other than 4"));
        }
        let codec = match le16(head, 20) {
            1 => Codec::Gzip,
            4 => Codec::Xz,
            5 => Codec::Lz4,
            6 => Codec::Zstd,
            _ => return Err(refused("a squashfs file system whose compressor is none of gzip, xz, lz4 and zstd")),
        };
        let block_len = u64::from(le32(head, 12));
        if !(4096..=1 << 20).contains(&block_len) || !block_len.is_power_of_two() {
            return Err(refused("the squashfs superblock is damaged"));
        }
        Ok(Self {
            image,
            codec,
            block_len,
            root: le64(head, 32),
            inodes_at: le64(head, 64),
            names_at: le64(head, 72),
            fragments: le32(head, 16),
            fragments_at: le64(head, 80),
            kept: HashMap::new(),
        })
    }

    /// Returns a decoded block.
    fn block(&mut self, place: u64) -> Result<Rc<Block>, Fault> {
        if let Some(block) = self.kept.get(&place) {
            return Ok(Rc::clone(block));
        }
        let header = le16(&self.image.bytes(place, 2)?, 0);
        let len = usize::from(header & 0x7fff);
        let stored = self.image.bytes(place + 2, len)?;
        let damaged = || Fault::from(self.image.fault(place, "a block of squashfs metadata is damaged"));
        let bytes = if header & 0x8000 != 0 {
            stored
        } else {
            self.image.pay(wide(BLOCK_LEN))?;
            self.codec.decoded(&stored).ok_or_else(damaged)?
        };
        if bytes.is_empty() || bytes.len() > BLOCK_LEN {
            return Err(damaged());
        }
        let block = Rc::new(Block { bytes, next: place + 2 + wide(len) });
        if self.kept.len() == KEPT {
            self.kept.clear();
        }
        self.kept.insert(place, Rc::clone(&block));
        Ok(block)
    }

    /// Returns the next bytes, which may continue in the next block.
    fn take(&mut self, place: &mut Position, len: usize) -> Result<Vec<u8>, Fault> {
        self.image.pay(wide(len))?;
        let mut bytes = Vec::new();
        while bytes.len() < len {
            let block = self.block(place.block)?;
            let rest = block.bytes.get(place.within..).unwrap_or_default();
            let part = &rest[..rest.len().min(len - bytes.len())];
            bytes.extend(part);
            place.within += part.len();
            if part.is_empty() && place.within > block.bytes.len() {
                return Err(self.image.fault(place.block, "a squashfs inode lies beyond its block").into());
            }
            if place.within == block.bytes.len() {
                *place = Position { block: block.next, within: 0 };
            }
        }
        Ok(bytes)
    }

    /// Returns the names in a directory.
    fn names(&mut self, (block, within): (u32, u16), size: u32) -> Result<Vec<(Vec<u8>, u64)>, Fault> {
        // The size counts 3 bytes for the names . and .., which are not stored.
        let mut left = size.saturating_sub(3);
        if left > MOST_DIRECTORY {
            return Err(OrderFault::Whole("a squashfs directory is too large").into());
        }
        let start = self.names_at.saturating_add(block.into());
        let mut place = Position { block: start, within: within.into() };
        let mut names = Vec::new();
        let short = || OrderFault::Whole("a squashfs directory is damaged");
        while left > 0 {
            let header = self.take(&mut place, 12)?;
            left = left.checked_sub(12).ok_or_else(short)?;
            let inodes = u64::from(le32(&header, 4)) << 16;
            for _ in 0..=le32(&header, 0).min(255) {
                let entry = self.take(&mut place, 8)?;
                let len = u32::from(le16(&entry, 6)) + 1;
                left = left.checked_sub(8 + len).ok_or_else(short)?;
                names.push((self.take(&mut place, at(len))?, inodes | u64::from(le16(&entry, 0))));
            }
        }
        Ok(names)
    }

    /// Gives the spans of a regular file to `take`.
    fn spans(
        &mut self,
        mut list: Position,
        size: u64,
        mut start: u64,
        fragment: u32,
        take: &mut dyn FnMut(Span) -> Result<(), OrderFault>,
    ) -> Result<(), Fault> {
        let blocks = if fragment == NO_FRAGMENT { size.div_ceil(self.block_len) } else { size / self.block_len };
        for number in 0..blocks {
            let stored = u64::from(le32(&self.take(&mut list, 4)?, 0) & 0xff_ffff);
            let from = number * self.block_len;
            let end = start.checked_add(stored).ok_or(OrderFault::Whole("a squashfs file lies beyond the image"))?;
            take(Span { place: start..end, within: from..size.min(from + self.block_len) })?;
            start = end;
        }
        if fragment != NO_FRAGMENT {
            let (start, stored) = self.fragment(fragment)?;
            let end = start.saturating_add(u64::from(stored & 0xff_ffff));
            take(Span { place: start..end, within: blocks * self.block_len..size })?;
        }
        Ok(())
    }

    /// Returns where the block of a fragment lies, and its length.
    fn fragment(&mut self, number: u32) -> Result<(u64, u32), Fault> {
        if number >= self.fragments {
            return Err(OrderFault::Whole("a squashfs file has an invalid fragment number").into());
        }
        let pointer = self.fragments_at.saturating_add(u64::from(number / ENTRIES) * 8);
        let block = le64(&self.image.bytes(pointer, 8)?, 0);
        let mut place = Position { block, within: at(number % ENTRIES) * 16 };
        let entry = self.take(&mut place, 16)?;
        Ok((le64(&entry, 0), le32(&entry, 8)))
    }
}

impl FileSystem for Squashfs<'_> {
    fn root(&self) -> u64 {
        self.root
    }

    fn node(&mut self, inode: u64, take: &mut dyn FnMut(Span) -> Result<(), OrderFault>) -> Result<Node, Fault> {
        let block = self.inodes_at.saturating_add(inode >> 16);
        let mut place =
            Position { block, within: usize::from(inode.to_le_bytes()[0]) | usize::from(inode.to_le_bytes()[1]) << 8 };
        let kind = le16(&self.take(&mut place, 16)?, 0);
        match kind {
            1 => {
                let rest = self.take(&mut place, 16)?;
                self.names((le32(&rest, 0), le16(&rest, 10)), le16(&rest, 8).into()).map(Node::Directory)
            }
            8 => {
                let rest = self.take(&mut place, 24)?;
                self.names((le32(&rest, 8), le16(&rest, 18)), le32(&rest, 4)).map(Node::Directory)
            }
            2 => {
                let rest = self.take(&mut place, 16)?;
                let size = u64::from(le32(&rest, 12));
                self.spans(place, size, le32(&rest, 0).into(), le32(&rest, 4), take)?;
                Ok(Node::File(size))
            }
            9 => {
                let rest = self.take(&mut place, 40)?;
                let size = le64(&rest, 8);
                self.spans(place, size, le64(&rest, 0), le32(&rest, 28), take)?;
                Ok(Node::File(size))
            }
            3..=7 | 10..=14 => Ok(Node::Other),
            _ => Err(self.image.fault(block, "a squashfs inode is of an unknown type").into()),
        }
    }
}
