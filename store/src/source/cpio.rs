//! cpio archives in the `newc` format, as the kernel unpacks them from an initramfs (Documentation/driver-api/early-userspace/buffer-format.rst).
//!
//! Concatenated archives, with zeros between them, are one source, as for the kernel; `cpio -i` stops at the first.

use std::collections::HashMap;

use sealift_format::num;
use sealift_format::{Device, Xattrs};

use super::SourceOptions;
use super::archive::{Archive, ArchiveFault, Draft, FileId, Member, MemberKind, Stored, compressor, shown};
use crate::{Error, Metadata};

/// Bytes of a header, before the name.
const HEADER_LEN: usize = 110;
/// The maximum length of a name with its NUL (PATH_MAX).
const NAME_LEN_MAX: u64 = 4096;
/// The maximum length of a symbolic link's target; the tree has its own limit.
const TARGET_LEN_MAX: u64 = 65536;
/// Bytes per read: a header, and most names.
const READ_LEN: usize = 512;

const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_000;

const NO_TRAILER: &str = "the archive is truncated: the member TRAILER!!! that ends it is missing";
const OTHER_FORM: &str = "not a cpio archive in newc format, or a damaged one: `cpio -o -H newc` creates such archives";

/// Adds the archives' members to a draft.
///
/// # Errors
/// Returns an error if it cannot be read, or is not an archive that can be packed.
pub(super) fn read(archive: &Archive, options: &SourceOptions, draft: &mut Draft) -> Result<(), Error> {
    let mut members = Members { archive, links: HashMap::new(), sums: Vec::new() };
    let mut at = 0;
    let mut is_inside = true;
    while at < archive.len() || is_inside {
        let bytes = read_some(archive, at, READ_LEN)?;
        if !is_inside && bytes[..bytes.len().min(4)].iter().all(|byte| *byte == 0) {
            at += 4;
            continue;
        }
        let header = Header::parse(&bytes).map_err(|fault| archive.fault(at, beyond(fault, is_inside, &bytes)))?;
        let name = name(archive, at, &header, &bytes)?;
        is_inside = name != b"TRAILER!!!";
        if is_inside {
            options.advance(0, 1)?;
            members.add(at, &header, name, draft)?;
        } else {
            // In the next archive, the same inode number is another file's.
            members.links.clear();
        }
        at = end(archive, at, &header)?;
    }
    Ok(())
}

/// The fields of a header that are used.
#[derive(Clone, Copy, Debug)]
struct Header {
    has_sum: bool,
    /// In archive order, after the magic number.
    fields: [u32; 13],
}

impl Header {
    fn parse(bytes: &[u8]) -> Result<Self, ArchiveFault> {
        let header = bytes.first_chunk::<HEADER_LEN>().ok_or_else(|| form(NO_TRAILER))?;
        let has_sum = match &header[..6] {
            b"070701" => false,
            b"070702" => true,
            _ => return Err(form(OTHER_FORM)),
        };
        let mut fields = [0; 13];
        for (field, digits) in fields.iter_mut().zip(header[6..].chunks_exact(8)) {
            *field = hexadecimal(digits).ok_or_else(|| form(OTHER_FORM))?;
        }
        Ok(Self { has_sum, fields })
    }

    fn inode(&self) -> (u32, u32, u32) {
        (self.fields[7], self.fields[8], self.fields[0])
    }

    fn mode(&self) -> u32 {
        self.fields[1]
    }

    fn file_type(&self) -> u32 {
        self.mode() & 0o170_000
    }

    fn link_count(&self) -> u32 {
        self.fields[4]
    }

    fn size(&self) -> u64 {
        self.fields[6].into()
    }

    fn device(&self) -> Device {
        Device { major: self.fields[9], minor: self.fields[10] }
    }

    fn name_len(&self) -> u64 {
        self.fields[11].into()
    }

    fn sum(&self) -> u32 {
        self.fields[12]
    }

    fn metadata(&self) -> Metadata {
        Metadata {
            permissions: u16::try_from(self.mode() & 0o7777).unwrap_or(0),
            uid: self.fields[2],
            gid: self.fields[3],
            mtime: self.fields[5].into(),
            mtime_ns: 0,
            xattrs: Xattrs::default(),
        }
    }

    /// Returns where the content begins if the header is at `at`: after the name, at the next multiple of 4.
    fn content_at(&self, at: u64) -> u64 {
        (at + 110 + self.name_len()).next_multiple_of(4)
    }
}

fn form(what: &str) -> ArchiveFault {
    ArchiveFault::Form(what.to_owned())
}

fn hexadecimal(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |number: u32, digit| Some(number << 4 | char::from(*digit).to_digit(16)?))
}

/// Returns the fault of bytes that are not a header.
fn beyond(fault: ArchiveFault, is_inside: bool, bytes: &[u8]) -> ArchiveFault {
    match compressor(bytes) {
        _ if is_inside => fault,
        Some(program) => ArchiveFault::Form(format!(
            "an archive compressed with {program} begins here: extract it (`tail -c +$((OFFSET + 1)) FILE | {program} -dc`), and \
             pack each archive as its own source"
        )),
        None => form("data that is not a cpio archive in newc format follows the end of the archive"),
    }
}

fn read_some(archive: &Archive, at: u64, len: usize) -> Result<Vec<u8>, Error> {
    let mut bytes = vec![0; num::up_to(archive.len().saturating_sub(at), len)];
    archive.read_at(&mut bytes, at)?;
    Ok(bytes)
}

