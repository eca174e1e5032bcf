//! What says how a deflate stream was made: the container, the header of a zlib stream, and nothing else.

use std::ops::Range;

use sealift_format::{Coder, Zlib};
use sealift_store::container::Hint;

/// The CRC and the length at the end of a gzip member.
const GZIP_TRAILER_LEN: usize = 8;

/// Returns the coders to try for a deflate stream, the likeliest first.
pub(super) fn candidates(hint: Hint, is_raw: bool, body: &[u8]) -> Vec<Coder> {
    // The header of a zlib stream has the window, and one of four classes of levels (RFC 1950, section 2.2).
    let window_bits = match body {
        [method, _, ..] if !is_raw => (method >> 4) + 8,
        _ => 15,
    };
    let levels: Vec<u8> = match hint {
        Hint::Zlib { level, .. } => u8::try_from(level).into_iter().collect(),
        _ => vec![9, 6, 1, 5, 4, 3, 2, 7, 8],
    };
    let strategies: &[u8] = match hint {
        Hint::Zlib { strategies, .. } if strategies > 1 => &[0, 1, 2, 3, 4],
        _ => &[0],
    };
    let mut found = Vec::new();
    for mem_level in [8, 9] {
        for strategy in strategies {
            let of = |level: &u8| {
                Coder::Zlib(Zlib {
                    level: *level,
                    window_bits: window_bits.clamp(9, 15),
                    is_raw,
                    mem_level,
                    strategy: *strategy,
                })
            };
            found.extend(levels.iter().map(of));
        }
    }
    found
}

/// Returns the deflate stream of a gzip member (RFC 1952, section 2.3).
pub(super) fn gzip_body(stored: &[u8]) -> Option<Range<usize>> {
    let [0x1f, 0x8b, 8, flags, ..] = *stored else { return None };
    let mut len = 10;
    if flags & 4 != 0 {
        let extra = stored.get(len..len + 2)?;
        len += 2 + usize::from(u16::from_le_bytes([extra[0], extra[1]]));
    }
    for flag in [8, 16] {
        if flags & flag != 0 {
            len += stored.get(len..)?.iter().position(|byte| *byte == 0)? + 1;
        }
    }
    if flags & 2 != 0 {
        len += 2;
    }
    let end = stored.len().checked_sub(GZIP_TRAILER_LEN)?;
    (len < end).then_some(len..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_of_gzip_ends_where_the_stream_begins() {
        let start = |header: &[u8]| gzip_body(&[header, &[0; 9]].concat()).map(|body| body.start);
        assert_eq!(start(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 3]), Some(10));
        assert_eq!(start(b"\x1f\x8b\x08\x08\0\0\0\0\x02\x03name\0"), Some(15));
        assert_eq!(start(b"\x1f\x8b\x08\x1c\0\0\0\0\x02\x03\x02\0abn\0c\0"), Some(18));
        assert_eq!(gzip_body(b"\x1f\x8b\x08\x08\0\0\0\0\x02\x03name"), None);
        assert_eq!(gzip_body(b"\x1f\x8b"), None);
    }
}
