//! AppImages of type 2: a program in ELF format that ends with its section headers, and then a file system, which is the one member.

use sealift_format::num::wide;

use super::anatomy::Anatomy;
use super::block::Hint;
use super::draft::Draft;
use super::fault::ContainerFault;
use super::parts::Parts;
use super::reader::{Reader, le16, le32, le64};

/// The length of the longer header, that of 64-bit programs.
const HEADER: usize = 64;
/// The name of the file system.
const NAME: &[u8] = b"image";

/// Returns whether a container that begins with these bytes is an AppImage, which has its mark in the padding of ELF's identification.
pub(super) fn is(head: &[u8]) -> bool {
    head.starts_with(b"\x7fELF") && head.get(8..11) == Some(b"AI\x02")
}

/// Takes an AppImage apart.
pub(super) fn read(reader: &Reader<'_>) -> Result<Anatomy, ContainerFault> {
    let header = reader.bytes(0, HEADER)?;
    // Class and byte order (elf(5)).
    let (at, len, count) = match (header[4], header[5]) {
        (2, 1) => (le64(&header, 0x28), le16(&header, 0x3a), le16(&header, 0x3c)),
        (1, 1) => (le32(&header, 0x20).into(), le16(&header, 0x2e), le16(&header, 0x30)),
        _ => return Err(reader.unsupported(4, "a program that is not of a little-endian machine")),
    };
    let end = at.checked_add(u64::from(len) * u64::from(count)).filter(|end| *end < reader.len());
    let end = end.filter(|end| *end >= wide(HEADER));
    let end = end.ok_or_else(|| reader.damaged(0x28, "nothing follows its section headers"))?;
    let mut draft = Draft::new(reader);
    draft.member(NAME.to_vec(), Parts::stored(end, reader.len() - end))?;
    draft.finish(Hint::None)
}
