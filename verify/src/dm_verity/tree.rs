//! The hash tree: where its levels lie, and which block has which hash. The highest level, of one block, comes first.

use std::ops::Range;

use sealift_format::num::{at, wide};
use sealift_format::verity::Algorithm;
use sha2::{Digest, Sha256, Sha512};

use super::{Superblock, SuperblockError};

/// A hash tree in a file, which may be that of the data.
#[derive(Clone, Debug)]
pub struct HashTree {
    superblock: Superblock,
    /// From the data up.
    layers: Vec<Layer>,
    top: Option<Range<u64>>,
}

/// Blocks whose hashes the tree holds: those of the data, or of a level of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Layer {
    /// The level of the tree, from 0; `None` for the data.
    pub level: Option<u32>,
    /// Where the blocks begin, in the data or in the file of the tree.
    pub offset: u64,
    /// Bytes of a block.
    pub block_len: u32,
    /// The number of blocks.
    pub blocks: u64,
    /// Where their hashes begin, in the file of the tree. These follow each other.
    hashes_at: u64,
    hash_len: u32,
}

/// Blocks of a layer that do not have the hashes in the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mismatch {
    /// The level of the tree, from 0; `None` for the data.
    pub level: Option<u32>,
    /// The number of the first such block.
    pub block: u64,
    /// Its offset in the data or in the file of the tree, in bytes.
    pub offset: u64,
    /// How many there are.
    pub count: u64,
}

impl HashTree {
    /// Returns the tree behind a superblock that lies at `offset` of a file of `tree_file_len` bytes. The data has `data_len` bytes.
    ///
    /// # Errors
    /// Returns an error if the data or the tree is not there.
    pub fn new(
        superblock: Superblock,
        offset: u64,
        tree_file_len: u64,
        data_len: u64,
    ) -> Result<Self, SuperblockError> {
        let blocks = superblock.data_blocks;
        let found = data_len / u64::from(superblock.data_block_len);
        if blocks == 0 || blocks > found {
            return Err(SuperblockError::Data { blocks, found });
        }
        // Hashes and blocks have powers of two of bytes, so that no space is left between hashes.
        let hash_block_len = u64::from(superblock.hash_block_len);
        let hash_len = u32::from(superblock.algorithm.digest_len());
        let per_block = hash_block_len / u64::from(hash_len);
        let mut levels = Vec::new();
        let mut below = blocks;
        while below > 1 {
            below = below.div_ceil(per_block);
            levels.push(below);
        }
        let cut = |needed| SuperblockError::Cut { needed, found: tree_file_len };
        let start =
            offset.checked_add(wide(Superblock::LEN)).and_then(|end| end.checked_next_multiple_of(hash_block_len));
        let len = levels.iter().sum::<u64>().checked_mul(hash_block_len);
        let (Some(start), Some(end)) = (start, start.zip(len).and_then(|(start, len)| start.checked_add(len))) else {
            return Err(cut(u64::MAX));
        };
        if end > tree_file_len && !levels.is_empty() {
            return Err(cut(end));
        }
        let mut layers = Vec::new();
        let mut layer =
            Layer { level: None, offset: 0, block_len: superblock.data_block_len, blocks, hashes_at: 0, hash_len };
        let mut place = end;
        for (level, blocks) in (0..).zip(levels) {
            place -= blocks * hash_block_len;
            layers.push(Layer { hashes_at: place, ..layer });
            layer = Layer {
                level: Some(level),
                offset: place,
                block_len: superblock.hash_block_len,
                blocks,
                hashes_at: 0,
                hash_len,
            };
        }
        let top = (!layers.is_empty()).then(|| start..start + hash_block_len);
        Ok(Self { superblock, layers, top })
    }

    /// Returns the superblock.
    #[must_use]
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// Returns the number of bytes of the data that the tree is for.
    #[must_use]
    pub fn data_len(&self) -> u64 {
        self.superblock.data_blocks.saturating_mul(self.superblock.data_block_len.into())
    }

    /// Returns where the top block lies in the file of the tree; `None` if the data is a single block, which is the top itself.
    #[must_use]
    pub fn top(&self) -> Option<Range<u64>> {
        self.top.clone()
    }

    /// Returns the layers, from the highest level down to the data. None if the data is a single block.
    pub fn layers(&self) -> impl Iterator<Item = &Layer> {
        self.layers.iter().rev()
    }

