//! The length of an xz stream and of its content (The .xz File Format 1.2.1). The index at the end of a stream lists the lengths of its blocks. If no
//! stream ends where the file does, it is decoded.

use sealift_format::num::wide;

use super::block::BlockCodec;
use super::decode::measure as measure_by_decoding;
use super::fault::ContainerFault;
use super::reader::{Reader, le32, size};

/// Bytes of a stream's header, and of its footer.
const HEADER: u64 = 12;
const FOOTER: u64 = 12;
/// The longest index that is read.
const LONGEST_INDEX: u64 = 64 << 20;

/// Returns the length of the stream that begins at an offset, and that of what it decodes to.
pub(super) fn measure(reader: &Reader<'_>, at: u64) -> Result<(u64, u64), ContainerFault> {
    // Most files have one stream and nothing behind it.
    if let Some(measured) = from_end(reader, at)? {
        return Ok(measured);
    }
    measure_by_decoding(reader, BlockCodec::Xz, at, u64::MAX)
}

/// Returns the lengths that the index at the container's end lists, if they fit the stream at this offset.
fn from_end(reader: &Reader<'_>, at: u64) -> Result<Option<(u64, u64)>, ContainerFault> {
    let Some(footer_at) = reader.len().checked_sub(FOOTER).filter(|footer| *footer >= at + HEADER) else {
        return Ok(None);
    };
    let footer = reader.bytes(footer_at, 12)?;
    let index_len = (u64::from(le32(&footer, 4)) + 1) * 4;
    let index_at = footer_at.checked_sub(index_len).filter(|index| *index >= at + HEADER);
    let Some(index_at) = index_at.filter(|_| footer.ends_with(b"YZ") && index_len <= LONGEST_INDEX) else {
        return Ok(None);
    };
    let index = reader.bytes(index_at, size(index_len))?;
    let Some((stored_len, plain_len)) = listed(&index) else { return Ok(None) };
    if stored_len != index_at - at - HEADER {
        return Ok(None);
    }
    reader.pay_decoded(plain_len)?;
    Ok(Some((reader.len() - at, plain_len)))
}

/// Returns the sums of the lengths of blocks and of their contents that an index lists.
fn listed(index: &[u8]) -> Option<(u64, u64)> {
    let mut left = index.strip_prefix(&[0])?;
    let count = number(&mut left)?;
    // Each takes two bytes or more.
    if count > wide(left.len()) / 2 {
        return None;
    }
    let (mut stored_len, mut plain_len) = (0_u64, 0_u64);
    for _ in 0..count {
        stored_len = stored_len.checked_add(number(&mut left)?.checked_next_multiple_of(4)?)?;
        plain_len = plain_len.checked_add(number(&mut left)?)?;
    }
    Some((stored_len, plain_len))
}

/// Takes a number of seven bits a byte.
fn number(left: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..63).step_by(7) {
        let (byte, rest) = left.split_first()?;
        *left = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}
