//! The structure of an xz stream (the xz file format, sections 2 to 4), as far as it says how the stream was made. What is not sound has no structure.

use std::ops::Range;

use sealift_format::num::{size, wide};
use sealift_format::{Coder, RecipeCodec, Xz};

const HEADER_LEN: usize = 12;
const FOOTER_LEN: usize = 12;
const MAGIC: &[u8] = b"\xfd7zXZ\0";
const LZMA2: u8 = 0x21;
/// The filters besides LZMA2 that have no parameters here.
const BRANCH_FILTERS: std::ops::RangeInclusive<u8> = 4..=11;
/// More blocks are in no stream that is worth it.
const BLOCKS_MAX: u64 = 1 << 16;
/// Presets, and whether their flag for more time is set, that differ in more than the dictionary. The likeliest come first.
const PRESETS: [(u8, bool); 9] =
    [(6, false), (6, true), (5, false), (4, false), (3, false), (2, false), (1, false), (0, false), (5, true)];

/// An xz stream.
pub(super) struct Stream {
    check: u8,
    /// The number of bytes before the first block's chunks that `lzma_stream_buffer_encode` writes, too, if there is one block.
    is_of_buffer: bool,
    pub(super) blocks: Vec<Block>,
}

/// A block of a stream.
pub(super) struct Block {
    /// Its LZMA2 chunks, in bytes of the stream.
    pub(super) chunks: Range<usize>,
    pub(super) plain_len: usize,
    dictionary_len: u32,
    filter: u8,
}

impl Stream {
    /// Returns the structure of a stream, if it is all of these bytes.
    pub(super) fn of(stored: &[u8]) -> Option<Self> {
        let check = *stored.strip_prefix(MAGIC)?.get(1)?;
        let footer = stored.len().checked_sub(FOOTER_LEN)?;
        let index_len = stored.get(footer + 4..footer + 8)?.first_chunk().copied().map(u32::from_le_bytes)?;
        let index_len = (size(u64::from(index_len)) + 1).checked_mul(4)?;
        let mut index = stored.get(footer.checked_sub(index_len)?..footer)?.strip_prefix(&[0])?;
        let count = number(&mut index)?;
        if count > BLOCKS_MAX {
            return None;
        }
        let (mut blocks, mut place, mut is_of_buffer) = (Vec::new(), HEADER_LEN, count == 1);
        for _ in 0..count {
            let unpadded = size(number(&mut index)?);
            let plain_len = size(number(&mut index)?);
            let header_len = (usize::from(*stored.get(place)?) + 1) * 4;
            let header = stored.get(place..place.checked_add(header_len)?)?;
            let (dictionary_len, filter, is_like_buffer) = block_header(header, wide(plain_len))?;
            is_of_buffer &= is_like_buffer;
            let end = place.checked_add(unpadded)?;
            let chunks = place + header_len..end.checked_sub(check_len(check))?;
            if chunks.is_empty() || end > footer {
                return None;
            }
            blocks.push(Block { chunks, plain_len, dictionary_len, filter });
            place = end.checked_next_multiple_of(4)?;
        }
        (place + index_len == footer).then_some(Self { check, is_of_buffer, blocks })
    }

    /// Returns the codec that decodes the stream.
    pub(super) fn codec(&self) -> Option<RecipeCodec> {
        match self.blocks.iter().map(|block| block.dictionary_len).max()? {
            0..=0x10_0000 => Some(RecipeCodec::XzSmall),
            0x10_0001..=0x80_0000 => Some(RecipeCodec::Xz),
            0x80_0001..=0x400_0000 => Some(RecipeCodec::XzLarge),
            _ => None,
        }
    }

    /// Returns whether `lzma_stream_buffer_encode` may have made all of it: encoders that do not know the length in advance leave it out, or more room for it.
    pub(super) fn is_of_buffer(&self) -> bool {
        self.is_of_buffer
    }

    /// Returns the coders to try for a block, the likeliest first: of the whole stream or of its chunks alone.
    pub(super) fn candidates(&self, block: &Block, chunks: &[u8], is_whole: bool) -> Vec<Coder> {
        let Some((lc, lp, pb)) = properties(chunks) else { return Vec::new() };
        let usual: &[(u8, bool)] = match block.dictionary_len {
            0x4_0000 => &[(0, false)],
            0x10_0000 => &[(6, false), (1, false)],
            0x20_0000 => &[(2, false)],
            0x40_0000 => &[(4, false), (3, false)],
            _ => &[(6, false)],
        };
        let others = PRESETS.iter().filter(|preset| !usual.contains(preset));
        let coder = |(preset, is_extreme): &(u8, bool)| {
            Coder::Xz(Xz {
                preset: *preset,
                is_extreme: *is_extreme,
                dictionary_len: block.dictionary_len,
                lc,
                lp,
                pb,
                filter: block.filter,
                check: is_whole.then_some(self.check),
            })
        };
        usual.iter().chain(others).map(coder).collect()
    }
}

/// Returns the length of the dictionary and the filter that a block's header states, and whether it is like those for which the lengths were known.
fn block_header(header: &[u8], plain_len: u64) -> Option<(u32, u8, bool)> {
    let flags = *header.get(1)?;
    let mut rest = header.get(2..header.len().checked_sub(4)?)?;
    for flag in [0x40, 0x80] {
        if flags & flag != 0 {
            number(&mut rest)?;
        }
    }
    let (filter, filters_len) = match flags & 0x3f {
        0 => (0, 3),
        1 => {
            let (filter, behind) = rest.split_first_chunk::<2>()?;
            rest = behind;
            if filter[1] != 0 || !BRANCH_FILTERS.contains(&filter[0]) {
                return None;
            }
            (filter[0], 5)
        }
        _ => return None,
    };
    let [LZMA2, 1, bits, ..] = *rest else { return None };
    let dictionary_len = match bits {
        0..=30 => (2 | u32::from(bits & 1)) << (bits / 2 + 11),
        _ => return None,
    };
    // What lzma_block_buffer_encode reserves for the lengths.
    let bound = plain_len.checked_add(plain_len.div_ceil(1 << 16) * 3 + 1)?;
    let expected = (2 + number_len(bound) + number_len(plain_len) + filters_len).next_multiple_of(4) + 4;
    Some((dictionary_len, filter, flags & 0xc0 == 0xc0 && header.len() == expected))
}

/// Returns `lc`, `lp` and `pb` of the first LZMA2 chunk that has them; the usual ones if none has.
fn properties(mut chunks: &[u8]) -> Option<(u8, u8, u8)> {
    loop {
        match *chunks {
            [1 | 2, high, low, ..] => chunks = chunks.get(3 + usize::from(u16::from_be_bytes([high, low])) + 1..)?,
            [control, _, _, _, _, bits, ..] if control >= 0xc0 => {
                let (pb, lp, lc) = (bits / 45, bits / 9 % 5, bits % 9);
                return (pb <= 4 && lc + lp <= 4).then_some((lc, lp, pb));
            }
            [0] => return Some((3, 0, 2)),
            _ => return None,
        }
    }
}

/// Takes a number of the format from the start of `bytes`.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for position in 0..9 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << (7 * position);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn number_len(value: u64) -> usize {
    (0..9).take_while(|position| *position == 0 || value >> (7 * position) != 0).count()
}

/// Returns the length of a check in bytes (2.1.1.2).
fn check_len(check: u8) -> usize {
    match check & 0xf {
        0 => 0,
        check => 4 << ((check - 1) / 3),
    }
}
