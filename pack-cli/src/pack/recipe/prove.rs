//! Finds the encoder and the parameters that make a block, by making it.

use std::collections::HashMap;

use parking_lot::Mutex;
use sealift_format::{Coder, Zlib};
use sealift_store::container::{Block, BlockCodec, Hint};
use sealift_store::recipe::encode;

/// The CRC and the length at the end of a gzip member.
const GZIP_TRAILER_LEN: usize = 8;
/// The part of a block that an encoder makes: a gzip member has a header and a trailer around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Proved {
    pub(super) coder: Coder,
    /// Bytes of the block before it.
    pub(super) before: usize,
    /// Bytes of the block after it.
    pub(super) after: usize,
}

/// What is known of how blocks were made.
#[derive(Debug, Default)]
pub(super) struct Prover {
    /// For each codec, the coders that made blocks, the most recent first.
    coders: Mutex<HashMap<BlockCodec, Vec<Coder>>>,
}

impl Prover {
    /// Returns what makes a block, whose stored bytes decode to `plain`; `None` if nothing does.
    pub(super) fn prove(&self, block: &Block, hint: Hint, stored: &[u8], plain: &[u8]) -> Option<Proved> {
        let (before, body) = body_of(block.codec, stored)?;
        let likely = candidates(block.codec, hint, stored, body);
        let mut in_order = self.coders.lock().get(&block.codec).cloned().unwrap_or_default();
        in_order.retain(|coder| likely.contains(coder));
        let others: Vec<Coder> = likely.into_iter().filter(|coder| !in_order.contains(coder)).collect();
        in_order.extend(others);
        let coder = in_order.into_iter().find(|coder| makes(coder, plain, body))?;
        let mut coders = self.coders.lock();
        let known = coders.entry(block.codec).or_default();
        known.retain(|known| *known != coder);
        known.insert(0, coder);
        Some(Proved { coder, before, after: stored.len() - before - body.len() })
    }
}

/// Returns the part of a block that an encoder may make, with the number of bytes before it; `None` if there is no encoder for the codec.
pub(super) fn body_of(codec: BlockCodec, stored: &[u8]) -> Option<(usize, &[u8])> {
    let (before, after) = match codec {
        BlockCodec::Zlib | BlockCodec::Deflate => (0, 0),
        BlockCodec::Gzip => (gzip_header_len(stored)?, GZIP_TRAILER_LEN),
        _ => return None,
    };
    Some((before, stored.get(before..stored.len().checked_sub(after)?)?))
}

fn makes(coder: &Coder, plain: &[u8], body: &[u8]) -> bool {
    encode(coder, plain, body.len()).is_ok_and(|made| made.as_deref() == Some(body))
}

/// Returns the coders to try, the likeliest first.
fn candidates(codec: BlockCodec, hint: Hint, stored: &[u8], body: &[u8]) -> Vec<Coder> {
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

/// Returns the length of the header of a gzip member (RFC 1952, section 2.3).
fn gzip_header_len(stored: &[u8]) -> Option<usize> {
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
    (len <= stored.len()).then_some(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_gzip_end_where_the_stream_begins() {
        assert_eq!(gzip_header_len(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 3, 9]), Some(10));
        assert_eq!(gzip_header_len(b"\x1f\x8b\x08\x08\0\0\0\0\x02\x03name\0x"), Some(15));
        assert_eq!(gzip_header_len(b"\x1f\x8b\x08\x1c\0\0\0\0\x02\x03\x02\0abn\0c\0"), Some(18));
        assert_eq!(gzip_header_len(b"\x1f\x8b\x08\x08\0\0\0\0\x02\x03name"), None);
        assert_eq!(gzip_header_len(b"\x1f\x8b"), None);
    }
}
