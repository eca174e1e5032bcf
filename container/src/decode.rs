//! Decodes blocks: small ones in one call, streams of any length piece by piece.

use std::io::{self, BufRead, BufReader, Read};

use bzip2::bufread::BzDecoder;
use flate2::bufread::{DeflateDecoder, GzDecoder, ZlibDecoder};
use lz4_flex::frame::FrameDecoder;
use lzma_rust2::XzReader;
use sealift_format::num::{up_to, wide};

use super::block::{Block, BlockCodec, PlainLen};
use super::fault::ContainerFault;
use super::lz4_prefix::Prefix;
use super::reader::Reader;
use super::zstd;

/// What decoding an xz stream may take, in KiB: `xz -9` needs a quarter.
const XZ_MEMORY: u32 = 256 << 10;
/// The most bytes to which a byte of an lz4 block decodes.
const LZ4_RATIO: u64 = 255;
/// Bytes of a stream that are decoded at once.
const PORTION: usize = 64 << 10;

impl Block {
    /// The longest content, in bytes, that [`Block::decoded`] returns.
    pub const LONGEST_DECODED: u64 = 16 << 20;

    /// Returns what the block decodes to; `None` if it is damaged, has another length than it should have, or is longer than
    /// [`Block::LONGEST_DECODED`]. `stored` are its compressed bytes.
    #[must_use]
    pub fn decoded(&self, stored: &[u8]) -> Option<Vec<u8>> {
        let most = self.plain.most();
        if most > Self::LONGEST_DECODED {
            return None;
        }
        let decoded = decoded(self.codec, stored, most)?;
        let is_right = match self.plain {
            PlainLen::Exactly(len) => wide(decoded.len()) == len,
            PlainLen::AtMost(_) => true,
        };
        is_right.then_some(decoded)
    }
}

/// Returns what a block of at most `most` bytes decodes to, if it does.
pub(super) fn decoded(codec: BlockCodec, stored: &[u8], most: u64) -> Option<Vec<u8>> {
    let mut decoded = match codec {
        BlockCodec::Lz4Block => vec![0; up_to(most.min(wide(stored.len()).saturating_mul(LZ4_RATIO)), usize::MAX)],
        BlockCodec::Zlib | BlockCodec::Deflate | BlockCodec::Zstd => vec![0; usize::try_from(most).ok()?],
        BlockCodec::Gzip | BlockCodec::Xz | BlockCodec::Lz4Frame | BlockCodec::Bzip2 => {
            let mut decoded = Vec::new();
            decoder(codec, stored).take(most.saturating_add(1)).read_to_end(&mut decoded).ok()?;
            return (wide(decoded.len()) <= most).then_some(decoded);
        }
    };
    let len = match codec {
        BlockCodec::Lz4Block => match lz4_flex::block::decompress_into(stored, &mut decoded) {
            Ok(len) => len,
            // An EROFS cluster may hold more than any file uses of it, and padding.
            Err(_) => return Prefix::decoded(stored, decoded.len()).map(|prefix| prefix.bytes),
        },
        BlockCodec::Zlib => inflate(true, stored, &mut decoded)?,
        BlockCodec::Deflate => inflate(false, stored, &mut decoded)?,
        _ => zstd::decompress(stored, &mut decoded)?,
    };
    decoded.truncate(len);
    Some(decoded)
}

/// Decodes deflate into a buffer that has room for all of it, and returns the length of what it decodes to.
#[cfg(not(target_arch = "wasm32"))]
fn inflate(has_header: bool, stored: &[u8], decoded: &mut [u8]) -> Option<usize> {
    let mut decoder = libdeflater::Decompressor::new();
    match has_header {
        true => decoder.zlib_decompress(stored, decoded).ok(),
        false => decoder.deflate_decompress(stored, decoded).ok(),
    }
}

/// The same without a C compiler.
#[cfg(target_arch = "wasm32")]
fn inflate(has_header: bool, stored: &[u8], decoded: &mut [u8]) -> Option<usize> {
    let mut decoder = flate2::Decompress::new(has_header);
    let status = decoder.decompress(stored, decoded, flate2::FlushDecompress::Finish).ok()?;
    let len = usize::try_from(decoder.total_out()).ok()?;
    (status == flate2::Status::StreamEnd).then_some(len)
}

/// Returns a reader of what a stream decodes to. It takes no more bytes from `stored` than belong to the stream.
pub(super) fn decoder<'a>(codec: BlockCodec, stored: impl BufRead + Send + 'a) -> Box<dyn Read + Send + 'a> {
    match codec {
        BlockCodec::Zlib => Box::new(ZlibDecoder::new(stored)),
        BlockCodec::Deflate => Box::new(DeflateDecoder::new(stored)),
        BlockCodec::Gzip => Box::new(GzDecoder::new(stored)),
        BlockCodec::Xz => Box::new(XzReader::new_mem_limit(stored, false, XZ_MEMORY)),
        BlockCodec::Lz4Frame => Box::new(FrameDecoder::new(stored)),
        BlockCodec::Zstd => Box::new(zstd::Decoder::new(stored)),
        BlockCodec::Bzip2 => Box::new(BzDecoder::new(stored)),
        BlockCodec::Lz4Block => Box::new(NoStream),
    }
}

/// Returns the length of the stream that begins at an offset and has no more than `most` bytes, and that of what it decodes to, by decoding it.
pub(super) fn measure(
    reader: &Reader<'_>,
    codec: BlockCodec,
    at: u64,
    most: u64,
) -> Result<(u64, u64), ContainerFault> {
    let mut counted = Counted { stored: BufReader::with_capacity(PORTION, reader.stream(at, most)), taken: 0 };
    let mut stream = decoder(codec, &mut counted);
    let mut portion = vec![0; PORTION];
    let mut plain_len = 0;
    loop {
        match stream.read(&mut portion) {
            Ok(0) => break,
            Ok(len) => {
                reader.pay_decoded(wide(len))?;
                plain_len += wide(len);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Err(reader.damaged(at, "the compressed stream that begins here is damaged")),
        }
    }
    drop(stream);
    Ok((counted.taken, plain_len))
}

/// Counts the bytes that are taken.
struct Counted<R> {
    stored: R,
    taken: u64,
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.stored.read(buffer)?;
        self.taken += wide(len);
        Ok(len)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.stored.fill_buf()
    }

    fn consume(&mut self, len: usize) {
        self.taken += wide(len);
        self.stored.consume(len);
    }
}

/// Blocks without a frame are short, and never read as streams.
struct NoStream;

impl Read for NoStream {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
