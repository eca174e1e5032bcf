//! Groups carried objects into chunks, each with its prefix.

use std::collections::HashSet;
use std::ops::Range;

use sealift_format::{BaseObject, BaseRange, Row, data_len};

use super::row;
use crate::pack::PackOptions;
use crate::pack::sequence::{PackedObject, Sequenced};
use sealift_store::base::Bases;

/// Size limits of a delta bundle's parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Memory for decoding a chunk, in bytes.
    pub(super) memory: u64,
    /// log2 of the piece size.
    pub(super) piece_log2: u8,
    /// Target size of a group in bytes.
    group: u64,
}

/// A planned chunk.
#[derive(Clone, Debug, Default)]
pub(super) struct Planned {
    /// The packed objects of a group.
    pub(super) objects: Vec<Row<PackedObject>>,
    /// A packed object and the number of its piece.
    pub(super) piece: Option<(Row<PackedObject>, u64)>,
    /// Size of its decoded data in bytes.
    pub(super) len: u64,
    pub(super) prefix: Vec<BaseRange>,
    /// Whether it is full of addresses.
    pub(super) has_addresses: bool,
    pub(super) is_hot: bool,
}

/// log2 of the largest piece: a browser's main library is three or four of them.
const PIECE_LOG2: u8 = 25;
/// The smallest object full of addresses that gets a chunk of its own.
const ADDRESSES_ALONE: u64 = 4 << 10;

impl Limits {
    pub(super) fn new(options: &PackOptions) -> Self {
        // A piece, its stored bytes, and a prefix of twice that.
        let piece_log2 = u8::try_from((options.delta_memory / 4).max(1 << 12).ilog2()).unwrap_or(PIECE_LOG2);
        Self { memory: options.delta_memory, piece_log2: piece_log2.min(PIECE_LOG2), group: options.chunk_len }
    }

    pub(super) fn piece_len(&self) -> u64 {
        1 << self.piece_log2
    }

    /// Returns the greatest prefix length for a chunk of `len` bytes, which may be stored uncompressed.
    fn prefix_room(&self, len: u64) -> u64 {
        self.memory.saturating_sub(2 * len).min(u32::MAX.into())
    }
}

/// A carried object, or a range of it, at its turn in the order of storage.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    pub(super) object: Row<PackedObject>,
    /// In bytes. Of a large object, the pieces that contain it are stored, unless they already are.
    pub(super) range: Range<u64>,
    pub(super) is_hot: bool,
}

/// Plans the chunks of the carried objects, in the order of `wishes`. `choice` has for each of the carried objects the base objects that resemble it,
/// the best first.
pub(super) fn plan(
    packed: &Sequenced,
    wishes: &[Wish],
    carried: &[Row<PackedObject>],
    choice: &[Vec<Row<BaseObject>>],
    bases: &Bases,
    limits: &Limits,
) -> Vec<Planned> {
    let mut planned: Vec<Planned> = Vec::new();
    let mut open = Group::default();
    let mut done = HashSet::new();
    for Wish { object, range, is_hot } in wishes {
        let (from, is_hot) = (row(packed, *object), *is_hot);
        if open.chunk.is_hot != is_hot {
            planned.extend(open.end());
        }
        let chosen = carried.binary_search(object).map_or(&[][..], |at| &choice[at][..]);
        let chosen: Vec<BaseSize> = chosen.iter().map(|base| (*base, bases.len_of(*base).unwrap_or(0))).collect();
        if from.size() > limits.piece_len() {
            if is_hot {
                // What is read before this object must be stored before it.
                planned.extend(open.end());
            }
            let numbers = range.start / limits.piece_len()..range.end.div_ceil(limits.piece_len());
            let numbers = numbers.filter(|number| done.insert((*object, *number)));
            planned.extend(numbers.map(|number| {
                let start = number * limits.piece_len();
                let end = from.size().min(start + limits.piece_len());
                let len = data_len(from.holes(), start..end);
                let prefix =
                    chosen.first().and_then(|base| window(*base, start..end, from.size(), limits.prefix_room(len)));
                let (piece, prefix) = (Some((*object, number)), prefix.into_iter().collect());
                Planned { objects: Vec::new(), piece, len, prefix, has_addresses: from.has_addresses, is_hot }
            }));
            continue;
        }
        let len = data_len(from.holes(), 0..from.size());
        if len == 0 || !done.insert((*object, 0)) {
            continue;
        }
        let is_alone = from.has_addresses && from.size() >= ADDRESSES_ALONE;
        if is_alone || open.chunk.has_addresses || !open.has_room(len, &chosen, limits) {
            planned.extend(open.end());
        }
        open.add(*object, len, from.size(), &chosen, limits);
        (open.chunk.has_addresses, open.chunk.is_hot) = (is_alone, is_hot);
    }
    planned.extend(open.end());
    planned
}

