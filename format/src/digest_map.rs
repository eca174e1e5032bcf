//! A map from digests to numbers.

use alloc::vec::Vec;
use core::mem::replace;

/// The most rows of a block.
const BLOCK_ROWS: usize = 512;

/// The numbers of digests, in blocks of sorted rows. A `BTreeMap` does the same; its code is a hundredth of the browser's module, this a tenth of that.
#[derive(Clone, Debug, Default)]
pub struct DigestMap {
    /// None is empty.
    blocks: Vec<Vec<([u8; 32], u32)>>,
    len: usize,
}

impl DigestMap {
    /// Returns a digest's number.
    #[must_use]
    pub fn get(&self, digest: &[u8; 32]) -> Option<u32> {
        let (block, place) = self.place(digest);
        Some(self.blocks.get(block)?.get(place.ok()?)?.1)
    }

    /// Returns how many digests have a number.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether none has.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the digests in ascending order, each with its number.
    pub fn iter(&self) -> impl Iterator<Item = &([u8; 32], u32)> {
        self.blocks.iter().flatten()
    }

    /// Returns a digest's number, which becomes `number` if it had none.
    pub fn get_or_insert(&mut self, digest: [u8; 32], number: u32) -> u32 {
        if let Some(known) = self.get(&digest) {
            return known;
        }
        self.insert(digest, number);
        number
    }

    /// Sets a digest's number, and returns the one that it had before.
    pub fn insert(&mut self, digest: [u8; 32], number: u32) -> Option<u32> {
        let (block, place) = self.place(&digest);
        if self.blocks.is_empty() {
            self.blocks.push(Vec::new());
        }
        let rows = &mut self.blocks[block];
        let place = match place {
            Ok(place) => return Some(replace(&mut rows[place].1, number)),
            Err(place) => place,
        };
        self.len += 1;
        rows.insert(place, (digest, number));
        if rows.len() > BLOCK_ROWS {
            let upper = rows.split_off(BLOCK_ROWS / 2);
            self.blocks.insert(block + 1, upper);
        }
        None
    }

    /// Returns the block that has a digest or is to have it, and its row there, or where that is to be inserted.
    fn place(&self, digest: &[u8; 32]) -> (usize, Result<usize, usize>) {
        let after = self.blocks.partition_point(|rows| rows.first().is_some_and(|(first, _)| first <= digest));
        let block = after.saturating_sub(1);
        let rows = self.blocks.get(block).map_or(&[][..], Vec::as_slice);
        (block, rows.binary_search_by(|(own, _)| own.cmp(digest)))
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use super::*;

    #[test]
    fn it_maps_as_a_tree_does() {
        let (mut map, mut tree) = (DigestMap::default(), BTreeMap::new());
        for number in 0..20_000_u32 {
            // Each digest comes several times, in no order.
            let digest = *blake3::hash(&(number % 7_001).to_le_bytes()).as_bytes();
            assert_eq!(map.get(&digest), tree.get(&digest).copied());
            assert_eq!(map.insert(digest, number), tree.insert(digest, number));
        }
        assert!(tree.iter().all(|(digest, number)| map.get(digest) == Some(*number)));
        assert!(map.iter().map(|(digest, _)| digest).eq(tree.keys()));
        assert_eq!((map.len(), map.is_empty()), (7_001, false));
        assert_eq!(map.get(&[0; 32]), None);
    }
}
