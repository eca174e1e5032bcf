//! The resources that reading a bundle can take at most, computed from its root alone.

use crate::recipes::MAKES;
use crate::{DEPTH_MAX, RecipeSums, Root};

/// What a bundle takes: memory and inodes are upper bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "a caller shows each")]
pub struct Cost {
    /// Bytes of memory, for any use of the bundle.
    pub memory: u64,
    /// Bytes of disk that unpacking takes on ext4 with blocks of 4096 bytes, within a few percent; for a delta bundle, in addition to what its
    /// base takes.
    pub disk: u64,
    /// Inodes that unpacking takes.
    pub inodes: u64,
}

/// Bytes of memory per table row in addition to the decoded index, for the verb that needs most. A name costs most when a directory is compared
/// with its record or with another bundle, an object when trees are listed and packed. Listing and verifying take a fifth of this.
/// tests/bundles/bounds.rs checks these bounds.
const ENTRY_LEN: u64 = 384;
const INODE_LEN: u64 = 256;
const OBJECT_LEN: u64 = 320;
/// The same for a ref, which can be a commit with objects of its own.
const REF_LEN: u64 = 768;
/// Bytes of memory that a process has before it reads anything.
const BASE_LEN: u64 = 12 << 20;

/// Bytes of memory for each byte of a layout with recipes: a segment of one range has 21 bytes there and 56 in memory, in lists that grow, and
/// what makes objects has copies.
const SEGMENTS_PER_BYTE: u64 = 10;
/// The largest bytes of chunks that are kept for what is made next.
const CHUNKS_LEN: u64 = 64 << 20;
/// The largest bytes of segments that are made together or kept, but for one that is larger, of which the root says the memory.
const CODED_LEN: u64 = 24 << 20;

/// Returns the bytes of memory that making objects takes on a thread: the pieces at hand, one for each depth, the chunks and segments that are kept, and
/// what an encoder takes.
fn making(sums: &RecipeSums, piece_len: u64, chunk_len: u64) -> u64 {
    let pieces = sums.made_bytes.min(piece_len.saturating_mul(DEPTH_MAX.into()));
    let chunks = chunk_len.saturating_mul(6).min(CHUNKS_LEN.max(chunk_len));
    let coded = sums.encoded_bytes().saturating_add(sums.made_bytes).saturating_add(sums.decoded_bytes).min(CODED_LEN);
    [pieces, chunks, coded].iter().fold(sums.memory, |sum, len| sum.saturating_add(*len))
}

impl Cost {
    /// Returns the cost of reading the bundle of this root, and of unpacking it, on `jobs` threads.
    #[must_use]
    pub fn of(root: &Root, jobs: u64) -> Self {
        let (contents, maxima) = (&root.contents, &root.maxima);
        let sum = |lens: &[u64]| lens.iter().fold(0, |sum: u64, len| sum.saturating_add(*len));
        // The stored and the decoded index are briefly in memory together, and likewise the layout.
        let layout = sum(&[contents.layout_len, contents.layout_len, contents.layout_stored]);
        let parts = sum(&[contents.index_len, contents.index_stored, layout]);
        let rows = [
            (maxima.entries, ENTRY_LEN),
            (maxima.inodes, INODE_LEN),
            (maxima.objects, OBJECT_LEN),
            (maxima.refs.into(), REF_LEN),
        ];
        let rows = sum(&rows.map(|(rows, len)| rows.saturating_mul(len)));
        let window = 1 << maxima.window_log;
        let (mut parts, mut prefix) = (parts, 0_u64);
        if let Some(bases) = &root.bases {
            // The bases' indexes and the difference are in memory beside the index that results; a byte difference is decoded in parts.
            let lens = bases.bases.iter().map(|base| base.index_len).fold(bases.difference_len, u64::saturating_add);
            parts = sum(&[parts, lens, lens, contents.index_len]);
            prefix = u64::from(bases.prefix_len) + 2 * u64::from(maxima.chunk_len);
        }
        let recipes = root.recipes.as_ref();
        let leaves = recipes.map_or(0, |sums| sums.leaves.saturating_mul(OBJECT_LEN));
        let recipes = recipes.filter(|_| MAKES);
        let segments = recipes.map_or(0, |_| contents.layout_len.saturating_mul(SEGMENTS_PER_BYTE));
        let made = recipes.map_or(0, |sums| making(sums, maxima.piece_len(), maxima.chunk_len.into()));
        let chunk = [maxima.chunk_len.into(), maxima.chunk_stored.into(), window.min(maxima.chunk_len.into())];
        let per_job = sum(&[made, prefix, sum(&chunk), 1 << 20]);
        Self {
            memory: sum(&[parts, rows, leaves, segments, per_job.saturating_mul(jobs.max(1)), BASE_LEN]),
            disk: maxima.disk,
            inodes: maxima.inodes,
        }
    }
}
