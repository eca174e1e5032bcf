//! The libraries that make the bytes of recipes.

use sealift_format::{Coder, Encoder};

use super::{bzip2, lz4, xz, zlib, zstd};
use crate::Error;

/// Returns whether this program has an encoder.
pub(super) fn has(encoder: Encoder) -> bool {
    match encoder {
        Encoder::Zlib | Encoder::Xz | Encoder::Zstd157 | Encoder::Zstd155 | Encoder::Zstd154 | Encoder::Bzip2 => true,
        Encoder::Lz4 => lz4::IS_USUAL,
        _ => false,
    }
}

/// Returns what an encoder makes of `bytes`; `None` if that is longer than `len` bytes.
///
/// # Errors
/// Returns an error if this program has no such encoder, or it fails.
pub fn encode(coder: &Coder, bytes: &[u8], len: usize) -> Result<Option<Vec<u8>>, Error> {
    match coder {
        Coder::Zlib(parameters) => zlib::encode(parameters, bytes, len),
        Coder::Xz(parameters) => xz::encode(parameters, bytes, len),
        Coder::Lz4(parameters) => lz4::encode(parameters, bytes, len),
        Coder::Zstd157(parameters) => zstd::encode(zstd::Version::V1_5_7, parameters, bytes, len),
        Coder::Zstd155(parameters) => zstd::encode(zstd::Version::V1_5_5, parameters, bytes, len),
        Coder::Zstd154(parameters) => zstd::encode(zstd::Version::V1_5_4, parameters, bytes, len),
        Coder::Bzip2(parameters) => bzip2::encode(*parameters, bytes, len),
        _ => Err(Error::Usage(format!("this program has no encoder {}", coder.encoder()))),
    }
}
