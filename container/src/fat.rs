//! FAT12, FAT16 and FAT32, with long names (Microsoft's FAT32 File System Specification 1.03). The number of an inode is the offset of its record.

use sealift_format::num::{at, wide};

use super::anatomy::{Anatomy, Part};
use super::block::Hint;
use super::draft::Draft;
use super::fault::ContainerFault;
use super::parts::{PART, Parts};
use super::reader::{Reader, le16, le32, size};
use super::walk::{FileSystem, Names, Node, walk};

/// The number of the root directory, which has no record.
const ROOT: u64 = 0;
const RECORD: u64 = 32;
/// The limit of a directory (the specification's, for its records).
const MOST_DIRECTORY: u64 = 2 << 20;
/// The longest table of clusters that is read.
const LONGEST_TABLE: u64 = 256 << 20;
/// Attributes of a record.
const VOLUME: u8 = 0x08;
const DIRECTORY: u8 = 0x10;
const LONG_NAME: u8 = 0x0f;

/// Returns whether a container that begins with these bytes is such a file system.
pub(super) fn is(head: &[u8]) -> bool {
    let byte = |at: usize| head.get(at).copied().unwrap_or(0);
    let jumps = byte(0) == 0xeb && byte(2) == 0x90 || byte(0) == 0xe9;
    jumps
        && le16(head, 510) == 0xaa55
        && matches!(le16(head, 11), 512 | 1024 | 2048 | 4096)
        && byte(13).is_power_of_two()
        && le16(head, 14) > 0
        && matches!(byte(16), 1 | 2)
        && byte(21) >= 0xf0
}

/// Takes a file system apart.
pub(super) fn read(reader: &Reader<'_>) -> Result<Anatomy, ContainerFault> {
    let mut draft = Draft::new(reader);
    let mut fat = Fat::open(reader)?;
    walk(&mut fat, reader, &mut draft)?;
    draft.finish(Hint::None)
}

struct Fat<'a> {
    reader: &'a Reader<'a>,
    /// The bits of a number in the table.
    bits: u32,
    table: Vec<u8>,
    cluster_len: u64,
    clusters: u64,
    /// Where cluster 2 begins, the first one.
    clusters_at: u64,
    root: RootPlace,
}

#[derive(Clone, Copy)]
enum RootPlace {
    /// FAT12 and FAT16.
    Fixed {
        offset: u64,
        len: u64,
    },
    Cluster(u32),
}

impl<'a> Fat<'a> {
    fn open(reader: &'a Reader<'a>) -> Result<Self, ContainerFault> {
        let head = reader.bytes(0, 512)?;
        let byte = |at: usize| u64::from(head.get(at).copied().unwrap_or(0));
        let sector_len = u64::from(le16(&head, 11));
        let or = |short: u16, long: u32| if short == 0 { u64::from(long) } else { short.into() };
        let sectors = or(le16(&head, 19), le32(&head, 32));
        let table_sectors = or(le16(&head, 22), le32(&head, 36));
        let table_at = u64::from(le16(&head, 14)) * sector_len;
        let root_at = table_at + byte(16) * table_sectors * sector_len;
        let root_len = u64::from(le16(&head, 17)) * RECORD;
        let clusters_at = root_at + root_len.next_multiple_of(sector_len.max(1));
        let cluster_len = byte(13) * sector_len;
        let damaged = || reader.damaged(0, "the FAT boot sector is damaged");
        let data_len = (sectors * sector_len).checked_sub(clusters_at).ok_or_else(damaged)?;
        let clusters = data_len.checked_div(cluster_len).ok_or_else(damaged)?;
        let is_32 = le16(&head, 22) == 0;
        // Linux's limit for 12 bits.
        let bits = if is_32 {
            32
        } else if clusters > 4084 {
            16
        } else {
            12
        };
        let table_len = ((clusters + 2) * u64::from(bits)).div_ceil(8);
        if table_len > LONGEST_TABLE || table_len > table_sectors * sector_len {
            return Err(damaged());
        }
        reader.hold(table_len)?;
        let table = reader.bytes(table_at, size(table_len))?;
        let root = if is_32 {
            RootPlace::Cluster(le32(&head, 44))
        } else {
            RootPlace::Fixed { offset: root_at, len: root_len }
        };
        Ok(Self { reader, bits, table, cluster_len, clusters, clusters_at, root })
    }

    /// Returns the cluster that follows one; `None` at the end.
    fn next(&self, cluster: u32) -> Option<u32> {
        let next = match self.bits {
            32 => le32(&self.table, at(cluster) * 4) & 0x0fff_ffff,
            16 => le16(&self.table, at(cluster) * 2).into(),
            _ => {
                let pair = le16(&self.table, at(cluster) * 3 / 2);
                u32::from(if cluster.is_multiple_of(2) { pair & 0xfff } else { pair >> 4 })
            }
        };
        (2..self.clusters + 2).contains(&next.into()).then_some(next)
    }

