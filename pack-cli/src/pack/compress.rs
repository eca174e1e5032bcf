//! Compresses a bundle's frames, reproducibly (spec 8.1).

use sealift_format::Codec;
use zstd_safe::{CCtx, CParameter};

use crate::Error;

/// The level at which index and layout are compressed at least: they are read before everything else, by everyone.
const INDEX_LEVEL: i32 = 6;

/// Name and version of the encoder: what may make other bytes when it changes.
pub(crate) fn encoder() -> String {
    format!("sealift {}, zstd {}", env!("CARGO_PKG_VERSION"), zstd_safe::version_string())
}

/// A thread's zstd context, and the buffer in which it compresses.
pub(crate) struct Compressor {
    context: CCtx<'static>,
    compressed: Vec<u8>,
}

impl Compressor {
    /// One for chunks.
    pub(crate) fn new(level: i32) -> Result<Self, Error> {
        let mut context = CCtx::create();
        frame_parameters(&mut context, level).map_err(Error::Usage)?;
        Ok(Self { context, compressed: Vec::new() })
    }

    /// One for layout and index.
    pub(crate) fn for_front(level: i32) -> Result<Self, Error> {
        Self::new(level.max(INDEX_LEVEL))
    }

    /// A chunk of these bytes: as a frame, or as they are where that is not shorter.
    pub(crate) fn chunk(&mut self, data: &[u8]) -> Result<(Codec, Vec<u8>), Error> {
        let frame = self.compress(data)?;
        if frame.len() < data.len() { Ok((Codec::Zstd, frame.to_vec())) } else { Ok((Codec::Raw, data.to_vec())) }
    }

    /// The frame of these bytes.
    pub(crate) fn compress(&mut self, data: &[u8]) -> Result<&[u8], Error> {
        let len = compress_into(&mut self.context, data, &mut self.compressed).map_err(Error::Usage)?;
        Ok(&self.compressed[..len])
    }
}

/// Compresses `bytes` into one frame, in `buffer`, whose first bytes the frame becomes. Returns its length.
fn compress_into(context: &mut CCtx<'_>, bytes: &[u8], buffer: &mut Vec<u8>) -> Result<usize, String> {
    let bound = zstd_safe::compress_bound(bytes.len());
    if buffer.len() < bound {
        buffer.resize(bound, 0);
    }
    let len = context.compress2(&mut buffer[..], bytes);
    len.map_err(|code| format!("zstd: {}", zstd_safe::get_error_name(code)))
}

/// Compresses `bytes` with a context of one's own.
pub(super) fn compress(context: &mut CCtx<'_>, bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut stored = Vec::new();
    let len = compress_into(context, bytes, &mut stored)?;
    stored.truncate(len);
    Ok(stored)
}

/// Sets what every frame of a bundle has in common (spec 8.1).
pub(super) fn frame_parameters(context: &mut CCtx<'_>, level: i32) -> Result<(), String> {
    let mut parameters =
        vec![CParameter::CompressionLevel(level), CParameter::ContentSizeFlag(true), CParameter::ChecksumFlag(false)];
    // Where zstd's own choice is not the best for a chunk (spec/rationale.md, "Chunk size").
    match level {
        // Half the tables: they fit a core's cache. A tenth less time for 0.7 % more bytes.
        3 | 4 => parameters.extend([CParameter::HashLog(16), CParameter::ChainLog(15)]),
        // A match of 64 bytes is taken without a look at others, as at level 18, and a table of 1 MiB finds as much as one of 16. Little
        // more than half the time for 1 % more bytes; 20 is as zstd has it.
        19 => parameters.extend([CParameter::TargetLength(64), CParameter::HashLog(18)]),
        _ => {}
    }
    for parameter in parameters {
        let set = context.set_parameter(parameter);
        set.map_err(|code| format!("zstd level {level}: {}", zstd_safe::get_error_name(code)))?;
    }
    Ok(())
}
