//! What chunks hold: each object is checked against its id, and all of them against the index's digest of their fs-verity digests
//! (core 8, section 6 of the index).
//!
//! Chunks may be checked in any order and by several threads; one [`VerityTable`] takes what they [`Checked`]. Only where OSTree's files
//! are large are their pieces to pass in order through [`LargeFiles`](crate::ostree::LargeFiles).

use sealift_format::verity::{VerityHasher, block_hashes, digest};
use sealift_format::{Bundle, Error as FormatError, Large, Object, Part, Row};

use crate::content::{Content, ContentError};
use crate::ostree::OsTreeFiles;

/// An object, or a piece of one, whose content is what index and layout say.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_enums, reason = "a table takes both")]
pub enum Checked {
    /// A whole object.
    Object {
        /// Which.
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
    object: Row<Object>,
    hasher: VerityHasher,
    next: usize,
    /// Of each piece, what came before its turn.
    waiting: Vec<Option<Box<VerityHasher>>>,
}

impl Checked {
    /// Returns what is noted of a content. The OSTree files of a small object are checked with it.
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

    /// Appends this to `out`, for another instance of this program: threads share memory, and a browser's workers do not.
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

    /// Returns what [`Self::save`] wrote, and the bytes behind it.
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
    /// Returns a table of which nothing is known yet.
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
                self.digests[object.at()] = digest;
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

    /// Compares the table with the digest that the index gives of it, once all objects were checked, and returns the fs-verity digests.
    ///
    /// # Errors
    /// Returns an error if they differ.
    pub fn check(self, bundle: &Bundle) -> Result<Vec<[u8; 32]>, ContentError> {
        let mut digests = self.digests;
        // The digest of one that a base has came whole.
        for large in self.large.into_iter().filter(|large| large.next > 0) {
            digests[large.object.at()] = large.hasher.finish();
        }
        if digest(digests.as_flattened()) == *bundle.index.verity() {
            return Ok(digests);
        }
        let what = "its digest of the objects' fs-verity digests is not theirs";
        Err(FormatError::Malformed { part: Part::Index, what, at: 0 }.into())
    }
}
