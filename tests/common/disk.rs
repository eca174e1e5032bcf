//! The disk usage of inodes (core 4.4), for the numbers of a root.

use crate::bytes::wide;

/// The block length.
pub(crate) const BLOCK: u64 = 4096;

/// Returns the disk usage of content with this many bytes outside of its holes.
pub(crate) fn content(data: u64) -> u64 {
    data.checked_next_multiple_of(BLOCK).unwrap_or(0)
}

/// Returns the disk usage of a directory with these names.
pub(crate) fn directory<'a>(names: impl Iterator<Item = &'a [u8]>) -> u64 {
    let len: u64 = names.map(|name| wide(name.len()) + 16).sum();
    BLOCK + len / BLOCK * BLOCK
}

/// Returns the disk usage of a metadata object of OSTree.
pub(crate) fn metadata(len: usize) -> u64 {
    content(wide(len))
}

/// Returns the disk usage of a symbolic link.
pub(crate) fn symlink(target: &[u8]) -> u64 {
    if target.len() > 59 { BLOCK } else { 0 }
}

/// Returns the disk usage of extended attributes.
pub(crate) fn xattrs(xattrs: &[(Vec<u8>, Vec<u8>)]) -> u64 {
    let len: usize = xattrs.iter().map(|(name, value)| name.len() + value.len()).sum();
    content(wide(len.saturating_sub(64)))
}
