//! Where and how the file stores the objects (core 7).

mod disk;
mod encode;
mod objects;
mod parse;
mod prefixes;
mod repository;
mod rows;

use alloc::vec::Vec;
use core::ops::Range;

use crate::index::{Index, Object};
use crate::num;
use crate::recipes::Recipes;
use crate::row::{Row, Table};

pub(crate) use encode::{index_maxima, layout_maxima};
pub use objects::Objects;
pub use prefixes::BaseRange;
pub(crate) use prefixes::check_ranges;
pub use repository::RepositoryFile;

/// The length in bytes of a block, the unit of holes (core 7.1).
pub const BLOCK_LEN: u64 = 4096;

/// The length in blocks of the shortest hole (core 7.1).
pub const HOLE_BLOCKS: u64 = 16;

/// The chunks, and the objects in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// The chunks in the file's order.
    pub chunks: Vec<Chunk>,
    /// The numbers of the objects in groups, group after group.
    pub grouped: Vec<Row<Object>>,
    /// The pieces of the large objects, in the object table's order.
    pub pieces: Vec<Piece>,
    /// The large objects in ascending order, each with its first row of `pieces`.
    pub large: Vec<Large>,
    /// The objects that have holes, in ascending order.
    pub holes: Vec<Holes>,
    /// The extents of all holes, object after object.
    pub extents: Vec<Extent>,
    /// The numbers of the chunks that hold the hot set, which are in the order in which it is read (core 7).
    pub landmark: Option<Range<u32>>,
    /// The ranges of all prefixes, chunk after chunk (delta 6).
    pub ranges: Vec<BaseRange>,
    /// The files of the OSTree repository itself that travel with its commits, in ascending order (ostree 2.1).
    pub repository: Vec<(RepositoryFile, Vec<u8>)>,
    /// The objects that a delta bundle carries, in ascending order, once it is completed with its bases; `None` if all objects are carried.
    pub carried: Option<Vec<Row<Object>>>,
    /// How objects are made that are in no chunk (recipes 3).
    pub recipes: Recipes,
}

/// A stored byte string (core 7.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// How it is encoded.
    pub codec: Codec,
    /// Where it begins, in bytes from the first chunk.
    pub offset: u64,
    /// Stored bytes.
    pub stored_len: u32,
    /// Decoded bytes.
    pub len: u32,
    /// BLAKE3 of the stored bytes.
    pub digest: [u8; 32],
    /// What it holds.
    pub holds: Holds,
    /// Its range of [`Layout::ranges`], which is empty if its codec takes no prefix.
    pub prefix: Range<u32>,
}

impl Table for Chunk {
    const COUNT: &'static str = "the number of chunks";
}

/// What a chunk holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "core 7.2 lists them")]
pub enum Holds {
    /// Whole objects: this range of [`Layout::grouped`].
    Group(Range<u32>),
    /// The data of one piece or several equal ones.
    Piece,
}

/// How a chunk's stored bytes are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "core 7.2 lists them")]
pub enum Codec {
    /// Not compressed.
    Raw,
    /// One zstd frame.
    Zstd,
    /// One zstd frame that was made with a prefix (delta 7).
    ZstdPrefix,
    /// A byte difference to a prefix (delta 8).
    ByteDifference,
}

impl Codec {
    /// Returns whether chunks with this codec are decoded with a prefix.
    #[must_use]
    pub fn has_prefix(self) -> bool {
        matches!(self, Self::ZstdPrefix | Self::ByteDifference)
    }
}

/// A piece of a large object (core 7.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its chunk; `None` if the piece has no data.
    pub chunk: Option<Row<Chunk>>,
    /// Its chaining value in the object's BLAKE3 tree.
    pub chaining_value: [u8; 32],
}

/// An object that is larger than the piece size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Large {
    /// The object.
    pub object: Row<Object>,
    /// Its first row of the pieces.
    pub first_piece: u32,
}

/// An object that has holes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holes {
    /// The object.
    pub object: Row<Object>,
    /// Its range of [`Layout::extents`].
    pub extents: Range<u32>,
}

/// A run of zero blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Its first block.
    pub start: u64,
    /// The number of its blocks.
    pub len: u64,
}

impl Extent {
    /// Returns its range in the object, in bytes.
    #[must_use]
    pub fn bytes(&self) -> Range<u64> {
        let start = self.start.saturating_mul(BLOCK_LEN);
        start..start.saturating_add(self.len.saturating_mul(BLOCK_LEN))
    }
}

fn slice<'a, T>(rows: &'a [T], range: &Range<u32>) -> &'a [T] {
    let at = |n: u32| num::at(n);
    &rows[at(range.start)..at(range.end)]
}

impl Layout {
    /// Returns the extents of an object's holes.
    #[must_use]
    pub fn holes_of(&self, object: Row<Object>) -> &[Extent] {
        match self.holes.binary_search_by_key(&object, |holes| holes.object) {
            Ok(at) => slice(&self.extents, &self.holes[at].extents),
            Err(_) => &[],
        }
    }

