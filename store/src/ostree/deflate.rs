//! Raw deflate, in which archive repositories store contents.

use std::fmt;
use std::io;

use parking_lot::Mutex;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use libdeflater::{CompressionLvl, Compressor};

/// Compresses at one level.
pub(crate) struct Deflate {
    whole: CompressionLvl,
    stream: Compression,
    /// Compressors for reuse: setting one up takes longer than a small file.
    idle: Mutex<Vec<Compressor>>,
}

/// The level if the repository sets none: kernel sources take 2 % more bytes than at level 6, in less than half the time.
const WHOLE_LEVEL: u32 = 4;
/// libostree's default (ostree.repo-config(5), `zlib-level`).
const STREAM_LEVEL: u32 = 6;

impl Deflate {
    /// `level` is the repository's setting, from 1 to 9.
    pub(crate) fn new(level: Option<u32>) -> Self {
        let whole = i32::try_from(level.unwrap_or(WHOLE_LEVEL)).ok().and_then(|level| CompressionLvl::new(level).ok());
        let stream = Compression::new(level.unwrap_or(STREAM_LEVEL));
        Self { whole: whole.unwrap_or_default(), stream, idle: Mutex::default() }
    }

    /// Appends all of `bytes` to `out`, compressed.
    pub(crate) fn whole(&self, mut out: Vec<u8>, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let idle = || self.idle.lock();
        let kept = idle().pop();
        let mut compressor = kept.unwrap_or_else(|| Compressor::new(self.whole));
        let start = out.len();
        out.resize(start + compressor.deflate_compress_bound(bytes.len()), 0);
        let compressed = compressor.deflate_compress(bytes, &mut out[start..]);
        let len = compressed.map_err(|error| io::Error::other(error.to_string()))?;
        out.truncate(start + len);
        idle().push(compressor);
        Ok(out)
    }

    /// Compresses a stream too long to be held in memory.
    pub(crate) fn stream<W: io::Write>(&self, to: W) -> DeflateEncoder<W> {
        DeflateEncoder::new(to, self.stream)
    }
}

impl fmt::Debug for Deflate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deflate").field("whole", &self.whole).field("stream", &self.stream).finish_non_exhaustive()
    }
}
