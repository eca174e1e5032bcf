//! Blocks of inodes, names and tables: each has a header of two bytes, and decodes to at most 8 KiB.

use std::collections::HashMap;
use std::rc::Rc;

use sealift_format::num::wide;

use crate::block::BlockCodec;
use crate::decode::decoded;
use crate::fault::ContainerFault;
use crate::reader::{Reader, le16};

/// The bytes to which a block decodes, at most.
pub(super) const BLOCK_LEN: usize = 8192;
/// Blocks that are kept decoded: 32 MiB.
const KEPT: usize = 4096;

/// Reads metadata blocks, and keeps some.
pub(super) struct Metadata<'a> {
    reader: &'a Reader<'a>,
    codec: BlockCodec,
    kept: HashMap<u64, Rc<MetadataBlock>>,
}

/// A decoded block, and how it is stored.
pub(super) struct MetadataBlock {
    pub(super) bytes: Vec<u8>,
    pub(super) stored_len: u64,
    pub(super) is_compressed: bool,
    /// Where the next one begins.
    pub(super) next: u64,
}

/// A place in decoded blocks.
#[derive(Clone, Copy)]
pub(super) struct Position {
    pub(super) block: u64,
    pub(super) within: usize,
}

impl<'a> Metadata<'a> {
    pub(super) fn new(reader: &'a Reader<'a>, codec: BlockCodec) -> Self {
        Self { reader, codec, kept: HashMap::new() }
    }

    pub(super) fn codec(&self) -> BlockCodec {
        self.codec
    }

    /// Returns a decoded block.
    pub(super) fn block(&mut self, place: u64) -> Result<Rc<MetadataBlock>, ContainerFault> {
        if let Some(block) = self.kept.get(&place) {
            return Ok(Rc::clone(block));
        }
        let damaged = || self.reader.damaged(place, "a block of squashfs metadata is damaged");
        let header = le16(&self.reader.bytes(place, 2)?, 0);
        let len = usize::from(header & 0x7fff);
        let stored = self.reader.bytes(place + 2, len)?;
        let is_compressed = header & 0x8000 == 0;
        let bytes = if is_compressed {
            self.reader.pay(wide(BLOCK_LEN))?;
            decoded(self.codec, &stored, wide(BLOCK_LEN)).ok_or_else(damaged)?
        } else {
            stored
        };
        if bytes.is_empty() || bytes.len() > BLOCK_LEN {
            return Err(damaged());
        }
        let block = MetadataBlock { bytes, stored_len: wide(len), is_compressed, next: place + 2 + wide(len) };
        let block = Rc::new(block);
        if self.kept.len() == KEPT {
            self.kept.clear();
        }
        self.kept.insert(place, Rc::clone(&block));
        Ok(block)
    }

    /// Returns the next bytes, which may continue in the next block.
    pub(super) fn take(&mut self, place: &mut Position, len: usize) -> Result<Vec<u8>, ContainerFault> {
        self.reader.pay(wide(len))?;
        let mut bytes = Vec::new();
        while bytes.len() < len {
            let block = self.block(place.block)?;
            let rest = block.bytes.get(place.within..).unwrap_or_default();
            let part = rest.get(..len - bytes.len()).unwrap_or(rest);
            bytes.extend(part);
            place.within += part.len();
            if part.is_empty() && place.within > block.bytes.len() {
                return Err(self.reader.damaged(place.block, "a squashfs inode lies beyond its block"));
            }
            if place.within == block.bytes.len() {
                *place = Position { block: block.next, within: 0 };
            }
        }
        Ok(bytes)
    }
}
