//! Where files lie in an EROFS file system (Linux: fs/erofs/erofs_fs.h).

use sealift_format::num::{size, wide};
use sealift_store::OrderFault;

use super::{FileSystem, Image, Node, Span, le16, le32, le64};
use crate::order::import::Fault;

const SUPERBLOCK: usize = 1024;
const MAGIC: u32 = 0xe0f5_e1e2;
/// Inodes are numbered by their place, in units of so many bytes.
const SLOT: u64 = 32;
/// Incompatible features that only concern decoding, or that do not affect what is read here.
const BIG_PCLUSTER: u32 = 0x2;
const KNOWN: u32 = 0x1 | BIG_PCLUSTER | 0x4 | 0x8 | 0x10 | 0x20 | 0x40;
/// Flags of a map of clusters.
const COMPACTED_2B: u16 = 0x1;
const BIG_PCLUSTERS: u16 = 0x2 | 0x4;
/// Set in the first cluster after a head, if that is not a head itself: the other bits are then the number of the head's blocks.
const IS_COUNT: u32 = 1 << 11;
const NON_HEAD: u32 = 2;
const NULL: u32 = u32::MAX;
/// The size limit of a directory.
const MOST_DIRECTORY: u64 = 64 << 20;

pub(super) struct Erofs<'a> {
    image: &'a Image,
    block_len: u64,
    block_bits: u32,
    directory_len: u64,
    inodes_at: u64,
    root: u64,
}

/// An inode.
struct Inode {
    place: u64,
    layout: u16,
    kind: u16,
    size: u64,
    /// The field that each layout uses in its own way.
    own: u32,
    /// Where it ends, with its extended attributes.
    end: u64,
}

/// A logical cluster of a compressed file.
struct Cluster {
    is_head: bool,
    /// Where in the cluster the head begins.
    within: u64,
    block: u64,
    /// The number of blocks of the preceding head, if this cluster states it.
    count: Option<u64>,
}

/// Returns whether an image that begins with these bytes has an EROFS file system.
pub(super) fn is(head: &[u8]) -> bool {
    le32(head, SUPERBLOCK) == MAGIC
}

impl<'a> Erofs<'a> {
    pub(super) fn open(image: &'a Image, head: &[u8]) -> Result<Self, Fault> {
        let head = &head[SUPERBLOCK.min(head.len())..];
        let refused = |what| Fault::from(image.fault(1024, what));
        if le32(head, 80) & !KNOWN != 0 {
            return Err(refused("an EROFS file system with unknown features"));
        }
        let byte = |at: usize| u32::from(head.get(at).copied().unwrap_or(0));
        let (block_bits, directory_bits) = (byte(12), byte(90));
        if !(9..=16).contains(&block_bits) || directory_bits > 4 {
            return Err(refused("the EROFS superblock is damaged"));
        }
        let block_len = 1_u64 << block_bits;
        Ok(Self {
            image,
            block_len,
            block_bits,
            directory_len: block_len << directory_bits,
            inodes_at: u64::from(le32(head, 40)) * block_len,
            root: u64::from(le16(head, 14)),
        })
    }

    fn inode(&self, number: u64) -> Result<Inode, Fault> {
        let place = number.checked_mul(SLOT).and_then(|place| place.checked_add(self.inodes_at));
        let place = place.ok_or(OrderFault::Whole("a directory entry has an invalid inode number"))?;
        let compact = self.image.bytes(place, 32)?;
        let format = le16(&compact, 0);
        let (is_extended, layout) = (format & 1 != 0, format >> 1 & 7);
        let (size, len) = if is_extended { (le64(&compact, 8), 64) } else { (u64::from(le32(&compact, 8)), 32) };
        let xattrs = match u64::from(le16(&compact, 2)) {
            0 => 0,
            count => 12 + 4 * (count - 1),
        };
        if i64::try_from(size).is_err() {
            return Err(self.image.fault(place, "an EROFS inode is damaged").into());
        }
        let (kind, own) = (le16(&compact, 4) >> 12, le32(&compact, 16));
        Ok(Inode { place, layout, kind, size, own, end: place + len + xattrs })
    }

