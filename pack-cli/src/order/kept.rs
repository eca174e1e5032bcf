//! The order that a bundle is laid out by: what lies before its landmark.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use sealift_format::{Bundle, Chunk, Holds, InodeKind, Object, Row};

use super::{OrderEntry, OrderProfile};
use crate::inspect::entries;

impl OrderProfile {
    /// Returns the profile by which a full bundle is laid out: the files whose contents are in its hot set, in the order of these contents. A file of
    /// which some pieces lie elsewhere has the ranges of those that do not. An equal file has its place there too. `None` if the bundle has no hot
    /// set.
    #[must_use]
    pub fn of_bundle(bundle: &Bundle) -> Option<Self> {
        let hot = bundle.layout.landmark.clone()?;
        let pieces = Pieces::of(bundle, &hot);
        let mut found = Vec::new();
        for number in hot {
            let row = Row::new(number)?;
            match &bundle.layout.chunks[row.at()].holds {
                Holds::Group(range) => found.extend(bundle.layout.group(range).iter().map(|object| (*object, None))),
                Holds::Piece => found.extend(pieces.of_chunk(row).iter().cloned()),
            }
        }
        let mut paths: HashMap<Row<Object>, Vec<Vec<u8>>> = found.iter().map(|(object, _)| (*object, vec![])).collect();
        let mut known = HashSet::new();
        for entry in entries(bundle) {
            let InodeKind::Regular(object) = entry.inode.kind else { continue };
            let path = entry.path();
            paths.entry(object).and_modify(|paths| paths.push(path.clone()));
            known.insert(path);
        }
        let named = |(object, range): (Row<Object>, Option<Range<u64>>)| {
            let ranges: Vec<_> = range.into_iter().collect();
            let paths = paths.get(&object).into_iter().flatten();
            paths.map(|path| OrderEntry { path: path.clone(), ranges: ranges.clone() }).collect::<Vec<_>>()
        };
        Some(Self::new(found.into_iter().flat_map(named).collect()).of_files(known))
    }
}

/// An object, and the range that a piece of it has, unless all of it is in the hot set.
type Part = (Row<Object>, Option<Range<u64>>);

/// The pieces in the hot set, by their chunks.
struct Pieces(HashMap<Row<Chunk>, Vec<Part>>);

impl Pieces {
    fn of(bundle: &Bundle, hot: &Range<u32>) -> Self {
        let piece_len = bundle.head.root().maxima.piece_len();
        let mut by_chunk: HashMap<_, Vec<Part>> = HashMap::new();
        for large in &bundle.layout.large {
            let pieces = bundle.layout.pieces_of(large.object);
            let size = bundle.index.object(large.object).size;
            let is_whole = pieces.iter().filter_map(|piece| piece.chunk).all(|chunk| hot.contains(&chunk.number()));
            for (number, piece) in (0u64..).zip(pieces) {
                let Some(chunk) = piece.chunk.filter(|chunk| hot.contains(&chunk.number())) else { continue };
                let start = number * piece_len;
                let range = (!is_whole).then(|| start..size.min(start + piece_len));
                by_chunk.entry(chunk).or_default().push((large.object, range));
            }
        }
        Self(by_chunk)
    }

    fn of_chunk(&self, chunk: Row<Chunk>) -> &[Part] {
        self.0.get(&chunk).map_or(&[], |parts| parts)
    }
}
