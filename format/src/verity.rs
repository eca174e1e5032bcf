//! The fs-verity digest of bytes: SHA-256, 4096-byte blocks, no salt (kernel documentation, "fs-verity file digest").

use alloc::vec::Vec;

use sha2::{Digest as _, Sha256};

/// Bytes of a data block and of a block of the Merkle tree.
const BLOCK: usize = 4096;

static ZEROS: [u8; BLOCK] = [0; BLOCK];

/// Computes fs-verity digests piece by piece.
///
/// Updates may be of any lengths: what does not fill a block is kept until it does.
#[derive(Clone, Debug, Default)]
pub struct VerityHasher {
    len: u64,
    /// Bytes that do not fill a data block yet.
    partial: Vec<u8>,
    /// For each level of the tree, the hashes that do not fill a block yet.
    levels: Vec<Vec<u8>>,
}

impl VerityHasher {
    /// A hasher that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes.
    pub fn update(&mut self, mut bytes: &[u8]) {
        self.len = self.len.saturating_add(crate::bytes::widen(bytes.len()));
        if !self.partial.is_empty() {
            let (head, rest) = bytes.split_at(bytes.len().min(BLOCK - self.partial.len()));
            self.partial.extend(head);
            bytes = rest;
            if self.partial.len() < BLOCK {
                return;
            }
            let hash = block_hash(&self.partial);
            self.partial.clear();
            self.push(0, &hash);
        }
        let (blocks, rest) = bytes.as_chunks::<BLOCK>();
        for block in blocks {
            self.push(0, &Sha256::digest(block).into());
        }
        self.partial.extend(rest);
    }

    /// Takes the next `len` bytes by the hashes of their blocks, as [`block_hashes`] gives them: for callers that hash parts of a file in
    /// parallel. What came before is to have filled its last block.
    pub fn update_hashed(&mut self, len: u64, hashes: &[[u8; 32]]) {
        self.len = self.len.saturating_add(len);
        for hash in hashes {
            self.push(0, hash);
        }
    }

    /// Takes the bytes that another hasher took with [`Self::update_hashed`], at most 2^n blocks of them. What came before is to have
    /// been a multiple of 2^n blocks. So the pieces of a file are hashed in any order, and what is kept of each is short.
    pub fn append(&mut self, next: &Self) {
        self.len = self.len.saturating_add(next.len);
        // What a level lacks to its next full block is on the levels below it.
        for (level, hashes) in next.levels.iter().enumerate().rev() {
            for hash in hashes.as_chunks::<32>().0 {
                self.push(level, hash);
            }
        }
    }

    /// Appends what is known to `out`, for another instance of this program: threads share memory, and a browser's workers do not.
    pub fn save(&self, out: &mut Vec<u8>) {
        let len = |bytes: &[u8]| u16::try_from(bytes.len()).unwrap_or(u16::MAX).to_le_bytes();
        out.extend(self.len.to_le_bytes());
        out.extend(u16::try_from(self.levels.len()).unwrap_or(u16::MAX).to_le_bytes());
        for part in core::iter::once(&self.partial).chain(&self.levels) {
            out.extend(len(part));
            out.extend(part);
        }
    }

    /// Returns what [`Self::save`] wrote, and the bytes behind it.
    #[must_use]
    pub fn restore(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (len, bytes) = bytes.split_first_chunk()?;
        let (count, mut bytes) = bytes.split_first_chunk()?;
        let mut parts = Vec::new();
        for _ in 0..=u16::from_le_bytes(*count) {
            let (len, rest) = bytes.split_first_chunk()?;
            let (part, rest) = rest.split_at_checked(u16::from_le_bytes(*len).into())?;
            parts.push(part.to_vec());
            bytes = rest;
        }
        let partial = parts.remove(0);
        Some((Self { len: u64::from_le_bytes(*len), partial, levels: parts }, bytes))
    }

    /// Appends a hash to a level, and its block's hash to the one above when the block is full.
    fn push(&mut self, level: usize, hash: &[u8; 32]) {
        if self.levels.len() <= level {
            self.levels.resize_with(level + 1, Vec::new);
        }
        self.levels[level].extend(hash);
        if self.levels[level].len() == BLOCK {
            let hash = block_hash(&self.levels[level]);
            self.levels[level].clear();
            self.push(level + 1, &hash);
        }
    }

