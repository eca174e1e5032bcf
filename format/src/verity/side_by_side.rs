//! Digests by hashing blocks in parallel lanes, which the blocks of several files share: most files have fewer blocks than there are lanes.

use alloc::vec::Vec;

use super::{BLOCK, LOW, VerityHasher, descriptor, lanes};
use crate::num::wide;

/// Returns the hash of each block of `bytes`. The last block is padded with zeros.
#[must_use]
pub fn block_hashes(bytes: &[u8]) -> Vec<[u8; 32]> {
    let blocks: Vec<&[u8]> = bytes.chunks(BLOCK).collect();
    lanes::hash_each(&blocks, BLOCK)
}

/// Returns the fs-verity digest of `bytes`.
#[must_use]
pub fn digest(bytes: &[u8]) -> [u8; 32] {
    let mut hasher = VerityHasher::new();
    hasher.update_hashed(wide(bytes.len()), &block_hashes(bytes));
    hasher.finish()
}

/// Returns the fs-verity digest of each content.
#[must_use]
pub fn digests(contents: &[&[u8]]) -> Vec<[u8; 32]> {
    let low: Vec<&[u8]> = contents.iter().copied().filter(|content| content.len() <= LOW).collect();
    let mut found = low_digests(&low).into_iter();
    let digest_of =
        |content: &&[u8]| if content.len() <= LOW { found.next().unwrap_or_default() } else { digest(content) };
    contents.iter().map(digest_of).collect()
}

/// The same for files whose tree has at most one block.
fn low_digests(contents: &[&[u8]]) -> Vec<[u8; 32]> {
    let blocks: Vec<&[u8]> = contents.iter().flat_map(|content| content.chunks(BLOCK)).collect();
    let hashes = lanes::hash_each(&blocks, BLOCK);
    let mut rest = hashes.as_slice();
    let mut levels: Vec<&[u8]> = Vec::new();
    for content in contents {
        let (level, behind) = rest.split_at(content.len().div_ceil(BLOCK));
        levels.push(level.as_flattened());
        rest = behind;
    }
    let tall: Vec<&[u8]> = levels.iter().copied().filter(|level| level.len() > 32).collect();
    let tops = lanes::hash_each(&tall, BLOCK);
    let mut tops = tops.iter();
    let descriptors = contents.iter().zip(&levels).map(|(content, level)| {
        let top = if level.len() > 32 { tops.next().map_or(&[][..], |top| top) } else { level };
        descriptor(wide(content.len()), top)
    });
    let descriptors: Vec<[u8; 256]> = descriptors.collect();
    let descriptors: Vec<&[u8]> = descriptors.iter().map(<[u8; 256]>::as_slice).collect();
    lanes::hash_each(&descriptors, 256)
}
