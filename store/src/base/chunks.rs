//! Digests of what chunks hold, to find chunks that two bundles may store alike.

use std::collections::HashMap;

use sealift_format::num::at;
use sealift_format::{Bundle, Holds, Index, Layout};

use super::{Bases, BundleFile};

/// A piece of a large object: the object's number and the piece's own.
pub type PieceOf = (u32, u64);

/// Returns the piece of each row of the layout's pieces.
pub fn piece_rows(layout: &Layout) -> impl Iterator<Item = PieceOf> {
    layout
        .large
        .iter()
        .flat_map(|large| (0..).zip(layout.pieces_of(large.object)).map(|(number, _)| (large.object, number)))
}

/// Returns, for each chunk that is not a group, the first row of the pieces that names it.
pub fn first_rows(layout: &Layout) -> Vec<Option<usize>> {
    let mut first = vec![None; layout.chunks.len()];
    for (row, piece) in layout.pieces.iter().enumerate() {
        if let Some(chunk) = piece.chunk {
            first[at(chunk)].get_or_insert(row);
        }
    }
    first
}

/// A fingerprint of the data that a chunk holds.
pub type Held = [u8; 32];

/// Returns the fingerprint of a group of whole objects with `len` bytes of data in all.
pub fn group(index: &Index, objects: &[u32], len: u32) -> Held {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"group").update(&len.to_le_bytes());
    for object in objects {
        hasher.update(&index.object(*object).id);
    }
    *hasher.finalize().as_bytes()
}

/// Returns the fingerprint of a piece with `len` bytes of data: its chaining value identifies it, whichever object has it.
pub fn piece(value: &[u8; 32], (number, piece_len): (u64, u64), len: u32) -> Held {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"piece").update(&len.to_le_bytes()).update(value);
    *hasher.update(&number.to_le_bytes()).update(&piece_len.to_le_bytes()).finalize().as_bytes()
}

/// Returns the fingerprint of each chunk of a bundle.
pub fn held(bundle: &Bundle) -> Vec<Held> {
    let (layout, piece_len) = (&bundle.layout, bundle.head.root().maxima.piece_len());
    let rows: Vec<PieceOf> = piece_rows(layout).collect();
    let chunks = layout.chunks.iter().zip(first_rows(layout));
    let held = chunks.map(|(chunk, row)| match (&chunk.holds, row) {
        (Holds::Group(range), _) => group(&bundle.index, layout.group(range), chunk.len),
        (Holds::Piece, Some(row)) => piece(&layout.pieces[row].chaining_value, (rows[row].1, piece_len), chunk.len),
        // A valid layout has no such chunk.
        (Holds::Piece, None) => chunk.digest,
    });
    held.collect()
}

/// The chunks of bases, by fingerprint.
pub struct SameChunks(Vec<HashMap<Held, u32>>);

impl SameChunks {
    /// Indexes the chunks of the bases' bundles that `takes` accepts.
    pub fn new(bases: &Bases, takes: impl Fn(usize, &BundleFile) -> bool) -> Self {
        let of_base = |(number, file): (usize, Option<&BundleFile>)| match file {
            Some(file) if takes(number, file) => held(&file.bundle).into_iter().zip(0..).collect(),
            _ => HashMap::new(),
        };
        Self(bases.files().enumerate().map(of_base).collect())
    }

    /// Returns the positions of bases, and their chunks with this fingerprint.
    pub fn find(&self, held: &Held) -> impl Iterator<Item = (usize, u32)> {
        self.0.iter().enumerate().filter_map(|(base, chunks)| Some((base, *chunks.get(held)?)))
    }
}
