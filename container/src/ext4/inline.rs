//! Content of an ext4 file that lies in its inode: in the place of the block map, and then in the attribute `system.data`.

use sealift_format::num::wide;

use crate::anatomy::Part;
use crate::parts::Parts;
use crate::reader::{le16, le32};

/// Where in an inode the place of the block map is.
const FIRST_AT: usize = 0x28;
/// Its length.
const FIRST_LEN: u64 = 60;
/// The fixed part of an inode, behind which its own extra fields follow.
const FIXED: usize = 128;
const XATTR_MAGIC: u32 = 0xea02_0000;
/// The name index of `system.` attributes.
const SYSTEM: u8 = 7;

/// Returns the content of an inode of so many bytes.
pub(super) fn parts(inode: &[u8], place: u64, len: u64) -> Parts {
    let mut parts = Parts::stored(place + wide(FIRST_AT), len.min(FIRST_LEN));
    if len > FIRST_LEN
        && let Some((at, value_len)) = value(inode)
    {
        parts.push(Part::Stored { offset: place + wide(at), len: value_len.min(len - FIRST_LEN) });
    }
    // As the kernel reads it: `mke2fs -d` makes such inodes of files that begin with a long hole.
    parts.extend_to(len);
    parts
}

/// Returns where in an inode the value of the attribute `system.data` is, and its length.
fn value(inode: &[u8]) -> Option<(usize, u64)> {
    let header = FIXED + usize::from(le16(inode, FIXED));
    if le32(inode, header) != XATTR_MAGIC {
        return None;
    }
    let first = header + 4;
    let mut at = first;
    loop {
        let record = inode.get(at..at + 16).filter(|record| le32(record, 0) != 0)?;
        let (name_len, index) = (usize::from(*record.first()?), *record.get(1)?);
        let name = inode.get(at + 16..at + 16 + name_len)?;
        if index == SYSTEM && name == b"data" {
            let (start, len) = (first + usize::from(le16(record, 2)), le32(record, 8));
            let end = start.checked_add(usize::try_from(len).ok()?)?;
            return inode.get(start..end).map(|_| (start, len.into()));
        }
        at += (16 + name_len).next_multiple_of(4);
    }
}
