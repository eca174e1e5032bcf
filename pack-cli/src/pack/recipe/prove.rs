//! Finds the encoder and the parameters that make a block, by making it.

use std::collections::HashMap;

use parking_lot::Mutex;
use sealift_format::{Coder, Zlib};
use sealift_store::container::{Block, BlockCodec, Hint};
use sealift_store::recipe::encode;

/// The CRC and the length at the end of a gzip member.
const GZIP_TRAILER_LEN: usize = 8;
/// Blocks of one codec without any that could be made, after which no more are tried.
const GIVE_UP: u32 = 16;

/// The part of a block that an encoder makes: a gzip member has a header and a trailer around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Proved {
    pub(super) coder: Coder,
    /// Bytes of the block before it.
    pub(super) before: usize,
    /// Bytes of the block after it.
    pub(super) after: usize,
}

/// What is known of how the blocks of a container were made.
#[derive(Debug, Default)]
pub(super) struct Prover {
    state: Mutex<HashMap<BlockCodec, Known>>,
}

#[derive(Debug, Default)]
struct Known {
    /// The coders that made blocks, the most recent first.
    coders: Vec<Coder>,
    failed: u32,
}

impl Prover {
    /// Returns what makes a block, whose stored bytes decode to `plain`; `None` if nothing does.
    pub(super) fn prove(&self, block: &Block, hint: Hint, stored: &[u8], plain: &[u8]) -> Option<Proved> {
        let (before, body) = body_of(block.codec, stored)?;
        let (after, is_raw) = (stored.len() - before - body.len(), block.codec != BlockCodec::Zlib);
        let (known, is_hopeless) = {
            let state = self.state.lock();
            let known = state.get(&block.codec);
            let coders = known.map_or_else(Vec::new, |known| known.coders.clone());
            (coders, known.is_some_and(|known| known.coders.is_empty() && known.failed >= GIVE_UP))
        };
        if is_hopeless {
            return None;
        }
        let others = candidates(hint, is_raw, body).into_iter().filter(|coder| !known.contains(coder));
        let found = known.iter().copied().chain(others).find(|coder| makes(coder, plain, body));
        let mut state = self.state.lock();
        let known = state.entry(block.codec).or_default();
        match found {
            Some(coder) => {
                known.coders.retain(|known| *known != coder);
                known.coders.insert(0, coder);
            }
            None => known.failed += 1,
        }
        found.map(|coder| Proved { coder, before, after })
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
fn candidates(hint: Hint, is_raw: bool, body: &[u8]) -> Vec<Coder> {
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
