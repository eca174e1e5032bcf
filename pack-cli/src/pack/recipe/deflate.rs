//! What says how a deflate stream was made: the container, the header of a zlib stream, and nothing else.

use std::ops::Range;

use sealift_container::{BlockCodec, Hint};
use sealift_format::{Coder, Zlib};

/// The CRC and the length at the end of a gzip member.
const GZIP_TRAILER_LEN: usize = 8;

/// Returns the coders to try for a deflate stream in a block, the likeliest first. `body` is the stream.
pub(super) fn candidates(codec: BlockCodec, hint: Hint, stored: &[u8], body: &[u8]) -> Vec<Coder> {
    let is_raw = codec != BlockCodec::Zlib;
    // The header of a zlib stream has the window, and one of four classes of levels (RFC 1950, section 2.2).
    let (window_bits, class) = match body {
        [method, flags, ..] if !is_raw => ((method >> 4) + 8, Some(flags >> 6)),
        _ => (15, None),
    };
    let levels: Vec<u8> = match (hint, class, stored) {
        (Hint::Zlib { level, .. }, ..) => u8::try_from(level).into_iter().collect(),
        (_, Some(0), _) => vec![1],
        (_, Some(1), _) => vec![5, 4, 3, 2],
        (_, Some(2), _) => vec![6],
        (_, Some(3), _) => vec![9, 7, 8],
        // The header of a gzip member says whether it was made slowly or fast (RFC 1952, section 2.3.1).
        (_, _, [_, _, _, _, _, _, _, _, 2, ..]) if codec == BlockCodec::Gzip => vec![9],
        (_, _, [_, _, _, _, _, _, _, _, 4, ..]) if codec == BlockCodec::Gzip => vec![1],
        _ => vec![6, 9],
    };
    let strategies: &[u8] = match hint {
        Hint::Zlib { strategies, .. } if strategies > 1 => &[0, 1, 2, 3, 4],
        _ => &[0],
    };
    let window_bits = window_bits.clamp(9, 15);
    // 8 is the default. Short streams of gzip(1), which has larger tables, are the same with 8, some only with 9.
    let mem_levels: &[u8] = if codec == BlockCodec::Gzip { &[8, 9] } else { &[8] };
    let of = |mem_level: u8, strategy: u8| {
        let zlib = move |level: &u8| Zlib { level: *level, window_bits, is_raw, mem_level, strategy };
        levels.iter().map(zlib).map(Coder::Zlib)
    };
    let pairs = mem_levels.iter().flat_map(|mem_level| strategies.iter().map(|strategy| (*mem_level, *strategy)));
    pairs.flat_map(|(mem_level, strategy)| of(mem_level, strategy)).collect()
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