    /// Returns the digest.
    #[must_use]
    pub fn finish(mut self) -> [u8; 32] {
        if !self.partial.is_empty() {
            let hash = block_hash(&core::mem::take(&mut self.partial));
            self.push(0, &hash);
        }
        let root = self.root();
        file_digest(self.len, &root)
    }

    /// The Merkle tree's root hash: zeros for an empty file.
    fn root(&mut self) -> [u8; 32] {
        let mut level = 0;
        while level < self.levels.len() {
            let hashes = core::mem::take(&mut self.levels[level]);
            let top = level + 1 == self.levels.len();
            match hashes.as_chunks::<32>().0 {
                [] => {}
                [root] if top => return *root,
                _ => self.push(level + 1, &block_hash(&hashes)),
            }
            level += 1;
        }
        [0; 32]
    }
}

/// SHA-256 of a block that zeros fill up.
fn block_hash(bytes: &[u8]) -> [u8; 32] {
    let fill = &ZEROS[..BLOCK.saturating_sub(bytes.len())];
    Sha256::new().chain_update(bytes).chain_update(fill).finalize().into()
}

/// Returns the hash of each block of `bytes`, the last filled up with zeros.
#[must_use]
pub fn block_hashes(bytes: &[u8]) -> Vec<[u8; 32]> {
    let zero = block_hash(&[]);
    // Sparse files are long: comparing a block with zeros costs a tenth of hashing it.
    bytes.chunks(BLOCK).map(|block| if block == &ZEROS[..block.len()] { zero } else { block_hash(block) }).collect()
}

/// Returns the fs-verity digest of `bytes`.
#[must_use]
pub fn digest(bytes: &[u8]) -> [u8; 32] {
    // Most files have a tree of one block at most, which needs no memory.
    let root = match bytes.len().div_ceil(BLOCK) {
        0 => [0; 32],
        1 => block_hash(bytes),
        blocks if blocks <= BLOCK / 32 => {
            let mut level = [0; BLOCK];
            for (hash, block) in level.as_chunks_mut::<32>().0.iter_mut().zip(bytes.chunks(BLOCK)) {
                *hash = block_hash(block);
            }
            block_hash(&level)
        }
        _ => {
            let mut hasher = VerityHasher::new();
            hasher.update(bytes);
            return hasher.finish();
        }
    };
    file_digest(crate::bytes::widen(bytes.len()), &root)
}

/// The digest of a file of `len` bytes whose Merkle tree has this root hash.
fn file_digest(len: u64, root: &[u8; 32]) -> [u8; 32] {
    let mut descriptor = [0; 256];
    descriptor[0] = 1; // version
    descriptor[1] = 1; // SHA-256
    descriptor[2] = 12; // log2 of the block size
    descriptor[8..16].copy_from_slice(&len.to_le_bytes());
    descriptor[16..48].copy_from_slice(root);
    Sha256::digest(descriptor).into()
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

    /// What `fsverity digest` (fsverity-utils 1.5) prints.
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
    fn short_updates_give_the_same() {
        for (content, answer) in known() {
            for step in [1, 7, 4095, 4096, 5000] {
                let mut hasher = VerityHasher::new();
                content.chunks(step).for_each(|part| hasher.update(part));
                assert_eq!(hex(&hasher.finish()), answer, "{} bytes by {step}", content.len());
            }
        }
    }

    /// The hasher as another worker gets it.
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
    fn appended_pieces_give_the_same() {
        let content: Vec<u8> = (0_u32..700_000).flat_map(u32::to_le_bytes).collect();
        for piece in [1, 2, 64, 128, 256].map(|blocks| blocks * BLOCK) {
            for len in [1, BLOCK, BLOCK * 128 + 1, BLOCK * 256, content.len()] {
                let mut hasher = VerityHasher::new();
                for part in content[..len].chunks(piece) {
                    let mut next = VerityHasher::new();
                    next.update_hashed(crate::bytes::widen(part.len()), &block_hashes(part));
                    hasher.append(&passed_on(&next));
                }
                assert_eq!(hasher.finish(), digest(&content[..len]), "{len} bytes by {piece}");
            }
        }
    }
}
