//! cpio archives, in newc and odc format, and initrds: several archives one after the other, each plain or compressed
//! (Documentation/driver-api/early-userspace/buffer-format.rst).
//!
//! The files of plain archives are members. A compressed archive is one member, named by its number among all archives, from 1.

use std::collections::HashMap;

use sealift_format::num::wide;

use super::anatomy::Anatomy;
use super::archive_path::archive_path;
use super::block::Hint;
use super::draft::Draft;
use super::fault::ContainerFault;
use super::kind::Kind;
use super::parts::Parts;
use super::reader::{Reader, STEP, size};
use super::stream;

/// Bytes of a header of each format, before the name.
const NEWC_LEN: usize = 110;
const ODC_LEN: usize = 76;
/// The longest name with its NUL (PATH_MAX).
const LONGEST_NAME: u64 = 4096;
const REGULAR: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_000;
/// Bytes that are read at once where zeros lie between archives.
const PORTION: usize = 4096;

/// Returns whether a container that begins with these bytes is a cpio archive.
pub(super) fn is(head: &[u8]) -> bool {
    [b"070701", b"070702", b"070707"].iter().any(|magic| head.starts_with(*magic))
}

/// Takes archives apart, up to the first bytes that are none; these are structure.
pub(super) fn read(reader: &Reader<'_>) -> Result<Anatomy, ContainerFault> {
    let mut archives = Archives { reader, draft: Draft::new(reader) };
    let (mut at, mut number) = (0, 1);
    loop {
        at = archives.plain(at)?;
        number += 1;
        at = archives.after_zeros(at)?;
        // Compressed archives may follow each other.
        while let Some(kind) = stream::kind(&reader.up_to(at, 32)?) {
            at = archives.compressed(at, kind, number)?;
            at = archives.after_zeros(at)?;
            number += 1;
        }
        if !is(&reader.up_to(at, 6)?) {
            return archives.draft.finish(Hint::None);
        }
    }
}

struct Archives<'a> {
    reader: &'a Reader<'a>,
    draft: Draft<'a>,
}

/// The fields of a header that are used.
struct Header {
    inode: (u32, u32, u32),
    mode: u32,
    link_count: u32,
    len: u64,
    name_len: u64,
    header_len: usize,
    /// What names and contents are aligned to.
    alignment: u64,
}

impl Archives<'_> {
    /// Adds the files of an archive that begins at an offset, and returns where it ends.
    fn plain(&mut self, mut at: u64) -> Result<u64, ContainerFault> {
        // Files with several names, by device and inode, and whether their content was found.
        let mut links: HashMap<(u32, u32, u32), (u32, bool)> = HashMap::new();
        loop {
            let header = self.header(at)?;
            let name = self.reader.bytes(at + wide(header.header_len), size(header.name_len))?;
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            let content_at = (at + wide(header.header_len) + header.name_len).next_multiple_of(header.alignment);
            let next = content_at.checked_add(header.len).filter(|end| *end <= self.reader.len() || header.len == 0);
            let next = next.ok_or_else(|| self.reader.damaged(at, "the archive ends within a file"))?;
            if name == b"TRAILER!!!" {
                return Ok(next.next_multiple_of(header.alignment).min(self.reader.len()));
            }
            if header.mode & 0o170_000 == REGULAR {
                self.file(&header, name, at, content_at, &mut links)?;
            }
            if header.mode & 0o170_000 == SYMLINK
                && header.len <= LONGEST_NAME
                && let Some(path) = archive_path(name)
            {
                self.draft.symlink(path, self.reader.bytes(content_at, size(header.len))?)?;
            }
            at = next.next_multiple_of(header.alignment);
        }
    }

    fn file(
        &mut self,
        header: &Header,
        name: &[u8],
        at: u64,
        content_at: u64,
        links: &mut HashMap<(u32, u32, u32), (u32, bool)>,
    ) -> Result<(), ContainerFault> {
        let path = archive_path(name).ok_or_else(|| self.reader.damaged(at, "a file has an invalid name"))?;
        let parts = Parts::stored(content_at, header.len);
        let is_linked = header.link_count > 1;
        match links.get_mut(&header.inode).filter(|_| is_linked) {
            // The content comes with one of the names, in most programs the last.
            Some((member, has_content)) if header.len == 0 || !*has_content => {
                if header.len > 0 {
                    *has_content = true;
                    self.draft.fill(*member, parts);
                }
                self.draft.link(path, *member)
            }
            _ => {
                let member = self.draft.member(path, parts)?;
                if is_linked {
                    self.reader.hold(STEP)?;
                    links.insert(header.inode, (member, header.len > 0));
                }
                Ok(())
            }
        }
    }

    fn header(&self, at: u64) -> Result<Header, ContainerFault> {
        let bytes = self.reader.up_to(at, NEWC_LEN)?;
        let header = Header::parse(&bytes).ok_or_else(|| self.reader.damaged(at, "a header of a file is damaged"))?;
        if (1..=LONGEST_NAME).contains(&header.name_len) {
            Ok(header)
        } else {
            Err(self.reader.damaged(at, "a file has a name of an impossible length"))
        }
    }

    /// Adds a compressed archive, whose streams are of one kind, and returns where it ends.
    fn compressed(&mut self, at: u64, kind: Kind, number: u32) -> Result<u64, ContainerFault> {
        let (parts, end) = stream::parts(self.reader, kind, at, &mut self.draft)?;
        self.draft.member(number.to_string().into_bytes(), parts)?;
        Ok(end)
    }

    /// Returns the offset of the first byte from here on that is not zero; the end if all are.
    fn after_zeros(&self, mut at: u64) -> Result<u64, ContainerFault> {
        loop {
            let bytes = self.reader.up_to(at, PORTION)?;
            match bytes.iter().position(|byte| *byte != 0) {
                Some(zeros) => return Ok(at + wide(zeros)),
                None if bytes.is_empty() => return Ok(at),
                None => at += wide(bytes.len()),
            }
        }
    }
}

impl Header {
    fn parse(bytes: &[u8]) -> Option<Self> {
        match bytes.get(..6)? {
            b"070701" | b"070702" => {
                let field = |number: usize| digits(bytes.get(6 + number * 8..14 + number * 8)?, 16);
                Some(Self {
                    inode: (field(7)?, field(8)?, field(0)?),
                    mode: field(1)?,
                    link_count: field(4)?,
                    len: field(6)?.into(),
                    name_len: field(11)?.into(),
                    header_len: NEWC_LEN,
                    alignment: 4,
                })
            }
            b"070707" => {
                let field = |at: usize| digits(bytes.get(at..at + 6)?, 8);
                // The length has eleven digits, and does not fit into 32 bits.
                let (high, low) = (digits(bytes.get(65..66)?, 8)?, digits(bytes.get(66..76)?, 8)?);
                Some(Self {
                    inode: (0, field(6)?, field(12)?),
                    mode: field(18)?,
                    link_count: field(36)?,
                    len: u64::from(high) << 30 | u64::from(low),
                    name_len: field(59)?.into(),
                    header_len: ODC_LEN,
                    alignment: 1,
                })
            }
            _ => None,
        }
    }
}

fn digits(digits: &[u8], radix: u32) -> Option<u32> {
    let digit = |number: u32, digit: &u8| number.checked_mul(radix)?.checked_add(char::from(*digit).to_digit(radix)?);
    digits.iter().try_fold(0, digit)
}
