//! The length of a zstd frame, from the headers of its blocks, and of its content, if the frame states it (RFC 8878).

use super::block::BlockCodec;
use super::decode::measure as measure_by_decoding;
use super::fault::ContainerFault;
use super::reader::{Reader, le16, le32, le64};

/// Returns the length of the frame that begins at an offset, and that of what it decodes to.
pub(super) fn measure(reader: &Reader<'_>, at: u64) -> Result<(u64, u64), ContainerFault> {
    let header = reader.up_to(at, 18)?;
    let descriptor = header.get(4).copied().unwrap_or(0);
    let is_single = descriptor & 0x20 != 0;
    let window = usize::from(!is_single);
    let dictionary = match descriptor & 3 {
        3 => 4,
        len => usize::from(len),
    };
    let size_at = 5 + window + dictionary;
    let (plain_len, size_len) = match descriptor >> 6 {
        0 if is_single => (header.get(size_at).map(|byte| u64::from(*byte)), 1),
        0 => (None, 0),
        1 => (Some(u64::from(le16(&header, size_at)) + 256), 2),
        2 => (Some(le32(&header, size_at).into()), 4),
        _ => (Some(le64(&header, size_at)), 8),
    };
    if dictionary > 0 && le32(&header, 5 + window) != 0 {
        return Err(reader.unsupported(at, "a zstd frame that needs a dictionary"));
    }
    let Some(plain_len) = plain_len else { return measure_by_decoding(reader, BlockCodec::Zstd, at, u64::MAX) };
    // What a frame states is proved when it is decoded; until then, it may be no more than the limit.
    reader.pay_decoded(plain_len)?;
    let mut end = at + sealift_format::num::wide(size_at) + size_len;
    loop {
        let block = le32(&[&reader.bytes(end, 3)?[..], &[0]].concat(), 0);
        let len = match block >> 1 & 3 {
            // A run has one byte, however long it is.
            1 => 1,
            0 | 2 => u64::from(block >> 3),
            _ => return Err(reader.damaged(end, "a block of a zstd frame is of an unknown type")),
        };
        end += 3 + len;
        if block & 1 != 0 {
            break;
        }
    }
    end += if descriptor & 4 != 0 { 4 } else { 0 };
    if end > reader.len() {
        return Err(reader.damaged(at, "a zstd frame extends beyond the end"));
    }
    Ok((end - at, plain_len))
}
