//! What chunks hold: each object is checked against its id, and all of them against the index's digest of their fs-verity digests
//! (spec 8, section 6 of the index).
//!
//! Chunks may be checked in any order and by several threads; one [`VerityTable`] takes what they [`Checked`]. Only where OSTree's files
//! are large are their pieces to pass in order through [`LargeFiles`](crate::ostree::LargeFiles).

use std::convert::Infallible;

use sealift_format::verity::{VerityHasher, block_hashes, digest};
use sealift_format::{Bundle, Error as FormatError, Holds, Large, Part, data_len};

use crate::content::{ContentError, check_object, check_piece, fill_holes, group_objects, piece_range};
use crate::ostree::OsTreeFiles;

/// The pieces that each chunk serves.
#[derive(Clone, Debug)]
pub struct PieceMap {
    /// Chunk, object and piece, in this order.
    uses: Vec<(u32, u32, u64)>,
}

/// An object, or a piece of one, whose content is what index and layout say.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_enums, reason = "a table takes both")]
pub enum Checked {
    /// A whole object.
    Object {
        /// Its number.
        object: u32,
        /// Its fs-verity digest.
        digest: [u8; 32],
    },
    /// A piece of a large object.
    Piece {
        /// The object's number.
        object: u32,
        /// The piece's number in the object.
        piece: u64,
        /// Its part of the object's Merkle tree.
        tree: VerityHasher,
    },
}

/// An object or a piece that is all hole, or empty: no chunk brings it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "there is nothing else")]
pub enum Bare {
    /// A whole object's number.
    Object(u32),
    /// A large object's number and the piece's number in it.
    Piece(u32, u64),
}

/// The fs-verity digests of all objects, as they are found.
#[derive(Clone, Debug)]
pub struct VerityTable {
    digests: Vec<[u8; 32]>,
    /// In ascending order.
    large: Vec<LargeDigest>,
}

/// A large object's digest, put together from its pieces in order.
#[derive(Clone, Debug)]
struct LargeDigest {
    object: u32,
    hasher: VerityHasher,
    next: usize,
    /// Of each piece, what came before its turn.
    waiting: Vec<Option<Box<VerityHasher>>>,
}

/// Checks what chunk `number` holds, from its decoded bytes, and tells `take` of each object or piece. The OSTree files of a small object
/// are checked with it.
///
/// # Errors
/// The first of them that is not what it is to be.
pub fn check_chunk(
    bundle: &Bundle,
    pieces: &PieceMap,
    files: &OsTreeFiles,
    number: u32,
    decoded: &[u8],
    mut take: impl FnMut(Checked),
) -> Result<(), ContentError> {
    match &bundle.layout.chunks[usize::try_from(number).unwrap_or(usize::MAX)].holds {
        Holds::Group(range) => {
            for (object, data) in group_objects(bundle, bundle.layout.group(range), decoded) {
                take(checked_object(bundle, files, object, data)?);
            }
        }
        Holds::Piece => {
            for &(_, object, piece) in pieces.of_chunk(number) {
                take(checked_piece(bundle, object, piece, decoded)?);
            }
        }
    }
    Ok(())
}

/// The objects and pieces that no chunk brings. With them, all content is checked.
pub fn without_data(bundle: &Bundle) -> impl Iterator<Item = Bare> + '_ {
    let piece_len = bundle.head.root().maxima.piece_len();
    (0..).zip(bundle.index.objects()).flat_map(move |(object, row)| {
        let is_large = row.size > piece_len;
        let whole = !is_large && data_len(bundle.layout.holes_of(object), 0..row.size) == 0;
        let pieces = (0..).zip(bundle.layout.pieces_of(object)).filter(|(_, piece)| piece.chunk.is_none());
        whole
            .then_some(Bare::Object(object))
            .into_iter()
            .chain(pieces.map(move |(piece, _)| Bare::Piece(object, piece)))
    })
}

/// Checks an object or a piece that no chunk brings.
///
/// # Errors
/// It is not what it is to be.
pub fn check_bare(bundle: &Bundle, files: &OsTreeFiles, bare: Bare) -> Result<Checked, ContentError> {
    match bare {
        Bare::Object(object) => checked_object(bundle, files, object, &[]),
        Bare::Piece(object, piece) => checked_piece(bundle, object, piece, &[]),
    }
}

fn checked_object(bundle: &Bundle, files: &OsTreeFiles, object: u32, data: &[u8]) -> Result<Checked, ContentError> {
    check_object(bundle, object, data)?;
    files.check(bundle, object, data)?;
    let holes = bundle.layout.holes_of(object);
    if holes.is_empty() {
        return Ok(Checked::Object { object, digest: digest(data) });
    }
    let mut hasher = VerityHasher::new();
    let Ok(()) = fill_holes(data, holes, 0..bundle.index.object(object).size, |part| {
        hasher.update(part);
        Ok::<(), Infallible>(())
    });
    Ok(Checked::Object { object, digest: hasher.finish() })
}

