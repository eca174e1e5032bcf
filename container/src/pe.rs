//! Programs in PE format, such as unified kernel images (UAPI.5). Sections are members.

use sealift_format::num::wide;

use super::anatomy::Anatomy;
use super::archive_path::archive_path;
use super::block::Hint;
use super::draft::Draft;
use super::fault::ContainerFault;
use super::parts::Parts;
use super::reader::{Reader, le16, le32};

/// The length of a section's record.
const SECTION: usize = 40;

/// Returns whether a container that begins with these bytes is such a program.
pub(super) fn is(head: &[u8]) -> bool {
    let header = usize::try_from(le32(head, 0x3c)).unwrap_or(usize::MAX);
    head.starts_with(b"MZ") && head.get(header..).is_some_and(|header| header.starts_with(b"PE\0\0"))
}

/// Takes a program apart.
pub(super) fn read(reader: &Reader<'_>) -> Result<Anatomy, ContainerFault> {
    let header_at = u64::from(le32(&reader.bytes(0x3c, 4)?, 0));
    let header = reader.bytes(header_at, 24)?;
    let (count, optional_len) = (le16(&header, 6), le16(&header, 20));
    let mut at = header_at + 24 + u64::from(optional_len);
    let mut draft = Draft::new(reader);
    for _ in 0..count {
        let section = reader.bytes(at, SECTION)?;
        let name = section.iter().take(8).copied().take_while(|byte| *byte != 0).collect::<Vec<_>>();
        // Content is padded to the alignment of files, and the memory it needs may be more.
        let (len, padded_len, offset) = (le32(&section, 8), le32(&section, 16), le32(&section, 20));
        if padded_len > 0 {
            let path = archive_path(&name).filter(|path| !path.is_empty());
            let path = path.ok_or_else(|| reader.damaged(at, "a section has an invalid name"))?;
            let len = if len == 0 { padded_len } else { len.min(padded_len) };
            draft.member(path, Parts::stored(offset.into(), len.into()))?;
        }
        at += wide(SECTION);
    }
    draft.finish(Hint::None)
}
