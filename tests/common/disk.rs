//! The disk usage of files (core 4.3), for the numbers of a root.

use crate::bytes::wide;

/// The block length.
pub(crate) const BLOCK: u64 = 4096;

/// Returns the disk usage of content with this many bytes of data in this many runs.
pub(crate) fn content(data: u64, runs: u64) -> u64 {
    let of_runs = if runs > 4 { runs.div_ceil(340) * BLOCK } else { 0 };
    data.checked_next_multiple_of(BLOCK).unwrap_or(0).wrapping_add(of_runs)
}

/// Returns the disk usage of a directory with these names.
pub(crate) fn directory<'a>(names: impl Iterator<Item = &'a [u8]>) -> u64 {
    let sum: u64 = names.map(|name| 8 + padded(name)).sum();
    if sum <= 4060 { BLOCK } else { BLOCK + (sum * 3 / 2).next_multiple_of(BLOCK) }
}

/// Returns the disk usage of a metadata object of OSTree.
pub(crate) fn metadata(len: usize) -> u64 {
    wide(len).next_multiple_of(BLOCK)
}

/// Returns the disk usage of a symbolic link.
pub(crate) fn symlink(target: &[u8]) -> u64 {
    if target.len() > 59 { BLOCK } else { 0 }
}

/// Returns the disk usage of extended attributes.
pub(crate) fn xattrs(xattrs: &[(Vec<u8>, Vec<u8>)]) -> u64 {
    let len = |(name, value): &(Vec<u8>, Vec<u8>)| {
        let name = name.splitn(2, |byte| *byte == b'.').last().unwrap_or_default();
        16 + padded(name) + padded(value)
    };
    if xattrs.iter().map(len).sum::<u64>() > 88 { BLOCK } else { 0 }
}

fn padded(bytes: &[u8]) -> u64 {
    wide(bytes.len()).next_multiple_of(4)
}
