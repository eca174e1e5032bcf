//! Partitions of a disk image with dm-verity, as systemd finds them (Discoverable Partitions Specification): the UUID of the partition with the data is the
//! first half of the root hash, and that of the partition with the hash tree the second half.

use std::ops::Range;

use sealift_format::num::wide;

use super::le;

/// Bytes at the start of an image in which a partition table lies: with sectors of 4096 bytes, header and entries are in the first six.
pub const TABLE_LEN: u64 = 24 << 10;

/// A partition of a GPT (UEFI specification 2.10, 5.3).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Partition {
    /// Its number, from 1.
    pub number: u32,
    /// Its UUID, in the order in which it is written as text.
    pub uuid: [u8; 16],
    /// Its bytes in the image.
    pub range: Range<u64>,
}

/// The entries of a usual table, and the length of each.
const ENTRIES_MAX: u64 = 128;
const ENTRY_LEN: usize = 128;
const SECTOR_LENS: [usize; 2] = [512, 4096];
const MAGIC: &[u8] = b"EFI PART";

/// Returns the partitions of an image; none if it has no GPT. `head` are its first [`TABLE_LEN`] bytes, or all of a shorter one, and `image_len` is its
/// length. What lies outside of the image, or has entries of an unusual length or place, is left out.
#[must_use]
pub fn partitions(head: &[u8], image_len: u64) -> Vec<Partition> {
    let has_table = |sector: &usize| head.get(*sector..).is_some_and(|header| header.starts_with(MAGIC));
    let Some(sector) = SECTOR_LENS.into_iter().find(has_table) else { return Vec::new() };
    let Some(header) = head.get(sector..sector + 92) else { return Vec::new() };
    let (count, entry_len) = (le::<4>(header, 80).min(ENTRIES_MAX), le::<4>(header, 84));
    let sector_len = wide(sector);
    let Some(entries) = le::<8>(header, 72).checked_mul(sector_len) else { return Vec::new() };
    let Some(entries) = usize::try_from(entries).ok().and_then(|at| head.get(at..)) else { return Vec::new() };
    if entry_len != 128 {
        return Vec::new();
    }
    let entries = entries.chunks_exact(ENTRY_LEN).zip(1..).take(usize::try_from(count).unwrap_or(0));
    entries.filter_map(|(entry, number)| Partition::of(entry, number, sector_len, image_len)).collect()
}

impl Partition {
    fn of(entry: &[u8], number: u32, sector_len: u64, image_len: u64) -> Option<Self> {
        let is_used = entry.get(..16)?.iter().any(|byte| *byte != 0);
        let start = le::<8>(entry, 32).checked_mul(sector_len)?;
        let end = le::<8>(entry, 40).checked_add(1)?.checked_mul(sector_len)?;
        // The first three fields of a GUID are little-endian.
        let order = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
        let guid = entry.get(16..32)?;
        let uuid = order.map(|at| guid[at]);
        (is_used && start < end && end <= image_len).then_some(Self { number, uuid, range: start..end })
    }

    /// Returns whether a hash tree with this root hash lies in `tree`, and its data in this partition.
    #[must_use]
    pub fn is_of(&self, tree: &Self, root_hash: &[u8]) -> bool {
        root_hash.first_chunk() == Some(&self.uuid) && root_hash.last_chunk() == Some(&tree.uuid)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn table(sector: usize, entries: &[(u64, u64)]) -> Vec<u8> {
        let mut head = vec![0; 24 << 10];
        head[sector..sector + 8].copy_from_slice(MAGIC);
        head[sector + 72] = 2;
        head[sector + 80] = 128;
        head[sector + 84] = 128;
        for (number, (first, last)) in entries.iter().enumerate() {
            let entry = &mut head[2 * sector + number * 128..][..128];
            entry[0] = 1;
            (0..16).zip(&mut entry[16..32]).for_each(|(value, byte)| *byte = value);
            entry[32..40].copy_from_slice(&first.to_le_bytes());
            entry[40..48].copy_from_slice(&last.to_le_bytes());
        }
        head
    }

    #[test]
    fn a_table_lists_its_partitions() {
        let uuid = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
        for sector in [512, 4096] {
            let head = table(sector, &[(64, 71), (0, u64::MAX), (72, 72), (90, 80), (99, 100)]);
            let len = u64::try_from(sector).expect("it is short");
            let found = partitions(&head, 100 * len);
            let wanted = [(1, 64..72), (3, 72..73)].map(|(number, range)| Partition {
                number,
                uuid,
                range: range.start * len..range.end * len,
            });
            assert_eq!(found, wanted);
            assert_eq!(partitions(&head[..sector + 91], u64::MAX), []);
        }
        assert_eq!(partitions(&[], 0), []);
        let tree = Partition { number: 2, uuid: [7; 16], range: 0..1 };
        let data = Partition { number: 1, uuid, range: 0..1 };
        assert!(data.is_of(&tree, &[&uuid[..], &[7; 16]].concat()));
        assert!(!data.is_of(&tree, &[&uuid[..], &[8; 16]].concat()) && !data.is_of(&tree, &uuid[1..]));
    }

    proptest! {
        #[test]
        fn partitions_lie_in_the_image(mut head in proptest::collection::vec(any::<u8>(), 0..3000), len in any::<u64>()) {
            if let Some(place) = head.get_mut(512..520) {
                place.copy_from_slice(MAGIC);
            }
            if let Some(place) = head.get_mut(584..600) {
                place.copy_from_slice(&[2, 0, 0, 0, 0, 0, 0, 0, 128, 0, 0, 0, 128, 0, 0, 0]);
            }
            prop_assert!(partitions(&head, len).iter().all(|found| found.range.start < found.range.end && found.range.end <= len));
        }
    }
}
