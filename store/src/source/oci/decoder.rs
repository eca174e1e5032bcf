//! Decompresses a layer.

use std::io::{self, BufRead, Read};

use flate2::bufread::MultiGzDecoder;
use zstd_safe::{DCtx, InBuffer, OutBuffer};

use crate::source::archive::compressor;

/// The bytes at a layer's start that tell how it is compressed.
const HEAD_LEN: usize = 8;
/// The least bytes of a buffer that always holds the start.
pub(super) const BUFFER_LEN: usize = 64 << 10;

/// Returns a reader of the uncompressed bytes; otherwise the program that would decompress them. What compressed a layer is told by its bytes, since
/// some programs write another type than the layer has.
pub(super) fn decoder<'a>(mut stored: impl BufRead + 'a) -> io::Result<Result<Box<dyn Read + 'a>, &'static str>> {
    let head = stored.fill_buf()?;
    let head = head.get(..HEAD_LEN).unwrap_or(head);
    let skippable = head.get(1..4) == Some(&[0x2a, 0x4d, 0x18]) && head.first().is_some_and(|byte| byte & 0xf0 == 0x50);
    Ok(Ok(match compressor(head) {
        Some("gzip") if head.starts_with(b"\x1f\x8b") => Box::new(MultiGzDecoder::new(stored)),
        Some("zstd") => Box::new(ZstdFrames::new(stored)),
        Some(other) => return Ok(Err(other)),
        None if skippable => Box::new(ZstdFrames::new(stored)),
        None => Box::new(stored),
    }))
}

/// Decodes zstd frames up to the end of what holds them, within libzstd's usual limit for windows (128 MiB).
struct ZstdFrames<R> {
    context: DCtx<'static>,
    stored: R,
    is_within_frame: bool,
}

impl<R: BufRead> ZstdFrames<R> {
    fn new(stored: R) -> Self {
        Self { context: DCtx::create(), stored, is_within_frame: false }
    }
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            let bytes = self.stored.fill_buf()?;
            let is_end = bytes.is_empty();
            if is_end && !self.is_within_frame {
                return Ok(0);
            }
            let (mut input, mut output) = (InBuffer::around(bytes), OutBuffer::around(&mut *buffer));
            let left = self.context.decompress_stream(&mut output, &mut input);
            let left = left.map_err(|code| io::Error::other(zstd_safe::get_error_name(code)))?;
            let (taken, len) = (input.pos(), output.pos());
            self.stored.consume(taken);
            self.is_within_frame = left != 0;
            if len > 0 {
                return Ok(len);
            }
            if is_end {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufReader, Write as _};

    fn decoded(stored: &[u8]) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let decoder = decoder(BufReader::with_capacity(BUFFER_LEN, stored))?.map_err(io::Error::other)?;
        { decoder }.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn zstd(plain: &[u8]) -> Vec<u8> {
        let mut stored = vec![0; zstd_safe::compress_bound(plain.len())];
        let len = zstd_safe::compress(&mut stored[..], plain, 3).expect("compressed");
        stored.truncate(len);
        stored
    }

    fn gzip(plain: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(plain).expect("written");
        encoder.finish().expect("compressed")
    }

    #[test]
    fn layers_of_several_streams_are_decoded_to_their_end() {
        let plain: Vec<u8> = (0..300_000_u32).flat_map(|n| (n / 7).to_le_bytes()).collect();
        let (one, other) = plain.split_at(70_000);
        let skippable = [&[0x5e, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
        for stored in [
            plain.clone(),
            gzip(&plain),
            [gzip(one), gzip(other)].concat(),
            zstd(&plain),
            [zstd(one), skippable.clone(), zstd(other)].concat(),
            [skippable, zstd(&plain)].concat(),
        ] {
            assert!(decoded(&stored).expect("decoded") == plain);
        }
        assert_eq!(decoded(b"").expect("decoded"), b"");
    }

    #[test]
    fn cut_and_foreign_streams_are_errors() {
        for stored in [gzip(&[7; 5000]), zstd(&[7; 5000])] {
            assert!(decoded(&stored[..stored.len() - 1]).is_err());
            assert!(decoded(&[&stored[..], b"\x1f\x8bgarbage"].concat()).is_err());
        }
        let error = decoded(b"\xfd7zXZ\0and so on").expect_err("xz");
        assert_eq!(error.to_string(), "xz");
    }
}
