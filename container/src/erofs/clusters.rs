//! Where the content of a compressed EROFS file lies.

use sealift_format::num::{up_to, wide};

use super::index::{Cluster, Head, Map};
use super::inodes::{Erofs, Inode};
use crate::anatomy::Part;
use crate::block::{Block, BlockCodec, PlainLen};
use crate::draft::Draft;
use crate::fault::ContainerFault;
use crate::lz4_prefix::Prefix;
use crate::parts::{PART, Parts};

/// The most bytes that are compressed together (Linux: `Z_EROFS_PCLUSTER_MAX_DSIZE`).
const LONGEST: u64 = 12 << 20;
/// The most bytes to which they are compressed (Linux: `Z_EROFS_PCLUSTER_MAX_SIZE`).
const LONGEST_STORED: u64 = 1 << 20;
/// Bytes that are read to find where compressed data begin; more only if all of them are zeros.
const USUAL_PADDING: usize = 64;

/// What is stored together: where it begins in the file, and how it is stored.
#[derive(Clone, Copy)]
struct Extent {
    from: u64,
    head: Head,
    block: u64,
    /// The number of blocks.
    count: u64,
    /// The number of its cluster.
    cluster: u64,
}

impl Erofs<'_> {
    /// Returns the content of a compressed file: what is stored together begins at a head, and ends at the next one.
    pub(super) fn clusters(&self, inode: &Inode, draft: &mut Draft<'_>) -> Result<Parts, ContainerFault> {
        let map = Map::read(self.reader, inode, self.superblock.block_bits)?;
        let mut parts = Parts::default();
        if let Some(at) = map.all_packed_at {
            parts.push_range(&self.packed, at, inode.len);
            self.reader.hold(PART * wide(parts.count()))?;
            return self.complete(inode, parts);
        }
        let blocks = (1 << map.bits) / self.superblock.block_len();
        let mut before: Option<Extent> = None;
        for number in 0..map.clusters() {
            match map.cluster(self.reader, number)? {
                Cluster::Head { head, within, block } => {
                    let from = (number << map.bits) + within;
                    if from >= inode.len {
                        // It ends the file.
                        break;
                    }
                    match before {
                        Some(before) if before.from < from => self.extent(&map, &before, from, &mut parts, draft)?,
                        Some(_) => {}
                        None if from == 0 => {}
                        None => return Err(self.damaged(inode.place)),
                    }
                    before = Some(Extent { from, head, block, count: blocks, cluster: number });
                }
                Cluster::Rest { count: Some(count) } => {
                    before = before.map(|extent| match map.is_big(extent.head) && number == extent.cluster + 1 {
                        true => Extent { count, ..extent },
                        false => extent,
                    });
                }
                Cluster::Rest { count: None } => {}
            }
            self.reader.hold(PART)?;
        }
        if let Some(last) = before {
            self.tail(&map, &last, inode, &mut parts, draft)?;
        }
        self.complete(inode, parts)
    }

    fn complete(&self, inode: &Inode, parts: Parts) -> Result<Parts, ContainerFault> {
        if parts.len() == inode.len { Ok(parts) } else { Err(self.damaged(inode.place)) }
    }

    /// Adds the last extent, which may lie behind the map or in the packed inode.
    fn tail(
        &self,
        map: &Map,
        last: &Extent,
        inode: &Inode,
        parts: &mut Parts,
        draft: &mut Draft<'_>,
    ) -> Result<(), ContainerFault> {
        let len = inode.len - last.from;
        if let Some(low) = map.tail_packed_at {
            // Records of 8 bytes have the high bits in place of the block.
            let high = if map.is_compact() { 0 } else { last.block << 32 };
            let before = parts.count();
            parts.push_range(&self.packed, high | low, len);
            self.reader.hold(PART * wide(parts.count() - before))?;
            return Ok(());
        }
        match map.inline_tail_len {
            Some(stored_len) => self.stored(map, last, (map.end(), stored_len), len, parts, draft),
            None => self.extent(map, last, inode.len, parts, draft),
        }
    }

    /// Adds an extent that ends at an offset of the file.
    fn extent(
        &self,
        map: &Map,
        extent: &Extent,
        to: u64,
        parts: &mut Parts,
        draft: &mut Draft<'_>,
    ) -> Result<(), ContainerFault> {
        let place = (self.superblock.place(extent.block), self.superblock.place(extent.count));
        self.stored(map, extent, place, to - extent.from, parts, draft)
    }

    /// Adds bytes that are stored at an offset, in so many bytes.
    fn stored(
        &self,
        map: &Map,
        extent: &Extent,
        (offset, stored_len): (u64, u64),
        len: u64,
        parts: &mut Parts,
        draft: &mut Draft<'_>,
    ) -> Result<(), ContainerFault> {
        let damaged = || self.reader.damaged(offset, "a cluster of an EROFS file has an impossible length");
        if stored_len > LONGEST_STORED || len > LONGEST {
            return Err(damaged());
        }
        let algorithm = match extent.head {
            Head::Plain => {
                let rest = stored_len.checked_sub(len).ok_or_else(damaged)?;
                if map.is_interlaced() {
                    // What comes before the next multiple of a block's length is stored last.
                    let first = self.superblock.block_len() - extent.from % self.superblock.block_len();
                    let first_at = stored_len.checked_sub(first).ok_or_else(damaged)?;
                    parts.push(Part::Stored { offset: offset.saturating_add(first_at), len: first.min(len) });
                    parts.push(Part::Stored { offset, len: len.saturating_sub(first) });
                } else {
                    // Nothing follows but padding.
                    parts.push(Part::Stored { offset, len: stored_len - rest });
                }
                return Ok(());
            }
            Head::Compressed1 => map.algorithms[0],
            Head::Compressed2 => map.algorithms[1],
        };
        if algorithm != 0 {
            let what = "an EROFS file system that is compressed by another algorithm than lz4";
            return Err(self.reader.unsupported(offset, what));
        }
        let (offset, stored_len) = self.without_padding(offset, stored_len, len)?;
        // A file that shares a cluster may use less of it than another.
        let plain = PlainLen::Exactly(len);
        let block = draft.block(Block { offset, stored_len, codec: BlockCodec::Lz4Block, plain })?;
        parts.push(Part::Inflated { block, start: 0, len });
        Ok(())
    }

    /// Returns where compressed data begin, and their length. Images of today have zeros before them, so that they end where their blocks do; older
    /// ones have padding behind them.
    fn without_padding(&self, offset: u64, stored_len: u64, plain_len: u64) -> Result<(u64, u64), ContainerFault> {
        let damaged = || self.reader.damaged(offset, "a compressed cluster of an EROFS file is damaged");
        if !self.superblock.is_zero_padded {
            let bytes = self.reader.bytes(offset, up_to(stored_len, usize::MAX))?;
            self.reader.pay(plain_len)?;
            let prefix = Prefix::decoded(&bytes, up_to(plain_len, usize::MAX)).ok_or_else(damaged)?;
            // Where a file uses less than a cluster holds, its end is unknown.
            return Ok((offset, prefix.block_len.map_or(stored_len, wide)));
        }
        for len in [USUAL_PADDING, usize::MAX] {
            let len = up_to(stored_len, len);
            let bytes = self.reader.bytes(offset, len)?;
            if let Some(padding) = bytes.iter().position(|byte| *byte != 0) {
                return Ok((offset.saturating_add(wide(padding)), stored_len - wide(padding)));
            }
        }
        Err(damaged())
    }
}
