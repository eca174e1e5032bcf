//! The parts of compressed blocks that encoders may have made.

use std::ops::Range;

use sealift_container::{Block, BlockCodec, Hint, PlainLen};
use sealift_format::num::size;
use sealift_format::{Bzip2, CODED_MAX, Coder, Filled, Lz4, RecipeCodec};
use sealift_store::recipe::decode;

use super::deflate::{candidates as deflaters, gzip_body};
use super::xz::Stream;
use super::zstd;

/// The usual length of an EROFS block in bytes.
const EROFS_BLOCK_LEN: usize = 4096;

/// A part of a block that an encoder may have made.
#[derive(Debug)]
pub(super) struct Body {
    /// Its bytes, in bytes of the block.
    pub(super) stored: Range<usize>,
    /// What it encodes, in bytes of what the block decodes to.
    pub(super) plain: Range<usize>,
    made: Made,
}

/// What may have made a body.
#[derive(Debug)]
enum Made {
    Deflate(BlockCodec),
    Lz4,
    Zstd,
    /// These, and no others.
    By(Vec<Coder>),
}

impl Body {
    /// Returns whether the encoder may have known more than it encoded.
    pub(super) fn may_need_following(&self, hint: Hint) -> bool {
        matches!((&self.made, hint), (Made::Lz4, Hint::None))
    }

    /// Returns the coders to try, the likeliest first. `all` are the bytes of the block, and `stored` its own.
    pub(super) fn candidates(&self, hint: Hint, all: &[u8], stored: &[u8]) -> Vec<Coder> {
        match &self.made {
            Made::Deflate(codec) => deflaters(*codec, hint, all, stored),
            Made::Lz4 => lz4_coders(hint, stored.len()),
            Made::Zstd => zstd::candidates(hint, stored, self.plain.len()),
            Made::By(coders) => coders.clone(),
        }
    }
}

/// Returns the bodies of a block that decodes to `plain_len` bytes: either those of one of these lists are all made, or none is.
pub(super) fn bodies_of(codec: BlockCodec, stored: &[u8], plain_len: usize) -> Vec<Vec<Body>> {
    let whole = |made| Body { stored: 0..stored.len(), plain: 0..plain_len, made };
    match codec {
        BlockCodec::Zlib | BlockCodec::Deflate => vec![vec![whole(Made::Deflate(codec))]],
        BlockCodec::Gzip => match gzip_body(stored) {
            Some(body) => vec![vec![Body { stored: body, ..whole(Made::Deflate(codec)) }]],
            None => Vec::new(),
        },
        BlockCodec::Xz => xz_bodies(stored, plain_len),
        BlockCodec::Lz4Block => vec![vec![whole(Made::Lz4)]],
        BlockCodec::Zstd => vec![vec![whole(Made::Zstd)]],
        BlockCodec::Bzip2 => match *stored {
            // The header has the level.
            [b'B', b'Z', b'h', digit @ b'1'..=b'9', ..] => {
                vec![vec![whole(Made::By(vec![Coder::Bzip2(Bzip2 { level: digit - b'0' })]))]]
            }
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// Returns the codec that decodes a block, and the range of it that is decoded; `None` if there is no codec for it.
pub(super) fn codec_of(codec: BlockCodec, stored: &[u8]) -> Option<(RecipeCodec, Range<usize>)> {
    let all = 0..stored.len();
    match codec {
        BlockCodec::Zlib => Some((RecipeCodec::Zlib, all)),
        BlockCodec::Deflate => Some((RecipeCodec::Deflate, all)),
        BlockCodec::Gzip => Some((RecipeCodec::Deflate, gzip_body(stored)?)),
        BlockCodec::Xz => Some((Stream::of(stored)?.codec()?, all)),
        BlockCodec::Lz4Block => Some((RecipeCodec::Lz4Block, all)),
        BlockCodec::Zstd => Some((RecipeCodec::Zstd, all)),
        BlockCodec::Bzip2 => Some((RecipeCodec::Bzip2, all)),
        _ => None,
    }
}

/// Returns what a block of any length that a recipe may have decodes to; `None` if it is damaged or longer. `stored` are its bytes.
pub(super) fn decoded(block: &Block, stored: &[u8]) -> Option<Vec<u8>> {
    match block.plain {
        PlainLen::Exactly(len) if len > Block::LONGEST_DECODED && len <= CODED_MAX => {
            let (codec, range) = codec_of(block.codec, stored)?;
            decode(codec, stored.get(range)?, size(len))
        }
        _ => block.decoded(stored),
    }
}

fn xz_bodies(stored: &[u8], plain_len: usize) -> Vec<Vec<Body>> {
    let Some(stream) = Stream::of(stored) else { return Vec::new() };
    let mut found = Vec::new();
    let chunks = |range: &Range<usize>| stored.get(range.clone()).unwrap_or_default();
    if let [block] = &stream.blocks[..]
        && stream.is_of_buffer()
    {
        let coders = stream.candidates(block, chunks(&block.chunks), true);
        found.push(vec![Body { stored: 0..stored.len(), plain: 0..plain_len, made: Made::By(coders) }]);
    }
    let mut place = 0_usize;
    let bodies = stream.blocks.iter().map(|block| {
        let plain = place..place.saturating_add(block.plain_len);
        place = plain.end;
        let made = Made::By(stream.candidates(block, chunks(&block.chunks), false));
        Body { stored: block.chunks.clone(), plain, made }
    });
    found.push(bodies.collect());
    found
}

/// Returns the coders to try for an lz4 block of this length, the likeliest first: those of mksquashfs if it made the block, or else those of mkfs.erofs,
/// which fill a multiple of the file system's blocks.
fn lz4_coders(hint: Hint, stored_len: usize) -> Vec<Coder> {
    let coder = |is_high, level, filled| Coder::Lz4(Lz4 { is_high, level, filled });
    match hint {
        Hint::Lz4 { is_high: true } => vec![coder(true, 12, None)],
        Hint::Lz4 { is_high: false } => vec![coder(false, 1, None)],
        _ => {
            let room = u32::try_from(stored_len.next_multiple_of(EROFS_BLOCK_LEN)).unwrap_or(u32::MAX);
            let filled = [true, false].map(|is_padded| Some(Filled { room, is_padded }));
            let levels = [(false, 1), (true, 9), (true, 12)].into_iter().chain((1..=11).map(|level| (true, level)));
            levels.flat_map(|(is_high, level)| filled.map(|filled| coder(is_high, level, filled))).collect()
        }
    }
}
