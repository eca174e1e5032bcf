//! Where the chunks of a bundle lie: in its own order, or in another one.

use std::collections::HashSet;
use std::ops::Range;

use sealift_format::num::{at, size, wide};
use sealift_format::{Bundle, Chunk, Holds, InodeKind, Object, Row, data_len};
use sealift_store::kept_order::pieces_of;

use crate::inspect::entries;
use crate::pack::choose_cut;

/// A content, and which part of it is read.
#[derive(Debug)]
pub(super) struct Wanted {
    /// The number of the bundle that has it: 0 is the simulated bundle, the others are its bases.
    pub(super) bundle: usize,
    pub(super) object: Row<Object>,
    /// The ranges of its bytes; empty for all of it.
    pub(super) ranges: Vec<Range<u64>>,
}

/// Stored of chunks in the file of a bundle, and which of them hold an object.
#[derive(Debug)]
pub(super) struct Arrangement {
    places: Vec<Range<u64>>,
    /// For each object, the chunk of its group.
    group_of: Vec<Option<usize>>,
    /// For each chunk of the bundle that holds a piece, its number in `places`.
    piece_at: Vec<usize>,
}

impl Arrangement {
    /// Returns the bundle's own arrangement.
    pub(super) fn of(bundle: &Bundle) -> Self {
        let chunks = &bundle.layout.chunks;
        let start = bundle.head.chunks_at();
        let place = |chunk: &Chunk| start + chunk.offset..start + chunk.offset + u64::from(chunk.stored_len);
        let mut group_of = vec![None; bundle.index.objects().len()];
        for (number, chunk) in chunks.iter().enumerate() {
            for object in group(bundle, chunk) {
                group_of[object.at()] = Some(number);
            }
        }
        Self { places: chunks.iter().map(place).collect(), group_of, piece_at: (0..chunks.len()).collect() }
    }

    /// Returns the objects in another order, in chunks that end where packing would end them, each object compressed as well as in the bundle. Chunks of
    /// a delta that are decoded with a prefix stay as they are: the prefix is chosen for what they hold.
    fn in_order(bundle: &Bundle, order: &[Row<Object>], shares: &[u64]) -> Self {
        let chunks = &bundle.layout.chunks;
        // Packing aims at groups of the length of a piece.
        let group_len = bundle.head.root().maxima.piece_len();
        let mut placed = Stored { end: bundle.head.chunks_at(), places: Vec::new() };
        let mut group_of = vec![None; bundle.index.objects().len()];
        let mut piece_at = vec![None; chunks.len()];
        let own = Self::of(bundle);
        let mut open = Open::default();
        for &object in order {
            for chunk in pieces(bundle, object) {
                piece_at[chunk.at()].get_or_insert_with(|| placed.put(chunks[chunk.at()].stored_len.into()));
            }
            let Some(chunk) = own.group_of[object.at()] else { continue };
            if chunks[chunk].codec.has_prefix() {
                let place = piece_at[chunk].get_or_insert_with(|| placed.put(chunks[chunk].stored_len.into()));
                group_of[object.at()] = Some(*place);
                continue;
            }
            let len = len_of(bundle, object);
            open.len += len;
            open.objects.push((object, len));
            while let Some(cut) = open.cut(bundle, group_len) {
                open.close(cut, shares, &mut placed, &mut group_of);
            }
        }
        open.close(open.objects.len(), shares, &mut placed, &mut group_of);
        // Only the places of pieces are looked up.
        let piece_at = piece_at.into_iter().map(Option::unwrap_or_default).collect();
        Self { places: placed.places, group_of, piece_at }
    }

    /// Returns the chunks that hold the wanted part of an object.
    pub(super) fn chunks_of<'a>(&'a self, bundle: &'a Bundle, wanted: &'a Wanted) -> impl Iterator<Item = usize> + 'a {
        let pieces = wanted_pieces(bundle, wanted).map(|chunk| self.piece_at[chunk.at()]);
        self.group_of[wanted.object.at()].into_iter().chain(pieces)
    }
}

/// A bundle on the device.
#[derive(Debug)]
pub(super) struct Placed<'a> {
    bundle: &'a Bundle,
    /// Where its file begins: after that of the bundle before it.
    start: u64,
    as_laid_out: Arrangement,
    shares: Vec<u64>,
}

impl<'a> Placed<'a> {
    /// Stored bundles one after the other.
    pub(super) fn all(bundles: impl Iterator<Item = &'a Bundle>) -> Vec<Self> {
        let mut end = 0;
        let place = |bundle: &'a Bundle| {
            let start = end;
            end += bundle.head.file_len();
            Self { bundle, start, as_laid_out: Arrangement::of(bundle), shares: shares(bundle) }
        };
        bundles.map(place).collect()
    }

    /// Returns the arrangement of its objects in another order.
    pub(super) fn in_order(&self, order: &[Row<Object>]) -> Arrangement {
        Arrangement::in_order(self.bundle, order, &self.shares)
    }
}

