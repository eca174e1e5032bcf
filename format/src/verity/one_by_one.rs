//! Digests for CPUs that may have instructions for SHA-256, with which hashing blocks in parallel gains nothing.

use alloc::vec;
use alloc::vec::Vec;

use sha2::{Digest as _, Sha256};

use super::{BLOCK, LOW, VerityHasher, ZEROS, file_digest, tree};
use crate::num::wide;

/// Returns the hash of each block of `bytes`. The last block is padded with zeros.
#[must_use]
pub fn block_hashes(bytes: &[u8]) -> Vec<[u8; 32]> {
    let mut hashes = vec![[0; 32]; bytes.len().div_ceil(BLOCK)];
    hash_blocks(bytes, &mut hashes);
    hashes
}

/// Returns the fs-verity digest of each content.
#[must_use]
pub fn digests(contents: &[&[u8]]) -> Vec<[u8; 32]> {
    contents.iter().map(|content| digest(content)).collect()
}

/// Returns the fs-verity digest of `bytes`.
#[must_use]
pub fn digest(bytes: &[u8]) -> [u8; 32] {
    // Most files have a tree of at most one block, for which nothing is allocated.
    let root = match bytes.len() {
        0 => [0; 32],
        1..=BLOCK => block_hash(bytes),
        len if len <= LOW => {
            let mut level = [0; BLOCK];
            hash_blocks(bytes, level.as_chunks_mut().0);
            block_hash(&level)
        }
        _ => {
            let mut hasher = VerityHasher::new();
            hasher.update_hashed(wide(bytes.len()), &block_hashes(bytes));
            return hasher.finish();
        }
    };
    file_digest(wide(bytes.len()), &root)
}

/// Writes the hash of each block of `bytes` to `hashes`.
fn hash_blocks(bytes: &[u8], hashes: &mut [[u8; 32]]) {
    let zero = block_hash(&[]);
    for (hash, block) in hashes.iter_mut().zip(bytes.chunks(BLOCK)) {
        // Sparse files can be long, and comparing a block with zeros takes a tenth of the time of hashing it.
        *hash = if block == &ZEROS[..block.len()] { zero } else { block_hash(block) };
    }
}

/// Returns the SHA-256 of a block, which is padded with zeros.
fn block_hash(bytes: &[u8]) -> [u8; 32] {
    tree::block_hash(Sha256::new(), BLOCK, bytes).into()
}
