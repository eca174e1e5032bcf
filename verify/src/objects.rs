//! What chunks hold: each object is checked against its id, and all of them against the index's digest of their fs-verity digests
//! (core 8, section 6 of the index).
//!
//! Chunks may be checked in any order and by several threads; one [`VerityTable`] takes their results, as [`Checked`]. Only the pieces of large
//! OSTree files must pass through [`LargeFiles`](crate::ostree::LargeFiles) in order.

use sealift_format::verity::{VerityHasher, block_hashes, digest};
use sealift_format::{Bundle, Error as FormatError, Large, Object, Part, Row};

use crate::content::{Content, ContentError};
use crate::ostree::OsTreeFiles;

/// An object, or a piece of one, whose content matches index and layout.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_enums, reason = "a table takes both")]
pub enum Checked {
    /// A whole object.
    Object {
        /// The object.
        object: Row<Object>,
        /// Its fs-verity digest.
        digest: [u8; 32],
    },
    /// A piece of a large object.
    Piece {
        /// The object.
        object: Row<Object>,
        /// The piece's number in the object.
        piece: u64,
        /// Its part of the object's Merkle tree.
        tree: VerityHasher,
    },
}

/// The fs-verity digests of all objects, as far as they are known.
#[derive(Clone, Debug)]
pub struct VerityTable {
    digests: Vec<[u8; 32]>,
    /// In ascending order.
    large: Vec<LargeDigest>,
}

/// A large object's digest, computed from its pieces in order.
#[derive(Clone, Debug)]
struct LargeDigest {
    object: Row<Object>,
    hasher: VerityHasher,
    next: usize,
    /// Pieces that were checked before their turn, by number.
    waiting: Vec<Option<Box<VerityHasher>>>,
}

impl Checked {
    /// Returns the result for a content. The OSTree files of a small object are checked with it.
    ///
    /// # Errors
    /// Returns an error if one of them does not match.
    pub fn new(bundle: &Bundle, files: &OsTreeFiles, content: &Content<'_>) -> Result<Self, ContentError> {
        let object = content.portion.object;
        let Some(piece) = content.portion.piece else {
            files.check(bundle, content)?;
            if !content.has_holes() {
                return Ok(Self::Object { object, digest: digest(content.data) });
            }
            let mut hasher = VerityHasher::new();
            content.for_each_part(&mut |part| hasher.update(part));
            return Ok(Self::Object { object, digest: hasher.finish() });
        };
        let len = content.range.end - content.range.start;
        let mut tree = VerityHasher::new();
        if content.has_holes() {
            let mut bytes = Vec::with_capacity(content.data.len());
            content.for_each_part(&mut |part| bytes.extend(part));
            tree.update_hashed(len, &block_hashes(&bytes));
        } else {
            tree.update_hashed(len, &block_hashes(content.data));
        }
        Ok(Self::Piece { object, piece, tree })
    }

    /// Appends this to `out`, for another instance of this program: a browser's workers do not share memory.
    pub fn save(&self, out: &mut Vec<u8>) {
        match self {
            Self::Object { object, digest } => {
                out.push(0);
                out.extend(object.number().to_le_bytes());
                out.extend(digest);
            }
            Self::Piece { object, piece, tree } => {
                out.push(1);
                out.extend(object.number().to_le_bytes());
                out.extend(piece.to_le_bytes());
                tree.save(out);
            }
        }
    }

    /// Returns what [`Self::save`] wrote, and the bytes after it.
    #[must_use]
    pub fn restore(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (kind, bytes) = bytes.split_first()?;
        let (object, bytes) = bytes.split_first_chunk()?;
        let object = Row::new(u32::from_le_bytes(*object))?;
        if *kind == 0 {
            let (digest, rest) = bytes.split_first_chunk()?;
            return Some((Self::Object { object, digest: *digest }, rest));
        }
        let (piece, bytes) = bytes.split_first_chunk()?;
        let (tree, rest) = VerityHasher::restore(bytes)?;
        Some((Self::Piece { object, piece: u64::from_le_bytes(*piece), tree }, rest))
    }
}

impl VerityTable {
    /// Returns a table without any digest yet.
    #[must_use]
    pub fn new(bundle: &Bundle) -> Self {
        let unknown = |large: &Large| LargeDigest {
            object: large.object,
            hasher: VerityHasher::new(),
            next: 0,
            waiting: bundle.layout.pieces_of(large.object).iter().map(|_| None).collect(),
        };
        let large = bundle.layout.large.iter().map(unknown).collect();
        Self { digests: vec![[0; 32]; bundle.index.objects().len()], large }
    }

    /// Takes what was checked, in any order.
    pub fn take(&mut self, checked: Checked) {
        match checked {
            Checked::Object { object, digest } => {
                // The index has no digests of leaves.
                if let Some(place) = self.digests.get_mut(object.at()) {
                    *place = digest;
                }
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

    /// Compares the table with its digest in the index, after all objects were checked, and returns the fs-verity digests.
    ///
    /// # Errors
    /// Returns an error if they differ.
    pub fn check(self, bundle: &Bundle) -> Result<Vec<[u8; 32]>, ContentError> {
        let mut digests = self.digests;
        // If a base has the object or it was made, its digest was taken as a whole.
        for large in self.large.into_iter().filter(|large| large.next > 0) {
            if let Some(place) = digests.get_mut(large.object.at()) {
                *place = large.hasher.finish();
            }
        }
        if digest(digests.as_flattened()) == *bundle.index.verity() {
            return Ok(digests);
        }
        let what = "its digest of the objects' fs-verity digests does not match them";
        Err(FormatError::Malformed { part: Part::Index, what, at: 0 }.into())
    }
}