/// A base object and its size.
type BaseSize = (Row<BaseObject>, u64);

/// A chunk of whole objects that may still grow.
#[derive(Default)]
struct Group {
    chunk: Planned,
    prefix_len: u64,
    /// The base objects in its prefix.
    named: HashSet<Row<BaseObject>>,
}

impl Group {
    /// Returns whether an object of `len` bytes of data fits without truncating the base objects that resemble it.
    fn has_room(&self, len: u64, chosen: &[BaseSize], limits: &Limits) -> bool {
        let len = self.chunk.len + len;
        let added: u64 = chosen.iter().filter(|(base, _)| !self.named.contains(base)).map(|(_, size)| size).sum();
        len <= limits.group && self.prefix_len + added <= limits.prefix_room(len)
    }

    fn add(&mut self, object: Row<PackedObject>, len: u64, size: u64, chosen: &[BaseSize], limits: &Limits) {
        self.chunk.objects.push(object);
        self.chunk.len += len;
        for base in chosen {
            if !self.named.insert(base.0) {
                continue;
            }
            let room = limits.prefix_room(self.chunk.len).saturating_sub(self.prefix_len);
            if let Some(range) = window(*base, 0..size, size, room) {
                self.prefix_len += range.len;
                self.chunk.prefix.push(range);
            }
        }
    }

    /// Returns the chunk, unless it is empty, and starts a new one.
    fn end(&mut self) -> Option<Planned> {
        let Self { chunk, .. } = std::mem::take(self);
        (!chunk.objects.is_empty()).then_some(chunk)
    }
}

/// Returns the part of a base object at the relative position of a part in an object of `size` bytes, extended on both sides as room permits.
fn window((object, base_size): BaseSize, part: Range<u64>, size: u64, room: u64) -> Option<BaseRange> {
    let len = room.min(base_size);
    if len == 0 {
        return None;
    }
    // Aligns the middle of both parts.
    let middle = u128::from(part.start + (part.end - part.start) / 2) * u128::from(base_size) / u128::from(size.max(1));
    let middle = u64::try_from(middle).ok()?;
    let offset = middle.saturating_sub(len / 2).min(base_size - len);
    Some(BaseRange { object, offset, len })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_lies_where_the_piece_does() {
        let base = Row::new(7).expect("it is small");
        let range = |base_size, part, size, room| {
            window((base, base_size), part, size, room).map(|range| (range.object, range.offset, range.len))
        };
        assert_eq!(range(100, 0..10, 100, 1000), Some((base, 0, 100)));
        assert_eq!(range(1000, 0..100, 1000, 200), Some((base, 0, 200)));
        assert_eq!(range(1000, 900..1000, 1000, 200), Some((base, 800, 200)));
        assert_eq!(range(1000, 400..600, 1000, 200), Some((base, 400, 200)));
        assert_eq!(range(2000, 400..600, 1000, 200), Some((base, 900, 200)));
        assert_eq!(range(u64::MAX, 400..600, 1000, 200).map(|(_, _, len)| len), Some(200));
        assert_eq!((range(0, 0..1, 1, 9), range(9, 0..1, 1, 0)), (None, None));
    }

    #[test]
    fn a_piece_and_its_prefix_fit_the_memory() {
        for memory in [0, 1 << 12, 1 << 20, 128 << 20, 1 << 40] {
            let identity =
                crate::Identity { name: "os".into(), version: 1, created: 0, expires: None, compatible: Vec::new() };
            let options = PackOptions { delta_memory: memory, ..PackOptions::new(identity) };
            let limits = Limits::new(&options);
            assert!((12..=26).contains(&limits.piece_log2));
            let room = limits.prefix_room(limits.piece_len());
            assert!(memory < 1 << 14 || room + 2 * limits.piece_len() <= memory.max(u64::from(u32::MAX)));
        }
    }
}