/// Returns where the last bundle ends.
pub(super) fn end_of(bundles: &[Placed<'_>]) -> u64 {
    bundles.last().map_or(0, |placed| placed.start + placed.bundle.head.file_len())
}

/// Returns the ranges that are read for these objects, in their order: first what precedes the chunks of each bundle, then each chunk once. `order`,
/// if given, replaces the first bundle's own arrangement.
pub(super) fn reads(bundles: &[Placed<'_>], order: Option<&Arrangement>, objects: &[Wanted]) -> Vec<Range<u64>> {
    let mut reads: Vec<_> =
        bundles.iter().map(|placed| placed.start..placed.start + placed.bundle.head.chunks_at()).collect();
    let mut seen = HashSet::new();
    for wanted in objects {
        let Placed { bundle, start, as_laid_out, .. } = &bundles[wanted.bundle];
        let arrangement = order.filter(|_| wanted.bundle == 0).unwrap_or(as_laid_out);
        for chunk in arrangement.chunks_of(bundle, wanted) {
            if seen.insert((wanted.bundle, chunk)) {
                let place = &arrangement.places[chunk];
                reads.push(start + place.start..start + place.end);
            }
        }
    }
    reads
}

/// Objects that are not in a group yet, with their lengths.
#[derive(Default)]
struct Open {
    objects: Vec<(Row<Object>, u64)>,
    len: u64,
}

impl Open {
    fn cut(&self, bundle: &Bundle, group_len: u64) -> Option<usize> {
        let of = |(object, len): &(Row<Object>, u64)| (&bundle.index.object(*object).id, *len);
        choose_cut(self.objects.iter().map(of), self.len, group_len)
    }

    /// Makes a group of the first objects.
    fn close(&mut self, count: usize, shares: &[u64], placed: &mut Stored, group_of: &mut [Option<usize>]) {
        if count == 0 {
            return;
        }
        let group: Vec<(Row<Object>, u64)> = self.objects.drain(..count).collect();
        let number = placed.put(group.iter().map(|(object, _)| shares[object.at()]).sum());
        for (object, len) in group {
            self.len -= len;
            group_of[object.at()] = Some(number);
        }
    }
}

struct Stored {
    end: u64,
    places: Vec<Range<u64>>,
}

impl Stored {
    fn put(&mut self, stored: u64) -> usize {
        self.places.push(self.end..self.end + stored);
        self.end += stored;
        self.places.len() - 1
    }
}

/// Returns for each object its share of the stored bytes of its group's chunk.
fn shares(bundle: &Bundle) -> Vec<u64> {
    let mut shares = vec![0; bundle.index.objects().len() + bundle.layout.recipes.leaves.len()];
    for chunk in &bundle.layout.chunks {
        for object in group(bundle, chunk) {
            let share = u128::from(len_of(bundle, *object)) * u128::from(chunk.stored_len);
            let share = share / u128::from(chunk.len.max(1));
            shares[object.at()] = u64::try_from(share).unwrap_or(chunk.stored_len.into());
        }
    }
    shares
}

/// Returns how many bytes these objects take at least: heads, pieces, and shares of groups.
pub(super) fn least_bytes(bundles: &[Placed<'_>], objects: &[Wanted]) -> u64 {
    let heads: u64 = bundles.iter().map(|placed| placed.bundle.head.chunks_at()).sum();
    let (mut pieces, mut grouped) = (HashSet::new(), HashSet::new());
    let of_object = |wanted: &Wanted| {
        let Placed { bundle, shares, .. } = &bundles[wanted.bundle];
        let new = wanted_pieces(bundle, wanted).filter(|chunk| pieces.insert((wanted.bundle, *chunk)));
        let pieces: u64 = new.map(|chunk| u64::from(bundle.layout.chunks[chunk.at()].stored_len)).sum();
        let is_new = grouped.insert((wanted.bundle, wanted.object));
        pieces + if is_new { shares[wanted.object.at()] } else { 0 }
    };
    heads + objects.iter().map(of_object).sum::<u64>()
}

/// Returns the objects in the order in which packing without a profile stores them.
pub(super) fn by_path(bundle: &Bundle) -> Vec<Row<Object>> {
    let mut seen = vec![false; bundle.index.objects().len()];
    let named = entries(bundle).filter_map(|entry| match entry.inode.kind {
        InodeKind::Regular(object) => Some(object),
        _ => None,
    });
    let mut order: Vec<_> = named.filter(|object| !std::mem::replace(&mut seen[object.at()], true)).collect();
    order.extend(Row::all(bundle.index.objects()).map(|(row, _)| row).filter(|row| !seen[row.at()]));
    order
}

/// Returns the objects in the order of their hashes, as an object store has them. Compares the last byte first: where chunks end depends on the
/// first bytes, and all would be short if those ascended.
pub(super) fn by_hash(bundle: &Bundle) -> Vec<Row<Object>> {
    let mut order: Vec<_> = Row::all(bundle.index.objects()).map(|(row, _)| row).collect();
    order.sort_by(|a, b| {
        let [a, b] = [a, b].map(|row| bundle.index.object(*row).id);
        a.iter().rev().cmp(b.iter().rev())
    });
    order
}

fn group<'a>(bundle: &'a Bundle, chunk: &Chunk) -> &'a [Row<Object>] {
    match &chunk.holds {
        Holds::Group(range) => &bundle.layout.grouped[at(range.start)..at(range.end)],
        Holds::Piece => &[],
    }
}

fn pieces(bundle: &Bundle, object: Row<Object>) -> impl Iterator<Item = Row<Chunk>> + '_ {
    bundle.layout.pieces_of(object).iter().filter_map(|piece| piece.chunk)
}

/// Returns the chunks of the pieces that hold the wanted part of an object.
fn wanted_pieces<'a>(bundle: &'a Bundle, wanted: &'a Wanted) -> impl Iterator<Item = Row<Chunk>> + 'a {
    let Wanted { object, ranges, .. } = wanted;
    let piece_len = bundle.head.root().maxima.piece_len();
    let pieces = bundle.layout.pieces_of(*object);
    let wanted = pieces_of(ranges, piece_len, wide(pieces.len()));
    wanted.into_iter().flatten().filter_map(|number| pieces.get(size(number))?.chunk)
}

/// Returns the length of an object without its holes.
fn len_of(bundle: &Bundle, object: Row<Object>) -> u64 {
    data_len(bundle.layout.holes_of(object), 0..bundle.object(object).map_or(0, |row| row.size))
}