    /// Returns the hash of a block. That of the top block is the root hash.
    #[must_use]
    pub fn hash(&self, block: &[u8]) -> Vec<u8> {
        match self.superblock.algorithm {
            Algorithm::Sha256 => self.hasher::<Sha256>()(block).to_vec(),
            Algorithm::Sha512 => self.hasher::<Sha512>()(block).to_vec(),
        }
    }

    /// Compares whole blocks of a layer, from number `first` on, with their hashes: the bytes at [`Layer::hashes_of`].
    #[must_use]
    pub fn compare(&self, layer: &Layer, first: u64, blocks: &[u8], hashes: &[u8]) -> Option<Mismatch> {
        match self.superblock.algorithm {
            Algorithm::Sha256 => layer.compare(self.hasher::<Sha256>(), first, blocks, hashes),
            Algorithm::Sha512 => layer.compare(self.hasher::<Sha512>(), first, blocks, hashes),
        }
    }

    fn hasher<D: Digest + Clone>(&self) -> impl Fn(&[u8]) -> sha2::digest::Output<D> {
        let Superblock { is_salt_first, salt, .. } = &self.superblock;
        let (before, behind) = if *is_salt_first { (&salt[..], &[][..]) } else { (&[][..], &salt[..]) };
        let salted = D::new_with_prefix(before);
        move |block| salted.clone().chain_update(block).chain_update(behind).finalize()
    }
}

impl Layer {
    /// Returns where blocks lie, in the data or in the file of the tree.
    #[must_use]
    pub fn bytes_of(&self, blocks: Range<u64>) -> Range<u64> {
        let place = |block: u64| self.offset + block * u64::from(self.block_len);
        place(blocks.start)..place(blocks.end)
    }

    /// Returns where the hashes of blocks lie in the file of the tree.
    #[must_use]
    pub fn hashes_of(&self, blocks: Range<u64>) -> Range<u64> {
        let place = |block: u64| self.hashes_at + block * u64::from(self.hash_len);
        place(blocks.start)..place(blocks.end)
    }

    fn compare<H: AsRef<[u8]>>(
        &self,
        hash: impl Fn(&[u8]) -> H,
        first: u64,
        blocks: &[u8],
        hashes: &[u8],
    ) -> Option<Mismatch> {
        let pairs = blocks.chunks(at(self.block_len)).zip(hashes.chunks(at(self.hash_len)));
        let mut wrong = (first..).zip(pairs).filter(|(_, (block, wanted))| hash(block).as_ref() != *wanted);
        let (block, _) = wrong.next()?;
        let offset = self.bytes_of(block..block).start;
        Some(Mismatch { level: self.level, block, offset, count: 1 + wide(wrong.count()) })
    }
}

