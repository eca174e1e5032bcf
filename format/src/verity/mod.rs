//! fs-verity digests (kernel documentation, "fs-verity file digest").
//!
//! Objects and the index use SHA-256, 4096-byte blocks and no salt, for which [`digest`] and [`VerityHasher`] compute digests;
//! [`FileHasher`] does so for any [`Parameters`].

#[cfg(target_arch = "wasm32")]
mod lanes;
#[cfg(not(target_arch = "wasm32"))]
mod one_by_one;
mod parameters;
#[cfg(target_arch = "wasm32")]
mod side_by_side;
mod tree;

use alloc::vec::Vec;

use sha2::{Digest as _, Sha256};

#[cfg(not(target_arch = "wasm32"))]
pub use one_by_one::{block_hashes, digest, digests};
pub use parameters::{Algorithm, FileDigest, FileHasher, Parameters, ParametersError};
#[cfg(target_arch = "wasm32")]
pub use side_by_side::{block_hashes, digest, digests};
use tree::Tree;

/// The length in bytes of a data block and of a block of the Merkle tree.
const BLOCK: usize = 4096;

/// The length in bytes of the longest file whose Merkle tree has only one block.
const LOW: usize = BLOCK / 32 * BLOCK;

static ZEROS: [u8; BLOCK] = [0; BLOCK];

/// Computes digests piece by piece.
///
/// Updates may have any length: bytes that do not fill a block are kept until they do.
#[derive(Clone, Debug)]
pub struct VerityHasher(Tree<Sha256>);

impl Default for VerityHasher {
    fn default() -> Self {
        Self::new()
    }
}

impl VerityHasher {
    /// Returns a hasher that has taken no bytes.
    #[must_use]
    pub fn new() -> Self {
        Self(Tree::new(Sha256::new(), BLOCK))
    }

    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Takes the next `len` bytes in the form of the hashes of their blocks, as [`block_hashes`] returns them: for callers that hash parts of a file
    /// in parallel. The bytes before must fill their last block.
    pub fn update_hashed(&mut self, len: u64, hashes: &[[u8; 32]]) {
        self.0.update_hashed(len, hashes.iter().map(<[u8; 32]>::as_slice));
    }

    /// Takes the bytes that another hasher took with [`Self::update_hashed`], at most 2^n blocks. The bytes before must be a multiple of 2^n blocks.
    /// In this way, the pieces of a file can be hashed in any order, with little memory for each.
    pub fn append(&mut self, next: &Self) {
        self.0.append(&next.0);
    }

    /// Appends the state to `out`, for another instance of this program: a browser's workers do not share memory.
    pub fn save(&self, out: &mut Vec<u8>) {
        self.0.save(out);
    }

    /// Returns the state that [`Self::save`] wrote, and the bytes after it.
    #[must_use]
    pub fn restore(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (tree, rest) = Tree::new(Sha256::new(), BLOCK).restored(bytes)?;
        Some((Self(tree), rest))
    }

    /// Returns the digest.
    #[must_use]
    pub fn finish(self) -> [u8; 32] {
        let (len, root) = (self.0.len(), self.0.finish());
        file_digest(len, &root)
    }
}

/// Returns the digest of a file of `len` bytes whose Merkle tree has this root hash of 32 bytes. Called for each object, it allocates nothing.
fn file_digest(len: u64, root: &[u8]) -> [u8; 32] {
    Sha256::digest(descriptor(len, root)).into()
}

fn descriptor(len: u64, root: &[u8]) -> [u8; 256] {
    parameters::descriptor(Algorithm::Sha256, 4096, &[], len, root)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::String;
    use alloc::vec;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Returns what `fsverity digest` (fsverity-utils 1.5) prints.
    fn known() -> [(Vec<u8>, &'static str); 8] {
        [
            (vec![], "3d248ca542a24fc62d1c43b916eae5016878e2533c88238480b26128a1f1af95"),
            (b"foo\n".to_vec(), "de2df1b639099a07c888f7cfda6e94a61f41fd86d1c1bba22238a06865f1d181"),
            (b"lorem ipsum\n".to_vec(), "fda0e2d973b5c81e4a8ccc43a0bb13cbc9b5da8d83c4ff4416f6860ea20df0d6"),
            (vec![0; 4096], "babc284ee4ffe7f449377fbf6692715b43aec7bc39c094a95878904d34bac97e"),
            (vec![b'A'; 4096], "3fd7a78101899a79cd337b1b4e5414be8bcb376b133370156ef6e65026d930ed"),
            (vec![b'A'; 4097], "7319937c445f61df1a8f310eb4d6da157618d80713972a78d70a7528fc1a6f32"),
            (vec![b'A'; 524_288], "f5c2b9ded1595acfe8a996795264d488dd6140531f6a01f8f8086a83fd835935"),
            (vec![b'A'; 524_289], "a7abb76568871169a79104d00679fae6521dfdb2a2648e380c02b10e96e217ff"),
        ]
    }

    #[test]
    fn known_answers() {
        for (content, answer) in known() {
            assert_eq!(hex(&digest(&content)), answer, "{} bytes", content.len());
        }
    }

    #[test]
    fn several_at_once() {
        let known = known();
        let contents: Vec<&[u8]> = known.iter().map(|(content, _)| content.as_slice()).collect();
        let found: Vec<_> = digests(&contents).iter().map(|digest| hex(digest)).collect();
        assert_eq!(found, known.map(|(_, answer)| answer));
    }

    #[test]
    fn short_updates_give_the_same() {
        for (content, answer) in known() {
            for step in [1, 7, 4095, 4096, 5000] {
                let mut hasher = VerityHasher::new();
                content.chunks(step).for_each(|part| hasher.update(part));
                assert_eq!(hex(&hasher.finish()), answer, "{} bytes by {step}", content.len());
            }
        }
    }

    /// Returns the hasher as another worker receives it.
    fn passed_on(hasher: &VerityHasher) -> VerityHasher {
        let mut saved = Vec::new();
        hasher.save(&mut saved);
        for len in 0..saved.len() {
            assert!(VerityHasher::restore(&saved[..len]).is_none(), "cut after {len} bytes");
        }
        saved.push(7);
        let (restored, rest) = VerityHasher::restore(&saved).expect("it was saved");
        assert_eq!(rest, [7]);
        restored
    }

    #[test]
    fn a_hasher_goes_on_where_it_was_passed_on() {
        let content = vec![b'A'; 524_289];
        let mut hasher = VerityHasher::new();
        for part in content.chunks(100_000) {
            hasher = passed_on(&hasher);
            hasher.update(part);
        }
        assert_eq!(hasher.finish(), digest(&content));
    }

    #[test]
    fn appended_pieces_give_the_same() {
        let content: Vec<u8> = (0_u32..700_000).flat_map(u32::to_le_bytes).collect();
        for piece in [1, 2, 64, 128, 256].map(|blocks| blocks * BLOCK) {
            for len in [1, BLOCK, BLOCK * 128 + 1, BLOCK * 256, content.len()] {
                let mut hasher = VerityHasher::new();
                for part in content[..len].chunks(piece) {
                    let mut next = VerityHasher::new();
                    next.update_hashed(crate::num::wide(part.len()), &block_hashes(part));
                    hasher.append(&passed_on(&next));
                }
                assert_eq!(hasher.finish(), digest(&content[..len]), "{len} bytes by {piece}");
            }
        }
    }
}
