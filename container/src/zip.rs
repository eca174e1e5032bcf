//! zip archives (PKWARE's APPNOTE.TXT), and so wheels and jar files: stored and deflated files. Files that are compressed by another method or
//! encrypted are no members.

use sealift_format::num::{up_to, wide};

use super::anatomy::{Anatomy, Part};
use super::archive_path::archive_path;
use super::block::{Block, BlockCodec, Hint, PlainLen};
use super::draft::Draft;
use super::fault::ContainerFault;
use super::parts::Parts;
use super::reader::{Reader, le16, le32, le64};

const END: &[u8] = b"PK\x05\x06";
const END_LEN: usize = 22;
const LONGEST_COMMENT: usize = 65_535;
const SYMLINK: u32 = 0o120_000;

/// Returns whether a container that begins with these bytes is a zip archive.
pub(super) fn is(head: &[u8]) -> bool {
    head.starts_with(b"PK\x03\x04") || head.starts_with(END)
}

/// Where the central directory lies, and how many entries it has.
struct Directory {
    at: u64,
    len: u64,
    count: u64,
}

/// Takes an archive apart, by its central directory.
pub(super) fn read(reader: &Reader<'_>) -> Result<Anatomy, ContainerFault> {
    let mut draft = Draft::new(reader);
    let directory = Directory::find(reader)?;
    let (mut at, end) = (directory.at, directory.at.saturating_add(directory.len));
    for _ in 0..directory.count {
        let entry = Entry::read(reader, at).and_then(|entry| match entry.end <= end {
            true => Ok(entry),
            false => Err(reader.damaged(at, "the list of files is damaged")),
        })?;
        at = entry.end;
        if entry.is_file() {
            entry.add(reader, &mut draft)?;
        }
    }
    draft.finish(Hint::None)
}

impl Directory {
    fn find(reader: &Reader<'_>) -> Result<Self, ContainerFault> {
        let damaged = || reader.damaged(reader.len(), "the archive has no list of files");
        let tail_len = up_to(reader.len(), END_LEN + LONGEST_COMMENT);
        let tail_at = reader.len() - wide(tail_len);
        let tail = reader.bytes(tail_at, tail_len)?;
        // The last one whose comment ends where the file does.
        let mut ends = tail.windows(END_LEN).enumerate().rev().filter(|(_, end)| end.starts_with(END));
        let (number, end) = ends
            .find(|(number, end)| number + END_LEN + usize::from(le16(end, 20)) == tail.len())
            .ok_or_else(damaged)?;
        let end_at = tail_at + wide(number);
        let (count, len, offset) = (le16(end, 10), le32(end, 12), le32(end, 16));
        if count != u16::MAX && len != u32::MAX && offset != u32::MAX {
            return Ok(Self { at: offset.into(), len: len.into(), count: count.into() });
        }
        // Numbers that do not fit stand in another record, and where that is in a third.
        let locator = reader.bytes(end_at.checked_sub(20).ok_or_else(damaged)?, 20)?;
        let record = reader.bytes(le64(&locator, 8), 56)?;
        if !locator.starts_with(b"PK\x06\x07") || !record.starts_with(b"PK\x06\x06") {
            return Err(damaged());
        }
        Ok(Self { at: le64(&record, 48), len: le64(&record, 40), count: le64(&record, 32) })
    }
}

/// A file in the central directory.
struct Entry {
    at: u64,
    end: u64,
    flags: u16,
    method: u16,
    stored_len: u64,
    plain_len: u64,
    local_at: u64,
    unix_mode: u32,
    name: Vec<u8>,
}

impl Entry {
    fn read(reader: &Reader<'_>, at: u64) -> Result<Self, ContainerFault> {
        let record = reader.bytes(at, 46)?;
        if !record.starts_with(b"PK\x01\x02") {
            return Err(reader.damaged(at, "the list of files is damaged"));
        }
        let [name_len, extra_len, comment_len] = [28, 30, 32].map(|field| usize::from(le16(&record, field)));
        let variable = reader.bytes(at + 46, name_len + extra_len)?;
        let (name, extra) = variable.split_at(name_len.min(variable.len()));
        let [stored_len, plain_len, local_at] = lengths(&record, extra);
        let is_unix = le16(&record, 4) >> 8 == 3;
        Ok(Self {
            at,
            end: at + 46 + wide(name_len + extra_len + comment_len),
            flags: le16(&record, 8),
            method: le16(&record, 10),
            stored_len,
            plain_len,
            local_at,
            unix_mode: if is_unix { le32(&record, 38) >> 16 } else { 0 },
            name: name.to_vec(),
        })
    }

    fn is_file(&self) -> bool {
        let is_encrypted = self.flags & 1 != 0;
        !self.name.ends_with(b"/") && self.unix_mode & 0o170_000 != SYMLINK && !is_encrypted
    }

    fn add(&self, reader: &Reader<'_>, draft: &mut Draft<'_>) -> Result<(), ContainerFault> {
        let local = reader.bytes(self.local_at, 30)?;
        if !local.starts_with(b"PK\x03\x04") {
            return Err(reader.damaged(self.local_at, "the header of a file is damaged"));
        }
        let offset = self.local_at + 30 + u64::from(le16(&local, 26)) + u64::from(le16(&local, 28));
        let path = archive_path(&self.name).filter(|path| !path.is_empty());
        let path = path.ok_or_else(|| reader.damaged(self.at, "a file has an invalid name"))?;
        let mut parts = Parts::default();
        match self.method {
            0 if self.stored_len == self.plain_len => parts.push(Part::Stored { offset, len: self.plain_len }),
            0 => return Err(reader.damaged(self.at, "a stored file has two lengths")),
            8 => {
                let plain = PlainLen::Exactly(self.plain_len);
                let block =
                    draft.block(Block { offset, stored_len: self.stored_len, codec: BlockCodec::Deflate, plain })?;
                parts.push(Part::Inflated { block, start: 0, len: self.plain_len });
            }
            _ => return Ok(()),
        }
        draft.member(path, parts)?;
        Ok(())
    }
}

/// Returns the compressed length, the length and the offset of a file: those that do not fit into its record stand in an extra field, in this order
/// of length, compressed length and offset.
fn lengths(record: &[u8], mut extra: &[u8]) -> [u64; 3] {
    let mut wide_ones: &[u8] = &[];
    while extra.len() >= 4 {
        let (id, len) = (le16(extra, 0), usize::from(le16(extra, 2)));
        if id == 1 {
            wide_ones = extra.get(4..4 + len).unwrap_or_default();
        }
        extra = extra.get(4 + len..).unwrap_or_default();
    }
    let mut number = |field: usize| match le32(record, field) {
        u32::MAX if wide_ones.len() >= 8 => {
            let number = le64(wide_ones, 0);
            wide_ones = wide_ones.get(8..).unwrap_or_default();
            number
        }
        number => number.into(),
    };
    let (plain_len, stored_len, local_at) = (number(24), number(20), number(42));
    [stored_len, plain_len, local_at]
}
