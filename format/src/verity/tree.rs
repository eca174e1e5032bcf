//! Computes the Merkle tree of a file, piece by piece, for any hash algorithm, block length and salt.

use alloc::vec;
use alloc::vec::Vec;

use sha2::Digest;
use sha2::digest::Output;

use crate::num::wide;

/// Zeros for padding, which is hashed in parts of at most this length.
static ZEROS: [u8; 4096] = [0; 4096];

/// The parts of a tree that do not fill a block yet.
#[derive(Clone, Debug)]
pub(super) struct Tree<D> {
    /// A hasher that has taken the bytes before each block: the padded salt, or nothing.
    salted: D,
    /// The length in bytes of a data block and of a block of the tree, which holds at least two hashes.
    block_len: usize,
    len: u64,
    /// Bytes that do not fill a data block yet.
    partial: Vec<u8>,
    /// For each level of the tree, the hashes that do not fill a block yet.
    levels: Vec<Vec<u8>>,
}

impl<D: Digest + Clone> Tree<D> {
    pub(super) fn new(salted: D, block_len: usize) -> Self {
        Self { salted, block_len, len: 0, partial: Vec::new(), levels: Vec::new() }
    }

    /// Returns the number of bytes that were taken.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Takes the next bytes.
    pub(super) fn update(&mut self, mut bytes: &[u8]) {
        self.len = self.len.saturating_add(wide(bytes.len()));
        if !self.partial.is_empty() {
            let (head, rest) = bytes.split_at(bytes.len().min(self.block_len - self.partial.len()));
            self.partial.extend(head);
            bytes = rest;
            if self.partial.len() < self.block_len {
                return;
            }
            let hash = self.block_hash(&self.partial);
            self.partial.clear();
            self.push(0, &hash);
        }
        let mut blocks = bytes.chunks_exact(self.block_len);
        for block in &mut blocks {
            self.push(0, &self.block_hash(block));
        }
        self.partial.extend(blocks.remainder());
    }

    /// Takes the next `len` bytes in the form of the hashes of their blocks.
    pub(super) fn update_hashed<'a>(&mut self, len: u64, hashes: impl Iterator<Item = &'a [u8]>) {
        self.len = self.len.saturating_add(len);
        hashes.for_each(|hash| self.push(0, hash));
    }

    /// Takes the bytes that another tree took, at most 2^n blocks, after a multiple of 2^n blocks. Nothing can follow a last block that is not full.
    pub(super) fn append(&mut self, next: &Self) {
        self.len = self.len.saturating_add(next.len);
        // The highest level comes first: its hashes are for the bytes before those of the lower levels.
        for (level, hashes) in next.levels.iter().enumerate().rev() {
            hashes.chunks_exact(<D as Digest>::output_size()).for_each(|hash| self.push(level, hash));
        }
        if !next.partial.is_empty() {
            let hash = self.block_hash(&next.partial);
            self.push(0, &hash);
        }
    }

    /// Appends the state to `out`, without the salt and the block length.
    pub(super) fn save(&self, out: &mut Vec<u8>) {
        out.extend(self.len.to_le_bytes());
        out.extend(wide(self.levels.len()).to_le_bytes());
        for part in core::iter::once(&self.partial).chain(&self.levels) {
            out.extend(wide(part.len()).to_le_bytes());
            out.extend(part);
        }
    }

    /// Returns the state that [`Self::save`] wrote for a tree with the same salt and block length as this one, and the bytes after it.
    pub(super) fn restored(self, bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (len, bytes) = bytes.split_first_chunk()?;
        let (count, mut bytes) = bytes.split_first_chunk()?;
        let mut parts = Vec::new();
        for _ in 0..=u64::from_le_bytes(*count) {
            let (len, rest) = bytes.split_first_chunk()?;
            let (part, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*len)).ok()?)?;
            parts.push(part.to_vec());
            bytes = rest;
        }
        let partial = parts.remove(0);
        Some((Self { len: u64::from_le_bytes(*len), partial, levels: parts, ..self }, bytes))
    }

    /// Returns the root hash, without padding; zeros for an empty file.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let hash_len = <D as Digest>::output_size();
        if !self.partial.is_empty() {
            let partial = core::mem::take(&mut self.partial);
            let hash = self.block_hash(&partial);
            self.push(0, &hash);
        }
        let mut level = 0;
        while level < self.levels.len() {
            let hashes = core::mem::take(&mut self.levels[level]);
            let is_top = level + 1 == self.levels.len();
            match hashes.len() {
                0 => {}
                len if is_top && len == hash_len => return hashes,
                _ => self.push(level + 1, &self.block_hash(&hashes)),
            }
            level += 1;
        }
        vec![0; hash_len]
    }

    /// Appends a hash to a level and, once that fills a block, the block's hash to the level above.
    fn push(&mut self, level: usize, hash: &[u8]) {
        if self.levels.len() <= level {
            self.levels.resize_with(level + 1, Vec::new);
        }
        self.levels[level].extend(hash);
        if self.levels[level].len() == self.block_len {
            let hash = self.block_hash(&self.levels[level]);
            self.levels[level].clear();
            self.push(level + 1, &hash);
        }
    }

    fn block_hash(&self, bytes: &[u8]) -> Output<D> {
        block_hash(self.salted.clone(), self.block_len, bytes)
    }
}

/// Returns the hash of a block, which is padded with zeros, by a hasher that has taken the bytes before it.
pub(super) fn block_hash<D: Digest>(mut hasher: D, block_len: usize, bytes: &[u8]) -> Output<D> {
    hasher.update(bytes);
    let mut missing = block_len.saturating_sub(bytes.len());
    while missing > 0 {
        let fill = &ZEROS[..missing.min(ZEROS.len())];
        hasher.update(fill);
        missing -= fill.len();
    }
    hasher.finalize()
}