    /// Gives the spans of an inode's content to `take`.
    fn spans(&self, inode: &Inode, take: &mut dyn FnMut(Span) -> Result<(), Fault>) -> Result<(), Fault> {
        let damaged = || Fault::from(self.image.fault(inode.place, "an EROFS inode is damaged"));
        let plain = |start: u64, within: std::ops::Range<u64>| {
            let end = start.checked_add(within.end - within.start).ok_or_else(damaged)?;
            Ok::<_, Fault>(Span { place: start..end, within })
        };
        let start = u64::from(inode.own) * self.block_len;
        match inode.layout {
            0 => take(plain(start, 0..inode.size)?),
            2 => {
                let whole = inode.size / self.block_len * self.block_len;
                if whole > 0 {
                    take(plain(start, 0..whole)?)?;
                }
                if whole < inode.size {
                    take(plain(inode.end, whole..inode.size)?)?;
                }
                Ok(())
            }
            4 => self.chunks(inode, take),
            1 | 3 => self.clusters(inode, take),
            _ => Err(damaged()),
        }
    }

    /// Gives the spans of a file that is stored in chunks.
    fn chunks(&self, inode: &Inode, take: &mut dyn FnMut(Span) -> Result<(), Fault>) -> Result<(), Fault> {
        let chunk_len = self.block_len << (inode.own & 0x1f);
        let has_indexes = inode.own & 0x20 != 0;
        let len = if has_indexes { 8 } else { 4 };
        let mut place = inode.end.next_multiple_of(len);
        let mut from = 0;
        while from < inode.size {
            let to = inode.size.min(from + chunk_len);
            let record = self.image.bytes(place, usize::from(has_indexes) * 4 + 4)?;
            let (device, block) =
                if has_indexes { (le16(&record, 2), le32(&record, 4)) } else { (0, le32(&record, 0)) };
            // Chunks on other devices are not in this image.
            if block != NULL && device == 0 {
                let start = u64::from(block) * self.block_len;
                take(Span { place: start..start + (to - from), within: from..to })?;
            }
            (place, from) = (place + len, to);
        }
        Ok(())
    }

    /// Gives the spans of a compressed file: what is compressed together begins at a head cluster, and ends at the next one.
    fn clusters(&self, inode: &Inode, take: &mut dyn FnMut(Span) -> Result<(), Fault>) -> Result<(), Fault> {
        let header_at = inode.end.next_multiple_of(8);
        let header = self.image.bytes(header_at, 8)?;
        let (advice, bits) = (le16(&header, 4), header[7]);
        if bits & 0x80 != 0 {
            // All of it lies in the packed inode, which has no name.
            return Ok(());
        }
        let bits = self.block_bits + u32::from(bits & 7);
        let cluster_len = 1_u64 << bits;
        let map = Map { header_at, advice, bits, is_compact: inode.layout == 3 };
        // The preceding head: its offset in the file, its first block and its number of blocks.
        let mut before: Option<(u64, u64, u64)> = None;
        let mut end_of = |before: Option<(u64, u64, u64)>, to: u64| match before {
            Some((from, block, count)) if from < to => {
                let (start, len) = (block.saturating_mul(self.block_len), count.saturating_mul(self.block_len));
                take(Span { place: start..start.saturating_add(len), within: from..to })
            }
            _ => Ok(()),
        };
        for number in 0..inode.size.div_ceil(cluster_len) {
            let cluster = self.cluster(&map, number, inode)?;
            if cluster.is_head {
                let from = number * cluster_len + cluster.within;
                end_of(before, from.min(inode.size))?;
                before = Some((from, cluster.block, 1));
            } else if let Some(count) = cluster.count {
                before = before.map(|(from, block, _)| (from, block, count));
            }
        }
        end_of(before, inode.size)
    }