    /// Returns the numbers of the objects in a group.
    #[must_use]
    pub fn group(&self, range: &Range<u32>) -> &[Row<Object>] {
        slice(&self.grouped, range)
    }

    /// Returns whether this object is in chunks of the bundle; if not, a base has it, or a recipe makes it.
    #[must_use]
    pub fn is_stored(&self, object: Row<Object>) -> bool {
        self.carries(object) && self.recipes.of(object).is_none()
    }

    /// Returns whether the bundle stores or makes this object; if not, a base has it.
    pub(crate) fn carries(&self, object: Row<Object>) -> bool {
        self.carried.as_ref().is_none_or(|carried| carried.binary_search(&object).is_ok())
    }

    /// Returns whether all objects of the index are in chunks of the bundle.
    #[must_use]
    pub fn stores_all(&self) -> bool {
        self.carried.is_none() && self.recipes.made.is_empty()
    }

    /// Returns the same layout with the number `numbers[k]` for the carried object k. The numbers must ascend, like those of
    /// [`crate::Difference::carried_in`]. The wanted index has `objects` of them; the leaves follow.
    #[must_use]
    pub fn renumbered(mut self, numbers: Vec<Row<Object>>, objects: u32) -> Self {
        let first_leaf = self.recipes.first_leaf;
        let of = |object: &mut Row<Object>| {
            let leaf = object.number().wrapping_sub(first_leaf).wrapping_add(objects);
            *object = numbers.get(object.at()).copied().or_else(|| Row::new(leaf)).unwrap_or(*object);
        };
        self.grouped.iter_mut().for_each(of);
        self.large.iter_mut().for_each(|large| of(&mut large.object));
        self.holes.iter_mut().for_each(|holes| of(&mut holes.object));
        self.recipes.renumber(objects, of);
        self.carried = Some(numbers);
        self
    }

    /// Returns the ranges of base objects that make a chunk's prefix.
    #[must_use]
    pub fn prefix_of(&self, chunk: &Chunk) -> &[BaseRange] {
        slice(&self.ranges, &chunk.prefix)
    }

    /// Returns the length of a chunk's prefix in bytes.
    #[must_use]
    pub fn prefix_len(&self, chunk: &Chunk) -> u64 {
        self.prefix_of(chunk).iter().fold(0, |sum, range| sum.saturating_add(range.len))
    }

    /// Returns the pieces of an object; none for an object that is not large.
    #[must_use]
    pub fn pieces_of(&self, object: Row<Object>) -> &[Piece] {
        let Ok(at) = self.large.binary_search_by_key(&object, |large| large.object) else {
            return &[];
        };
        let first = self.large[at].first_piece;
        let end = self.large.get(at + 1).map_or(self.pieces.len(), |next| num::at(next.first_piece));
        &self.pieces[num::at(first)..end]
    }
}

/// Returns the parts of `within` that are not holes. Ranges are in bytes of the object.
pub fn data_ranges(holes: &[Extent], within: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
    // Holes are sorted: start at the first that ends after the range's start.
    let first = holes.partition_point(|extent| extent.bytes().end <= within.start);
    let mut rest = holes[first..].iter();
    let mut at = within.start;
    core::iter::from_fn(move || {
        while at < within.end {
            let hole = rest.next().map_or(u64::MAX..u64::MAX, Extent::bytes);
            let data = at..hole.start.clamp(at, within.end);
            at = hole.end.min(within.end);
            if !data.is_empty() {
                return Some(data);
            }
        }
        None
    })
}

/// Returns the number of bytes in `within` that are not holes.
#[must_use]
pub fn data_len(holes: &[Extent], within: Range<u64>) -> u64 {
    data_ranges(holes, within).map(|range| range.end - range.start).sum()
}

/// Computes the numbers of core 4.3 from layout and index.
///
/// # Errors
/// Returns an error if a sum exceeds 2^64-1.
pub fn maxima(index: &Index, layout: &Layout, piece_log2: u8, window_log: u8) -> Result<crate::Maxima, crate::Error> {
    encode::maxima(index, layout, piece_log2, window_log)
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn data_is_what_the_holes_leave() {
        let holes = [Extent { start: 1, len: 16 }, Extent { start: 20, len: 16 }];
        let ranges = |within: Range<u64>| data_ranges(&holes, within).collect::<Vec<_>>();
        assert_eq!(ranges(0..200_000), [0..4096, 69_632..81_920, 147_456..200_000]);
        assert_eq!(ranges(4096..8192), []);
        assert_eq!(ranges(65_536..90_000), vec![69_632..81_920]);
        assert_eq!(ranges(150_000..160_000), vec![150_000..160_000]);
        assert_eq!(data_len(&holes, 0..200_000), 200_000 - 32 * 4096);
    }
}
