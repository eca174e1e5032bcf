//! The map that says for each logical cluster of a compressed file where it is stored (Linux: fs/erofs/zmap.c).

use sealift_format::num::wide;

use super::inodes::Inode;
use crate::fault::ContainerFault;
use crate::reader::{Reader, le16, le32, le64, size};

/// Flags of a map.
const COMPACTED_2B: u16 = 0x1;
const BIG_CLUSTERS: u16 = 0x2;
const BIG_CLUSTERS_2: u16 = 0x4;
const INLINE: u16 = 0x8;
const INTERLACED: u16 = 0x10;
const FRAGMENT: u16 = 0x20;
const ADVICE: u16 = 0x3f;
/// Set in the first cluster after a head, if that is not a head itself: the other bits are then the number of the head's blocks.
const IS_COUNT: u32 = 1 << 11;

/// The map of a compressed file.
pub(super) struct Map {
    header_at: u64,
    advice: u16,
    /// The length of a logical cluster, as a power of two.
    pub(super) bits: u32,
    is_compact: bool,
    /// The algorithms of heads of the first and second kind.
    pub(super) algorithms: [u8; 2],
    /// Where the whole file lies in the packed inode, if it does.
    pub(super) all_packed_at: Option<u64>,
    /// Where in the packed inode its tail lies (the low 32 bits), if it does.
    pub(super) tail_packed_at: Option<u64>,
    /// The length of its compressed tail, which lies behind the map, if it does.
    pub(super) inline_tail_len: Option<u64>,
    clusters: u64,
}

/// What a logical cluster begins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Head {
    Plain,
    Compressed1,
    Compressed2,
}

/// A logical cluster.
#[derive(Clone, Copy)]
pub(super) enum Cluster {
    /// What is stored together begins in it.
    Head {
        head: Head,
        /// Where in the cluster it begins.
        within: u64,
        block: u64,
    },
    /// It goes on.
    Rest {
        /// The number of blocks of the preceding head, if this cluster states it.
        count: Option<u64>,
    },
}

impl Map {
    pub(super) fn read(reader: &Reader<'_>, inode: &Inode, block_bits: u32) -> Result<Self, ContainerFault> {
        let header_at = inode.end.next_multiple_of(8);
        let header = reader.bytes(header_at, 8)?;
        let (advice, byte) = (le16(&header, 4), |at: usize| header.get(at).copied().unwrap_or(0));
        let bits = block_bits + u32::from(byte(7) & 7);
        let is_compact = inode.layout == 3;
        let all_packed_at = (byte(7) & 0x80 != 0).then(|| le64(&header, 0) & !(1 << 63));
        if all_packed_at.is_none() && advice & !ADVICE != 0 {
            return Err(reader.unsupported(header_at, "an EROFS map of clusters has an unknown form"));
        }
        let has = |flag| advice & flag != 0;
        Ok(Self {
            header_at,
            advice,
            bits,
            is_compact,
            algorithms: [byte(6) & 0xf, byte(6) >> 4],
            all_packed_at,
            tail_packed_at: has(FRAGMENT).then(|| le32(&header, 0).into()),
            inline_tail_len: has(INLINE).then(|| le16(&header, 2).into()),
            clusters: inode.len.div_ceil(1 << bits),
        })
    }

    pub(super) fn is_interlaced(&self) -> bool {
        self.advice & INTERLACED != 0
    }

    pub(super) fn is_compact(&self) -> bool {
        self.is_compact
    }

    /// Returns the number of logical clusters.
    pub(super) fn clusters(&self) -> u64 {
        self.clusters
    }

    /// Returns whether heads of this kind may have several blocks.
    pub(super) fn is_big(&self, head: Head) -> bool {
        match head {
            Head::Plain => false,
            Head::Compressed1 => self.advice & BIG_CLUSTERS != 0,
            Head::Compressed2 => self.advice & BIG_CLUSTERS_2 != 0,
        }
    }

