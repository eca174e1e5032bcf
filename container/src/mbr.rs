//! Disks with a master boot record. Partitions are members, named by their numbers as Linux counts them: from 1, and logical ones from 5.

use super::anatomy::Anatomy;
use super::block::Hint;
use super::draft::Draft;
use super::fault::ContainerFault;
use super::parts::Parts;
use super::reader::{Reader, le16, le32};

const SECTOR: u64 = 512;
const TABLE: usize = 446;
/// The most logical partitions.
const MOST: u32 = 256;

/// A record of a table.
#[derive(Clone, Copy)]
struct Entry {
    status: u8,
    kind: u8,
    start: u64,
    sectors: u64,
}

impl Entry {
    fn is_used(self) -> bool {
        self.kind != 0 && self.sectors > 0
    }

    fn is_extended(self) -> bool {
        matches!(self.kind, 0x05 | 0x0f | 0x85)
    }
}

/// Returns whether a container that begins with these bytes is such a disk: the record has no better mark than two bytes, so its table must look like
/// one.
pub(super) fn is(head: &[u8]) -> bool {
    let entries = entries(head);
    let is_sound = |entry: &Entry| entry.status & 0x7f == 0 && (!entry.is_used() || entry.start > 0);
    has_mark(head) && entries.iter().all(is_sound) && entries.iter().any(|entry| entry.is_used())
}

fn has_mark(sector: &[u8]) -> bool {
    le16(sector, 510) == 0xaa55
}

fn entries(sector: &[u8]) -> [Entry; 4] {
    [0, 1, 2, 3].map(|number| {
        let record = sector.get(TABLE + number * 16..).unwrap_or_default();
        let byte = |at: usize| record.get(at).copied().unwrap_or(0);
        Entry { status: byte(0), kind: byte(4), start: le32(record, 8).into(), sectors: le32(record, 12).into() }
    })
}

/// Takes a disk apart.
pub(super) fn read(reader: &Reader<'_>) -> Result<Anatomy, ContainerFault> {
    let mut draft = Draft::new(reader);
    for (number, entry) in (1..).zip(entries(&reader.bytes(0, 512)?)) {
        if entry.is_used() && entry.is_extended() {
            logical(reader, entry.start, &mut draft)?;
        } else if entry.is_used() {
            add(number, entry.start, entry.sectors, &mut draft)?;
        }
    }
    draft.finish(Hint::None)
}

/// Adds the logical partitions of an extended one: a chain of tables, each of which has one partition and the next table.
fn logical(reader: &Reader<'_>, base: u64, draft: &mut Draft<'_>) -> Result<(), ContainerFault> {
    let mut table = base;
    for number in 5..5 + MOST {
        let sector = reader.bytes(table * SECTOR, 512)?;
        if !has_mark(&sector) {
            return Err(reader.damaged(table * SECTOR, "a table of logical partitions is damaged"));
        }
        let [partition, next, ..] = entries(&sector);
        if partition.is_used() {
            add(number, table + partition.start, partition.sectors, draft)?;
        }
        if !next.is_used() {
            return Ok(());
        }
        table = base + next.start;
    }
    Err(reader.limit("it has too many logical partitions"))
}

fn add(number: u32, start: u64, sectors: u64, draft: &mut Draft<'_>) -> Result<(), ContainerFault> {
    draft.member(number.to_string().into_bytes(), Parts::stored(start * SECTOR, sectors * SECTOR)).map(|_| ())
}