    /// Returns the content of a chain of clusters, of so many bytes at most.
    fn chain(&self, first: u32, len: u64) -> Result<Parts, ContainerFault> {
        let mut parts = Parts::default();
        let mut cluster = Some(first).filter(|first| (2..self.clusters + 2).contains(&u64::from(*first)));
        while let Some(number) = cluster.filter(|_| parts.len() < len) {
            let offset = self.clusters_at + (u64::from(number) - 2) * self.cluster_len;
            let before = parts.count();
            parts.push(Part::Stored { offset, len: self.cluster_len.min(len - parts.len()) });
            self.reader.hold(PART * wide(parts.count() - before))?;
            self.reader.pay(8)?;
            cluster = self.next(number);
        }
        Ok(parts)
    }

    /// Returns the names in a directory.
    fn names(&self, parts: Parts) -> Result<Names, ContainerFault> {
        let mut names = Vec::new();
        let mut long = LongName::default();
        for part in parts.into_list() {
            let Part::Stored { offset, len } = part else { continue };
            for (number, record) in (0..).zip(self.reader.bytes(offset, size(len))?.chunks_exact(at(32))) {
                let byte = |at: usize| record.get(at).copied().unwrap_or(0);
                let attributes = byte(11);
                match byte(0) {
                    0 => return Ok(names),
                    // A deleted record.
                    0xe5 => long = LongName::default(),
                    _ if attributes & LONG_NAME == LONG_NAME => long.add(record),
                    _ if attributes & VOLUME != 0 => long = LongName::default(),
                    _ => {
                        let name = std::mem::take(&mut long).of(record).unwrap_or_else(|| short_name(record));
                        if !matches!(&name[..], b"." | b"..") {
                            names.push((name, offset + number * RECORD));
                        }
                    }
                }
            }
        }
        Ok(names)
    }
}

impl FileSystem for Fat<'_> {
    fn root(&self) -> u64 {
        ROOT
    }

    fn node(&mut self, inode: u64, _: &mut Draft<'_>) -> Result<Node, ContainerFault> {
        if inode == ROOT {
            let parts = match self.root {
                RootPlace::Fixed { offset, len } => Parts::stored(offset, len),
                RootPlace::Cluster(first) => self.chain(first, MOST_DIRECTORY)?,
            };
            return self.names(parts).map(Node::Directory);
        }
        let record = self.reader.bytes(inode, 32)?;
        let first = u32::from(le16(&record, 26)) | if self.bits == 32 { u32::from(le16(&record, 20)) << 16 } else { 0 };
        if record.get(11).is_some_and(|attributes| attributes & DIRECTORY != 0) {
            return self.names(self.chain(first, MOST_DIRECTORY)?).map(Node::Directory);
        }
        let len = u64::from(le32(&record, 28));
        let parts = self.chain(first, len)?;
        let is_whole = parts.len() == len;
        if is_whole { Ok(Node::File(parts)) } else { Err(self.reader.damaged(inode, "a file has too few clusters")) }
    }
}

/// A long name, which stands before its record in parts of 13 UTF-16 units, the last part first.
#[derive(Default)]
struct LongName {
    units: Vec<u16>,
    sum: u8,
    /// The number of the part that is expected next, from which it counts down to 1.
    left: u8,
}

impl LongName {
    fn add(&mut self, record: &[u8]) {
        let byte = |at: usize| record.get(at).copied().unwrap_or(0);
        let number = byte(0) & 0x1f;
        if byte(0) & 0x40 != 0 {
            *self = Self { units: Vec::new(), sum: byte(13), left: number };
        }
        if number == 0 || number != self.left || byte(13) != self.sum {
            *self = Self::default();
            return;
        }
        let fields = (1..11).step_by(2).chain((14..26).step_by(2)).chain((28..32).step_by(2));
        let mut units: Vec<u16> = fields.map(|at| le16(record, at)).collect();
        units.truncate(units.iter().position(|unit| *unit == 0).unwrap_or(units.len()));
        units.append(&mut self.units);
        (self.units, self.left) = (units, number - 1);
    }

    /// Returns the name, if it is complete and belongs to this record.
    fn of(self, record: &[u8]) -> Option<Vec<u8>> {
        let short = record.get(..11)?;
        let sum = short.iter().fold(0_u8, |sum, byte| sum.rotate_right(1).wrapping_add(*byte));
        let is_its = self.left == 0 && !self.units.is_empty() && sum == self.sum;
        is_its.then(|| String::from_utf16_lossy(&self.units).into_bytes())
    }
}

/// Returns the short name of a record, with its parts in lower case where the record says so.
fn short_name(record: &[u8]) -> Vec<u8> {
    let case = record.get(12).copied().unwrap_or(0);
    let part = |from: usize, to: usize, lower: u8| {
        let part = record.get(from..to).unwrap_or_default().trim_ascii_end().to_vec();
        if case & lower != 0 { part.to_ascii_lowercase() } else { part }
    };
    let (mut name, extension) = (part(0, 8, 0x08), part(8, 11, 0x10));
    // This letter would mark the record as deleted.
    if let Some(first) = name.first_mut().filter(|first| **first == 5) {
        *first = 0xe5;
    }
    if extension.is_empty() { name } else { [name, extension].join(&b'.') }
}