/// Returns a member's name without its terminating NUL. Programs that align contents write several.
fn name(archive: &Archive, at: u64, header: &Header, bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let field = ArchiveFault::Number { field: "name length" };
    let len = usize::try_from(header.name_len()).ok().filter(|len| *len > 0 && header.name_len() <= NAME_LEN_MAX);
    let len = len.ok_or_else(|| archive.fault(at, field))?;
    let longer;
    let held = match bytes.get(HEADER_LEN..HEADER_LEN + len) {
        Some(held) => held,
        None => {
            longer = read_some(archive, at, HEADER_LEN + len)?;
            longer.get(HEADER_LEN..HEADER_LEN + len).ok_or_else(|| archive.fault(at, ArchiveFault::Truncated))?
        }
    };
    let name = without_nuls(held);
    match name.iter().position(|byte| *byte == 0) {
        None if name.len() < held.len() => Ok(name.to_vec()),
        None => Err(archive.fault(at, ArchiveFault::Name { path: shown(name), fault: "does not end with a NUL byte" })),
        Some(end) => {
            let fault = "goes on after a NUL byte";
            Err(archive.fault(at, ArchiveFault::Name { path: shown(&name[..end]), fault }))
        }
    }
}

/// Returns a text without the NUL bytes at its end.
fn without_nuls(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    &bytes[..end]
}

/// Returns where the next header begins, if the content is complete.
fn end(archive: &Archive, at: u64, header: &Header) -> Result<u64, Error> {
    let end = header.content_at(at) + header.size();
    if end > archive.len() && header.size() > 0 {
        return Err(archive.fault(at, ArchiveFault::Truncated));
    }
    Ok(end.next_multiple_of(4))
}

struct Members<'a> {
    archive: &'a Archive,
    /// Files with several names, by device and inode.
    links: HashMap<(u32, u32, u32), FileId>,
    sums: Vec<u8>,
}

impl Members<'_> {
    fn add(&mut self, at: u64, header: &Header, path: Vec<u8>, draft: &mut Draft) -> Result<(), Error> {
        end(self.archive, at, header)?;
        let fault = |fault| self.archive.fault(at, fault);
        let stored = Stored::Whole { offset: header.content_at(at), len: header.size() };
        // Each name of a symbolic link comes with its target, and is created separately.
        let is_linked = header.link_count() > 1 && !matches!(header.file_type(), DIRECTORY | SYMLINK);
        let linked = self.links.get(&header.inode()).copied().filter(|_| is_linked);
        let kind = match (header.file_type(), linked) {
            (DIRECTORY, _) => MemberKind::Directory,
            (_, Some(file)) => MemberKind::OtherName(file),
            (REGULAR, None) => MemberKind::Regular(stored.clone()),
            (SYMLINK, None) => MemberKind::Symlink(self.target(at, header)?),
            (0o020_000, None) => MemberKind::CharDevice(header.device()),
            (0o060_000, None) => MemberKind::BlockDevice(header.device()),
            (0o010_000, None) => MemberKind::Fifo,
            (0o140_000, None) => MemberKind::Socket,
            (other, None) => {
                return Err(fault(ArchiveFault::Type { path: shown(&path), type_flag: format!("{other:o}") }));
            }
        };
        let has_content = matches!(kind, MemberKind::Regular(_) | MemberKind::Symlink(_) | MemberKind::OtherName(_));
        if header.size() > 0 && !has_content {
            return Err(fault(ArchiveFault::SizeWithoutContent { path: shown(&path), size: header.size() }));
        }
        let shown_path = shown(&path);
        if header.has_sum && header.file_type() == REGULAR && self.sum(at, header)? != header.sum() {
            return Err(self.archive.fault(
                at,
                ArchiveFault::Form(format!(
                    "the content of {shown_path} does not match the checksum in its header: the archive is damaged"
                )),
            ));
        }
        let added = draft.add(Member { offset: at, path, metadata: header.metadata(), kind });
        let file = added.map_err(|fault| self.archive.fault(at, fault))?;
        // The content comes with one of the names, in most programs the last; in those that write the older formats as well, with each.
        if linked.is_some() && header.size() > 0 && !self.fill(draft, file, stored)? {
            return Err(self.archive.fault(
                at,
                ArchiveFault::Form(format!(
                    "{shown_path} is a hard link, but its content differs from that of the file's other names"
                )),
            ));
        }
        if is_linked {
            self.links.insert(header.inode(), file);
        }
        Ok(())
    }

    /// Gives a file its content, unless it has the same already. Programs differ in which of two contents they keep.
    fn fill(&self, draft: &mut Draft, file: FileId, content: Stored) -> Result<bool, Error> {
        let Some(known) = draft.content(file) else { return Ok(false) };
        if known.len() == 0 {
            *known = content;
            return Ok(true);
        }
        self.archive.have_equal_bytes(known, &content)
    }

    /// Returns a symbolic link's target. Like the kernel's gen_init_cpio, some programs count the NUL byte that ends it.
    fn target(&self, at: u64, header: &Header) -> Result<Vec<u8>, Error> {
        let len = usize::try_from(header.size()).ok().filter(|_| header.size() <= TARGET_LEN_MAX);
        let len = len.ok_or_else(|| self.archive.fault(at, ArchiveFault::Number { field: "link target length" }))?;
        read_some(self.archive, header.content_at(at), len).map(|target| without_nuls(&target).to_vec())
    }

    /// Returns the sum of a file's bytes, which the 070702 format stores.
    fn sum(&mut self, at: u64, header: &Header) -> Result<u32, Error> {
        let (mut sum, mut offset) = (0_u32, header.content_at(at));
        let end = offset + header.size();
        self.sums.resize(64 * 1024, 0);
        while offset < end {
            let len = num::up_to(end - offset, self.sums.len());
            self.archive.read_at(&mut self.sums[..len], offset)?;
            sum = self.sums[..len].iter().fold(sum, |sum, byte| sum.wrapping_add((*byte).into()));
            offset += num::wide(len);
        }
        Ok(sum)
    }
}