    /// Reads a logical cluster.
    fn cluster(&self, map: &Map, number: u64, inode: &Inode) -> Result<Cluster, Fault> {
        let is_big = map.advice & BIG_PCLUSTERS != 0;
        let counted = |low: u32| (is_big && low & IS_COUNT != 0).then(|| u64::from(low & !IS_COUNT));
        if !map.is_compact {
            let place = map.header_at + 16 + number * 8;
            let record = self.image.bytes(place, 8)?;
            let is_head = u32::from(le16(&record, 0) & 3) != NON_HEAD;
            let count = if is_head { None } else { counted(le16(&record, 4).into()) };
            let (within, block) = (u64::from(le16(&record, 2)), u64::from(le32(&record, 4)));
            return Ok(Cluster { is_head, within, block, count });
        }
        let start = map.header_at + 8;
        let total = inode.size.div_ceil(1 << map.bits);
        // Records of 4 bytes up to a multiple of 32, then of 2 bytes in groups of 16, then of 4 again.
        let first = ((32 - start % 32) / 4) % 8;
        let middle = if map.advice & COMPACTED_2B != 0 { total.saturating_sub(first) / 16 * 16 } else { 0 };
        let (group, len, index) = if number < first {
            (start + number / 2 * 8, 2, number % 2)
        } else if number < first + middle {
            let number = number - first;
            (start + first * 4 + number / 16 * 32, 16, number % 16)
        } else {
            let number = number - first - middle;
            (start + first * 4 + middle * 2 + number / 2 * 8, 2, number % 2)
        };
        let (group_len, most_bits) = if len == 2 { (8, 14) } else { (32, 12) };
        if map.bits > most_bits {
            return Err(self.image.fault(map.header_at, "an EROFS map of clusters has an unknown form").into());
        }
        let bytes = self.image.bytes(group, group_len)?;
        let low_bits = map.bits.max(12);
        let each = (wide(group_len) - 4) * 8 / len;
        let decode = |index: u64| {
            let bit = index * each;
            let word = le32(&bytes, size(bit / 8)) >> (bit % 8);
            (word & ((1 << low_bits) - 1), word >> low_bits & 3)
        };
        let (low, kind) = decode(index);
        if kind == NON_HEAD {
            return Ok(Cluster { is_head: false, within: 0, block: 0, count: counted(low) });
        }
        // A group states the block of its first head. Each preceding head in the group takes one block, or as many as it says.
        let mut blocks = u64::from(!is_big);
        let mut left = index;
        while let Some(previous) = left.checked_sub(1) {
            left = previous;
            let (low, kind) = decode(left);
            if kind != NON_HEAD {
                blocks += 1;
            } else if let Some(count) = counted(low) {
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
        let base = le32(&bytes, group_len - 4);
        Ok(Cluster { is_head: true, within: low.into(), block: u64::from(base) + blocks, count: None })
    }

    /// Returns the names in a directory.
    fn names(&self, inode: &Inode) -> Result<Vec<(Vec<u8>, u64)>, Fault> {
        let damaged = |what| Fault::from(self.image.fault(inode.place, what));
        if inode.size > MOST_DIRECTORY || matches!(inode.layout, 1 | 3) {
            return Err(damaged("an EROFS directory is compressed or too large, which is not supported"));
        }
        let mut content = Vec::new();
        self.spans(inode, &mut |span| {
            let len = span.place.end - span.place.start;
            content.extend(self.image.bytes(span.place.start, size(len))?);
            Ok(())
        })?;
        let mut names = Vec::new();
        for block in content.chunks(size(self.directory_len)) {
            let records = usize::from(le16(block, 8)) / 12;
            for number in 0..records {
                let record =
                    block.get(number * 12..number * 12 + 12).ok_or_else(|| damaged("an EROFS directory is damaged"))?;
                let start = usize::from(le16(record, 8));
                let end = if number + 1 < records { usize::from(le16(block, number * 12 + 20)) } else { block.len() };
                let name = block.get(start..end).ok_or_else(|| damaged("an EROFS directory is damaged"))?;
                let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
                if !matches!(name, b"." | b"..") {
                    names.push((name.to_vec(), le64(record, 0)));
                }
            }
        }
        Ok(names)
    }
}

/// The map that describes the clusters of a compressed file.
struct Map {
    header_at: u64,
    advice: u16,
    /// The length of a logical cluster, as a power of two.
    bits: u32,
    is_compact: bool,
}

impl FileSystem for Erofs<'_> {
    fn root(&self) -> u64 {
        self.root
    }

    fn node(&mut self, number: u64, take: &mut dyn FnMut(Span) -> Result<(), OrderFault>) -> Result<Node, Fault> {
        let inode = self.inode(number)?;
        match inode.kind {
            0o04 => self.names(&inode).map(Node::Directory),
            0o10 => {
                self.spans(&inode, &mut |span| Ok(take(span)?))?;
                Ok(Node::File(inode.size))
            }
            _ => Ok(Node::Other),
        }
    }
}