impl Mismatch {
    /// Returns the mismatches of two runs of blocks as one.
    #[must_use]
    pub fn and(self, later: Self) -> Self {
        Self { count: self.count + later.count, ..self }
    }
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { level, block, offset, count } = self;
        match level {
            None => write!(f, "data block {block} at byte {offset}")?,
            Some(level) => write!(f, "block {block} at byte {offset}, in level {level} of the hash tree,")?,
        }
        match count - 1 {
            0 => f.write_str(" does not have the hash in the tree"),
            1 => f.write_str(" and another block do not have the hashes in the tree"),
            others => write!(f, " and {others} other blocks do not have the hashes in the tree"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use sealift_format::num::size;

    use super::super::superblock::tests::{superblock, usual};
    use super::*;

    /// Builds a tree as the kernel's documentation describes it: level by level, each padded to whole blocks. Returns it, and the root hash.
    fn build(superblock: &Superblock, data: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let hash = |block: &[u8]| {
            let parts = [&superblock.salt[..], block];
            let parts = if superblock.is_salt_first { parts } else { [parts[1], parts[0]] };
            match superblock.algorithm {
                Algorithm::Sha256 => Sha256::digest(parts.concat()).to_vec(),
                Algorithm::Sha512 => Sha512::digest(parts.concat()).to_vec(),
            }
        };
        let (mut below, mut len, mut tree) = (data.to_vec(), at(superblock.data_block_len), Vec::new());
        while below.len() > len {
            let mut level: Vec<u8> = below.chunks(len).flat_map(hash).collect();
            len = at(superblock.hash_block_len);
            level.resize(level.len().next_multiple_of(len), 0);
            tree = [&level[..], &tree].concat();
            below = level;
        }
        (tree, hash(&below))
    }

    fn check(tree: &HashTree, data: &[u8], file: &[u8], step: u64) -> Option<Mismatch> {
        let bytes = |of: &[u8], range: Range<u64>| of[size(range.start)..size(range.end)].to_vec();
        tree.layers().find_map(|layer| {
            let of = if layer.level.is_some() { file } else { data };
            let parts = (0..layer.blocks).step_by(size(step)).map(|first| {
                let part = first..layer.blocks.min(first + step);
                let (blocks, hashes) = (bytes(of, layer.bytes_of(part.clone())), bytes(file, layer.hashes_of(part)));
                tree.compare(layer, first, &blocks, &hashes)
            });
            parts.flatten().reduce(Mismatch::and)
        })
    }

    #[test]
    fn hostile_numbers_of_blocks_are_refused() {
        let known = Superblock { data_block_len: 512, hash_block_len: 512, ..usual() };
        for blocks in [0, 3, 1 << 63, u64::MAX] {
            let of = HashTree::new(Superblock { data_blocks: blocks, ..known.clone() }, 0, 1 << 20, 1024);
            assert_eq!(of.err(), Some(SuperblockError::Data { blocks, found: 2 }));
        }
        let far = Superblock { data_blocks: u64::MAX / 512, ..known.clone() };
        let cut = HashTree::new(far, u64::MAX - 511, 1 << 20, u64::MAX).err();
        assert_eq!(cut, Some(SuperblockError::Cut { needed: u64::MAX, found: 1 << 20 }));
        let of = |tree_file_len| HashTree::new(Superblock { data_blocks: 2, ..known.clone() }, 0, tree_file_len, 1024);
        assert_eq!(of(1023).err(), Some(SuperblockError::Cut { needed: 1024, found: 1023 }));
        assert_eq!(of(1024).expect("it is whole").top(), Some(512..1024));
    }

    #[test]
    fn mismatches_of_two_runs_add_up() {
        let run = |block, count| Mismatch { level: None, block, offset: block * 512, count };
        assert_eq!(run(3, 2).and(run(9, 4)), run(3, 6));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// The root hash is that of the tree which the documentation describes. The tree holds, and any changed byte of data or tree is found, however
        /// the blocks are divided.
        #[test]
        fn trees_hold_until_a_byte_changes(
            superblock in superblock(),
            blocks in 1..700_u64,
            logs in (9..11_u32, 9..11_u32),
            offset in 0..9_u64,
            step in 1..300_u64,
            change in any::<prop::sample::Index>(),
        ) {
            let superblock =
                Superblock { data_block_len: 1 << logs.0, hash_block_len: 1 << logs.1, data_blocks: blocks, ..superblock };
            let len = size(blocks) << logs.0;
            let data: Vec<u8> = (0..len).map(|at| u8::try_from((at / 7 + at / 513) % 251).expect("it is below")).collect();
            let (levels, root) = build(&superblock, &data);
            let offset = offset * 512;
            let start = (offset + 512).next_multiple_of(superblock.hash_block_len.into());
            let file = [vec![0; size(start)], levels.clone()].concat();
            let tree = HashTree::new(superblock, offset, wide(file.len()), wide(len)).expect("it is good");
            let top = match tree.top() {
                Some(top) => file[size(top.start)..size(top.end)].to_vec(),
                None => data.clone(),
            };
            prop_assert_eq!(tree.hash(&top), root);
            prop_assert_eq!(check(&tree, &data, &file, step), None);
            prop_assume!(blocks > 1);
            let at = change.index(data.len() + levels.len());
            let (mut data, mut file) = (data, file);
            match at.checked_sub(data.len()) {
                None => {
                    data[at] ^= 1;
                    let found = check(&tree, &data, &file, step).expect("it is found");
                    prop_assert_eq!((found.level, found.block, found.count), (None, wide(at) >> logs.0, 1));
                }
                Some(at) => {
                    let at = size(start) + at;
                    file[at] ^= 1;
                    // In the top block, padding changes only the root hash.
                    let is_of_top = tree.top().is_some_and(|top| top.contains(&wide(at)));
                    let found = check(&tree, &data, &file, step);
                    if let Some(found) = found {
                        let reach = found.offset..found.offset + (1 << logs.1);
                        prop_assert!(is_of_top || found.level.is_some() && reach.contains(&wide(at)), "{found:?}");
                    } else {
                        prop_assert!(is_of_top);
                    }
                }
            }
        }
    }
}