    /// Reads a logical cluster.
    pub(super) fn cluster(&self, reader: &Reader<'_>, number: u64) -> Result<Cluster, ContainerFault> {
        if !self.is_compact {
            let record = reader.bytes(self.header_at + 16 + number * 8, 8)?;
            let advice = le16(&record, 0);
            let Some(head) = head(u32::from(advice)) else {
                let low = u32::from(le16(&record, 4));
                return Ok(Cluster::Rest { count: counted(low) });
            };
            let (within, block) = (u64::from(le16(&record, 2)), u64::from(le32(&record, 4)));
            return Ok(Cluster::Head { head, within, block });
        }
        let Group { at, count, index } = self.group(number);
        let (group_len, most_bits) = if count == 2 { (8, 14) } else { (32, 12) };
        if self.bits > most_bits {
            return Err(reader.unsupported(self.header_at, "an EROFS map of clusters has an unknown form"));
        }
        let bytes = reader.bytes(at, group_len)?;
        let low_bits = self.bits.max(12);
        let each = (wide(group_len) - 4) * 8 / count;
        let decode = |index: u64| {
            let bit = index * each;
            let word = le32(&bytes, size(bit / 8)) >> (bit % 8);
            (word & ((1 << low_bits) - 1), head(word >> low_bits))
        };
        let (low, Some(head)) = decode(index) else { return Ok(Cluster::Rest { count: counted(decode(index).0) }) };
        let base = le32(&bytes, group_len - 4);
        let blocks = self.blocks_before(index, decode);
        Ok(Cluster::Head { head, within: low.into(), block: u64::from(base) + blocks })
    }

    /// Returns how many blocks the heads before one in its group have. The group states the block of the first one; each takes one block, or as
    /// many as it says.
    fn blocks_before(&self, index: u64, decode: impl Fn(u64) -> (u32, Option<Head>)) -> u64 {
        let is_big = self.advice & BIG_CLUSTERS != 0;
        let mut blocks = u64::from(!is_big);
        let mut left = index;
        while let Some(previous) = left.checked_sub(1) {
            left = previous;
            let (low, head) = decode(left);
            if head.is_some() {
                blocks += 1;
            } else if let Some(count) = counted(low).filter(|_| is_big) {
                (left, blocks) = (left.saturating_sub(1), blocks + count);
            } else if is_big {
                left = left.saturating_sub(u64::from(low).saturating_sub(2));
            } else {
                left = match left.checked_sub(low.into()) {
                    Some(left) => {
                        blocks += 1;
                        left
                    }
                    None => 0,
                };
            }
        }
        blocks
    }

    /// Returns where the records end, behind which an inline tail lies.
    pub(super) fn end(&self) -> u64 {
        let Some(last) = self.clusters.checked_sub(1) else { return self.header_at + 8 };
        if !self.is_compact {
            return self.header_at + 16 + self.clusters * 8;
        }
        let Group { at, count, .. } = self.group(last);
        at + if count == 2 { 8 } else { 32 }
    }

    /// Returns the group of compact records that has a cluster's: records of 4 bytes up to a multiple of 32, then of 2 bytes in groups of 16, then
    /// of 4 again.
    fn group(&self, number: u64) -> Group {
        let start = self.header_at + 8;
        let first = ((32 - start % 32) / 4) % 8;
        let middle = if self.advice & COMPACTED_2B != 0 { self.clusters.saturating_sub(first) / 16 * 16 } else { 0 };
        if number < first {
            return Group { at: start + number / 2 * 8, count: 2, index: number % 2 };
        }
        let number = number - first;
        if number < middle {
            return Group { at: start + first * 4 + number / 16 * 32, count: 16, index: number % 16 };
        }
        let number = number - middle;
        Group { at: start + first * 4 + middle * 2 + number / 2 * 8, count: 2, index: number % 2 }
    }
}

/// A group of compact records: where it lies, how many records it has, and the number of one in it.
struct Group {
    at: u64,
    count: u64,
    index: u64,
}

/// Returns the kind of head that the lowest two bits say, if they say one.
fn head(bits: u32) -> Option<Head> {
    match bits & 3 {
        0 => Some(Head::Plain),
        1 => Some(Head::Compressed1),
        3 => Some(Head::Compressed2),
        _ => None,
    }
}

fn counted(low: u32) -> Option<u64> {
    (low & IS_COUNT != 0).then(|| u64::from(low & !IS_COUNT))
}
