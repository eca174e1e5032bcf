//! Disks with a GUID partition table (UEFI 2.10, 5.3). Partitions are members, named by their numbers, from 1.

use sealift_format::num::wide;

use super::anatomy::Anatomy;
use super::block::Hint;
use super::draft::Draft;
use super::fault::ContainerFault;
use super::parts::Parts;
use super::reader::{Reader, le32, le64, size};

const MAGIC: &[u8] = b"EFI PART";
/// The most partitions that are listed; tables usually have room for 128.
const MOST: u32 = 4096;
const LONGEST_ENTRY: u32 = 4096;

/// Returns whether a container that begins with these bytes is such a disk.
pub(super) fn is(head: &[u8]) -> bool {
    sector_len(head).is_some()
}

/// Returns the length of a sector, at whose end the table's header lies.
fn sector_len(head: &[u8]) -> Option<usize> {
    [512, 4096].into_iter().find(|len| head.get(*len..).is_some_and(|header| header.starts_with(MAGIC)))
}

/// Takes a disk apart.
pub(super) fn read(reader: &Reader<'_>) -> Result<Anatomy, ContainerFault> {
    let head = reader.up_to(0, 4096 + 92)?;
    let sector_len = wide(sector_len(&head).unwrap_or(512));
    let header = reader.bytes(sector_len, 92)?;
    let (entries_at, count, entry_len) = (le64(&header, 72), le32(&header, 80), le32(&header, 84));
    if count > MOST || !(128..=LONGEST_ENTRY).contains(&entry_len) {
        return Err(reader.damaged(sector_len, "the header of the partition table is damaged"));
    }
    let mut draft = Draft::new(reader);
    let mut at = entries_at.saturating_mul(sector_len);
    let table = reader.bytes(at, size(u64::from(count) * u64::from(entry_len)))?;
    for (number, entry) in (1_u32..).zip(table.chunks_exact(size(entry_len.into()))) {
        let is_used = entry.iter().take(16).any(|byte| *byte != 0);
        let (first, last) = (le64(entry, 32), le64(entry, 40));
        if is_used {
            let sectors = last.checked_sub(first).and_then(|sectors| sectors.checked_add(1));
            let place =
                sectors.and_then(|sectors| Some((first.checked_mul(sector_len)?, sectors.checked_mul(sector_len)?)));
            let (offset, len) = place.ok_or_else(|| reader.damaged(at, "a partition ends before it begins"))?;
            draft.member(number.to_string().into_bytes(), Parts::stored(offset, len))?;
        }
        at += u64::from(entry_len);
    }
    draft.finish(Hint::None)
}
