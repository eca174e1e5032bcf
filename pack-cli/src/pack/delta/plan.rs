//! Which carried objects go together into a chunk, and with which prefix.

use sealift_format::{BaseRange, data_len};

use super::row;
use crate::base::Bases;
use crate::pack::PackOptions;
use crate::pack::sequence::Sequenced;

/// How large the parts of a delta bundle may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Bytes that it may take to decode a chunk.
    pub(super) memory: u64,
    /// log2 of the piece size.
    pub(super) piece_log2: u8,
    /// Wished bytes of a group.
    group: u64,
}

/// A chunk to be.
#[derive(Clone, Debug, Default)]
pub(super) struct Planned {
    /// The packed objects of a group.
    pub(super) objects: Vec<u32>,
    /// A packed object and the number of its piece.
    pub(super) piece: Option<(u32, u64)>,
    /// Bytes that it decodes to.
    pub(super) len: u64,
    pub(super) prefix: Vec<BaseRange>,
    /// Whether what it holds is machine code.
    pub(super) is_code: bool,
}

/// The largest piece: a library of a browser is three or four of them.
const PIECE_LOG2: u8 = 25;
/// The least machine code that stands by itself.
const CODE_ALONE: u64 = 4 << 10;

impl Limits {
    pub(super) fn new(options: &PackOptions) -> Self {
        // A piece, its stored bytes, and a prefix of twice that.
        let piece_log2 = u8::try_from((options.delta_memory / 4).max(1 << 12).ilog2()).unwrap_or(PIECE_LOG2);
        Self { memory: options.delta_memory, piece_log2: piece_log2.min(PIECE_LOG2), group: options.chunk_len }
    }

    pub(super) fn piece_len(&self) -> u64 {
        1 << self.piece_log2
    }

    /// Bytes of a prefix at most, for a chunk of `len` bytes, which may be stored as they are.
    fn prefix_room(&self, len: u64) -> u64 {
        self.memory.saturating_sub(2 * len).min(u32::MAX.into())
    }
}

/// Plans the chunks of the carried objects, in their order. `choice` has for each the base objects that resemble it, the best first.
pub(super) fn plan(
    packed: &Sequenced,
    carried: &[u32],
    choice: &[Vec<u32>],
    bases: &Bases,
    limits: &Limits,
) -> Vec<Planned> {
    let mut planned: Vec<Planned> = Vec::new();
    let mut open = Planned::default();
    for (object, chosen) in carried.iter().zip(choice) {
        let from = row(packed, *object);
        let size_of = |object: &u32| bases.object(*object).map_or(0, |row| row.size);
        if from.size > limits.piece_len() {
            for number in 0..from.size.div_ceil(limits.piece_len()) {
                let start = number * limits.piece_len();
                let within = start..from.size.min(start + limits.piece_len());
                let len = data_len(&from.holes, within.clone());
                let base = chosen.first().map(|base| (*base, size_of(base)));
                let prefix =
                    base.and_then(|base| window(base, (within.start, within.end, from.size), limits.prefix_room(len)));
                let prefix = prefix.into_iter().collect();
                planned.push(Planned {
                    piece: Some((*object, number)),
                    len,
                    prefix,
                    is_code: from.is_code,
                    ..Planned::default()
                });
            }
            continue;
        }
        let len = data_len(&from.holes, 0..from.size);
        if len == 0 {
            continue;
        }
        let is_alone = from.is_code && from.size >= CODE_ALONE;
        let fresh = chosen.iter().filter(|base| !open.prefix.iter().any(|range| range.object == **base));
        let added: u64 = fresh.map(size_of).sum();
        let total: u64 = open.prefix.iter().map(|range| range.len).sum::<u64>() + added;
        let is_full = open.len + len > limits.group || total > limits.prefix_room(open.len + len);
        if !open.objects.is_empty() && (is_alone || open.is_code || is_full) {
            planned.push(std::mem::take(&mut open));
        }
        open.objects.push(*object);
        open.len += len;
        open.is_code = is_alone;
        let mut room = limits.prefix_room(open.len)
            - open.prefix.iter().map(|range| range.len).sum::<u64>().min(limits.prefix_room(open.len));
        for base in chosen {
            if open.prefix.iter().any(|range| range.object == *base) {
                continue;
            }
            let Some(range) = window((*base, size_of(base)), (0, from.size, from.size), room) else { continue };
            room -= range.len;
            open.prefix.push(range);
        }
    }
    if !open.objects.is_empty() {
        planned.push(open);
    }
    planned
}

/// The part of a base object that lies where `start..end` of an object of `size` bytes does, with as much around it as there is room for.
fn window((object, base_size): (u32, u64), (start, end, size): (u64, u64, u64), room: u64) -> Option<BaseRange> {
    let len = room.min(base_size);
    if len == 0 {
        return None;
    }
    // The middle of the one is put upon the middle of the other.
    let middle = u128::from(start + (end - start) / 2) * u128::from(base_size) / u128::from(size.max(1));
    let middle = u64::try_from(middle).unwrap_or(u64::MAX);
    let offset = middle.saturating_sub(len / 2).min(base_size - len);
    Some(BaseRange { object, offset, len })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_lies_where_the_piece_does() {
        let range =
            |base, piece, room| window((7, base), piece, room).map(|range| (range.object, range.offset, range.len));
        assert_eq!(range(100, (0, 10, 100), 1000), Some((7, 0, 100)));
        assert_eq!(range(1000, (0, 100, 1000), 200), Some((7, 0, 200)));
        assert_eq!(range(1000, (900, 1000, 1000), 200), Some((7, 800, 200)));
        assert_eq!(range(1000, (400, 600, 1000), 200), Some((7, 400, 200)));
        assert_eq!(range(2000, (400, 600, 1000), 200), Some((7, 900, 200)));
        assert_eq!(range(u64::MAX, (400, 600, 1000), 200).map(|(_, _, len)| len), Some(200));
        assert_eq!((range(0, (0, 1, 1), 9), range(9, (0, 1, 1), 0)), (None, None));
    }

    #[test]
    fn a_piece_and_its_prefix_fit_the_memory() {
        for memory in [0, 1 << 12, 1 << 20, 128 << 20, 1 << 40] {
            let identity = crate::pack::nobody();
            let options = PackOptions { delta_memory: memory, ..PackOptions::new(identity) };
            let limits = Limits::new(&options);
            assert!((12..=26).contains(&limits.piece_log2));
            let room = limits.prefix_room(limits.piece_len());
            assert!(memory < 1 << 14 || room + 2 * limits.piece_len() <= memory.max(u64::from(u32::MAX)));
        }
    }
}