fn checked_piece(bundle: &Bundle, object: u32, piece: u64, data: &[u8]) -> Result<Checked, ContentError> {
    check_piece(bundle, object, piece, data)?;
    let range = piece_range(bundle, object, piece);
    let holes = bundle.layout.holes_of(object);
    let len = range.end - range.start;
    let mut tree = VerityHasher::new();
    if holes.is_empty() {
        tree.update_hashed(len, &block_hashes(data));
    } else {
        let mut bytes = Vec::with_capacity(usize::try_from(len).unwrap_or(0));
        let Ok(()) = fill_holes(data, holes, range, |part| {
            bytes.extend(part);
            Ok::<(), Infallible>(())
        });
        tree.update_hashed(len, &block_hashes(&bytes));
    }
    Ok(Checked::Piece { object, piece, tree })
}

impl Checked {
    /// Appends this to `out`, for another instance of this program: threads share memory, and a browser's workers do not.
    pub fn save(&self, out: &mut Vec<u8>) {
        match self {
            Self::Object { object, digest } => {
                out.push(0);
                out.extend(object.to_le_bytes());
                out.extend(digest);
            }
            Self::Piece { object, piece, tree } => {
                out.push(1);
                out.extend(object.to_le_bytes());
                out.extend(piece.to_le_bytes());
                tree.save(out);
            }
        }
    }

    /// Returns what [`Self::save`] wrote, and the bytes behind it.
    #[must_use]
    pub fn restore(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (kind, bytes) = bytes.split_first()?;
        let (object, bytes) = bytes.split_first_chunk()?;
        let object = u32::from_le_bytes(*object);
        if *kind == 0 {
            let (digest, rest) = bytes.split_first_chunk()?;
            return Some((Self::Object { object, digest: *digest }, rest));
        }
        let (piece, bytes) = bytes.split_first_chunk()?;
        let (tree, rest) = VerityHasher::restore(bytes)?;
        Some((Self::Piece { object, piece: u64::from_le_bytes(*piece), tree }, rest))
    }
}

impl PieceMap {
    /// The map of a bundle.
    #[must_use]
    pub fn new(bundle: &Bundle) -> Self {
        let mut uses = Vec::new();
        for large in &bundle.layout.large {
            for (piece, row) in (0..).zip(bundle.layout.pieces_of(large.object)) {
                uses.extend(row.chunk.map(|chunk| (chunk, large.object, piece)));
            }
        }
        uses.sort_unstable();
        Self { uses }
    }

    /// The chunks that bring pieces of one of these objects, each once, in ascending order.
    pub(crate) fn chunks_of(&self, is_wanted: impl Fn(u32) -> bool) -> Vec<u32> {
        let wanted = self.uses.iter().filter(|(_, object, _)| is_wanted(*object));
        let mut chunks: Vec<u32> = wanted.map(|(chunk, ..)| *chunk).collect();
        chunks.dedup();
        chunks
    }

    fn of_chunk(&self, chunk: u32) -> &[(u32, u32, u64)] {
        let start = self.uses.partition_point(|(at, ..)| *at < chunk);
        let end = self.uses.partition_point(|(at, ..)| *at <= chunk);
        &self.uses[start..end]
    }
}

impl VerityTable {
    /// A table of which nothing is known yet.
    #[must_use]
    pub fn new(bundle: &Bundle) -> Self {
        let unknown = |large: &Large| LargeDigest {
            object: large.object,
            hasher: VerityHasher::new(),
            next: 0,
            waiting: vec![None; bundle.layout.pieces_of(large.object).len()],
        };
        let large = bundle.layout.large.iter().map(unknown).collect();
        Self { digests: vec![[0; 32]; bundle.index.objects().len()], large }
    }

    /// Takes what was checked, in any order.
    pub fn take(&mut self, checked: Checked) {
        match checked {
            Checked::Object { object, digest } => {
                self.digests[usize::try_from(object).unwrap_or(usize::MAX)] = digest;
            }
            Checked::Piece { object, piece, tree } => {
                let at = self.large.partition_point(|large| large.object < object);
                let Some(large) = self.large.get_mut(at).filter(|large| large.object == object) else { return };
                let place = usize::try_from(piece).ok().and_then(|piece| large.waiting.get_mut(piece));
                let Some(place) = place else { return };
                *place = Some(Box::new(tree));
                while let Some(tree) = large.waiting.get_mut(large.next).and_then(Option::take) {
                    large.hasher.append(&tree);
                    large.next += 1;
                }
            }
        }
    }

    /// Compares the table with the digest that the index gives of it, once all objects were checked.
    ///
    /// # Errors
    /// They differ.
    pub fn check(self, bundle: &Bundle) -> Result<(), ContentError> {
        let mut digests = self.digests;
        // The digest of one that a base has came whole.
        for large in self.large.into_iter().filter(|large| large.next > 0) {
            digests[usize::try_from(large.object).unwrap_or(usize::MAX)] = large.hasher.finish();
        }
        if digest(digests.as_flattened()) == *bundle.index.verity() {
            return Ok(());
        }
        let what = "its digest of the objects' fs-verity digests is not theirs";
        Err(FormatError::Malformed { part: Part::Index, what, at: 0 }.into())
    }
}
