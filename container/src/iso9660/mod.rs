//! ISO 9660 (ECMA-119), with Rock Ridge names. Boot records, Joliet's directories and a hybrid's partition table are structure. The number of an
//! inode is the offset of its record.

mod rock_ridge;

use super::anatomy::{Anatomy, Part};
use super::block::Hint;
use super::draft::Draft;
use super::fault::ContainerFault;
use super::parts::{PART, Parts};
use super::reader::{Reader, le16, le32};
use super::walk::{FileSystem, Names, Node, walk};
use rock_ridge::RockRidge;

/// Where the descriptors begin, each of which takes a sector.
const DESCRIPTORS: usize = 32_768;
const SECTOR: u64 = 2048;
/// The size limit of a directory.
const MOST_DIRECTORY: u64 = 64 << 20;
/// Flags of a record.
const IS_DIRECTORY: u8 = 2;
const GOES_ON: u8 = 0x80;

/// Returns whether a container that begins with these bytes is such a file system: its first descriptor is the primary one.
pub(super) fn is(head: &[u8]) -> bool {
    head.get(DESCRIPTORS..).is_some_and(|descriptor| descriptor.starts_with(b"\x01CD001"))
}

/// Takes a file system apart.
pub(super) fn read(reader: &Reader<'_>) -> Result<Anatomy, ContainerFault> {
    let mut draft = Draft::new(reader);
    let mut iso = Iso::open(reader)?;
    walk(&mut iso, reader, &mut draft)?;
    draft.finish(Hint::None)
}

struct Iso<'a> {
    reader: &'a Reader<'a>,
    block_len: u64,
    root: u64,
    /// The bytes to skip in the system use field of each record, if there are Rock Ridge names.
    rock_ridge: Option<usize>,
}

/// A record of a directory.
struct Record {
    bytes: Vec<u8>,
    /// Where its content begins.
    start: u64,
    len: u64,
    flags: u8,
}

impl Record {
    fn name(&self) -> &[u8] {
        let len = self.bytes.get(32).copied().map_or(0, usize::from);
        self.bytes.get(33..33 + len).unwrap_or_default()
    }

    /// Returns the field behind the name, which begins at an even offset.
    fn system_use(&self) -> &[u8] {
        self.bytes.get((33 + self.name().len()).next_multiple_of(2)..).unwrap_or_default()
    }
}

impl<'a> Iso<'a> {
    fn open(reader: &'a Reader<'a>) -> Result<Self, ContainerFault> {
        let descriptor = reader.bytes(SECTOR * 16, 2048)?;
        let block_len = u64::from(le16(&descriptor, 128));
        if !matches!(block_len, 512 | 1024 | 2048) {
            return Err(reader.damaged(SECTOR * 16, "the primary volume descriptor is damaged"));
        }
        let mut iso = Self { reader, block_len, root: SECTOR * 16 + 156, rock_ridge: None };
        // The first record of the root directory is its own, and says whether there are Rock Ridge names.
        let root = iso.record(iso.root)?;
        iso.rock_ridge = rock_ridge::skip(iso.record(root.start)?.system_use());
        Ok(iso)
    }

    fn record(&self, at: u64) -> Result<Record, ContainerFault> {
        let len = self.reader.bytes(at, 1)?.first().copied().map_or(0, usize::from);
        if len < 34 {
            return Err(self.reader.damaged(at, "a record of a directory is damaged"));
        }
        let bytes = self.reader.bytes(at, len)?;
        let attributes = u64::from(bytes.get(1).copied().unwrap_or(0));
        let start = (u64::from(le32(&bytes, 2)) + attributes) * self.block_len;
        let (len, flags) = (le32(&bytes, 10).into(), bytes.get(25).copied().unwrap_or(0));
        if bytes.get(26).is_some_and(|unit| *unit != 0) {
            return Err(self.reader.unsupported(at, "an interleaved file of an ISO 9660 file system"));
        }
        Ok(Record { bytes, start, len, flags })
    }

    /// Returns the records of a directory, of which none extends into another sector, with their offsets.
    fn records(&self, start: u64, len: u64) -> Result<Vec<(u64, Record)>, ContainerFault> {
        if len > MOST_DIRECTORY {
            return Err(self.reader.limit("a directory is too large"));
        }
        let mut records = Vec::new();
        let end = start + len;
        let mut at = start;
        while at < end {
            let sector_end = (at + 1).next_multiple_of(SECTOR);
            if self.reader.bytes(at, 1)? == [0] {
                at = sector_end;
                continue;
            }
            let record = self.record(at)?;
            let next = at + sealift_format::num::wide(record.bytes.len());
            records.push((at, record));
            at = next;
        }
        Ok(records)
    }

    fn names(&self, directory: &Record) -> Result<Names, ContainerFault> {
        let mut names: Names = Vec::new();
        let mut goes_on = false;
        for (at, record) in self.records(directory.start, directory.len)? {
            // The further records of a file in several extents have its name, too.
            let is_first = !std::mem::replace(&mut goes_on, record.flags & GOES_ON != 0);
            if !is_first || matches!(record.name(), [0 | 1]) {
                continue;
            }
            let mut found = RockRidge::default();
            if let Some(skip) = self.rock_ridge {
                found = RockRidge::read(self.reader, record.system_use().get(skip..).unwrap_or_default())?;
            }
            // The place of a directory that was moved because it is too deep has no content here.
            if found.is_moved {
                continue;
            }
            let inode = found.child.map_or(at, |block| u64::from(block) * self.block_len);
            names.push((found.name.unwrap_or_else(|| plain_name(record.name())), inode));
        }
        Ok(names)
    }

    /// Returns the content of a file, which may have several records one after the other.
    fn parts(&self, mut at: u64, mut record: Record) -> Result<Parts, ContainerFault> {
        let mut parts = Parts::default();
        loop {
            self.reader.hold(PART)?;
            parts.push(Part::Stored { offset: record.start, len: record.len });
            if record.flags & GOES_ON == 0 {
                return Ok(parts);
            }
            at += sealift_format::num::wide(record.bytes.len());
            if self.reader.bytes(at, 1)? == [0] {
                at = at.next_multiple_of(SECTOR);
            }
            record = self.record(at)?;
        }
    }
}

impl FileSystem for Iso<'_> {
    fn root(&self) -> u64 {
        self.root
    }

    fn node(&mut self, inode: u64, _: &mut Draft<'_>) -> Result<Node, ContainerFault> {
        let record = self.record(inode)?;
        if record.flags & IS_DIRECTORY != 0 {
            return self.names(&record).map(Node::Directory);
        }
        if let Some(skip) = self.rock_ridge
            && !RockRidge::read(self.reader, record.system_use().get(skip..).unwrap_or_default())?.is_regular
        {
            return Ok(Node::Other);
        }
        self.parts(inode, record).map(Node::File)
    }
}

/// Returns a name without its version and without the dot of an empty extension.
fn plain_name(name: &[u8]) -> Vec<u8> {
    let name = name.split(|byte| *byte == b';').next().unwrap_or_default();
    name.strip_suffix(b".").unwrap_or(name).to_vec()
}
