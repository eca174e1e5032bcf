//! The worst that a bundle can cost whoever reads it, from its root alone.

use crate::Root;

/// What a bundle takes at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "a caller shows each")]
pub struct Cost {
    /// Bytes of memory, whatever is done with the bundle.
    pub memory: u64,
    /// Bytes of disk that unpacking takes, on a file system of 4096-byte blocks that shares none.
    pub disk: u64,
    /// Inodes that unpacking takes.
    pub inodes: u64,
}

/// Bytes that reading keeps for each row of a table, beside the decoded index: rows of entries and inodes, and what unpacking adds for
/// each file.
const ROW_LEN: u64 = 96;
/// Bytes that a process has before it reads anything.
const BASE_LEN: u64 = 12 << 20;

impl Cost {
    /// The cost of reading the bundle of this root, and of unpacking it, on `jobs` threads.
    #[must_use]
    pub fn of(root: &Root, jobs: u64) -> Self {
        let (contents, maxima) = (&root.contents, &root.maxima);
        let sum = |lens: &[u64]| lens.iter().fold(0, |sum: u64, len| sum.saturating_add(*len));
        // Stored and decoded index are in memory together for a moment, the layout likewise.
        let layout = sum(&[contents.layout_len, contents.layout_len, contents.layout_stored]);
        let parts = sum(&[contents.index_len, contents.index_stored, layout]);
        let rows = sum(&[maxima.entries, maxima.inodes, maxima.objects]).saturating_mul(ROW_LEN);
        let window = 1 << maxima.window_log;
        let (mut parts, mut prefix) = (parts, 0_u64);
        if let Some(bases) = &root.bases {
            // The bases' indexes and the difference are in memory beside the one that they make; a byte difference is decoded in parts.
            let lens = bases.bases.iter().map(|base| base.index_len).fold(bases.difference_len, u64::saturating_add);
            parts = sum(&[parts, lens, lens, contents.index_len]);
            prefix = u64::from(bases.prefix_len) + 2 * u64::from(maxima.chunk_len);
        }
        let per_job = u64::from(maxima.chunk_len)
            + prefix
            + u64::from(maxima.chunk_stored)
            + window.min(maxima.chunk_len.into())
            + (1 << 20);
        Self {
            memory: sum(&[parts, rows, per_job.saturating_mul(jobs.max(1)), BASE_LEN]),
            disk: maxima.disk.saturating_add(maxima.inodes.saturating_mul(4096)),
            inodes: maxima.inodes,
        }
    }
}
