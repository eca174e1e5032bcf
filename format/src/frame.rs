//! zstd frames. Their headers are checked before a decoder gets them (core 8.1).

use alloc::vec::Vec;

use crate::bytes::Reader;
use crate::num::{self, wide};
use crate::{Error, Part};

const MAGIC: u32 = 0xfd2f_b528;
/// The most bytes that a block can have, compressed or decompressed, whatever the window (RFC 8878, section 3.1.1.2.4).
const BLOCK_MAX: u64 = 1 << 17;

/// Returns the size in bytes of the window that a frame needs; `None` if the bytes do not begin with a frame's header.
#[must_use]
pub fn frame_window(stored: &[u8]) -> Option<u64> {
    let descriptor = *stored.get(4)?;
    if descriptor & 0x20 == 0 {
        return stored.get(5).map(|byte| window_len(*byte));
    }
    let size = stored.get(5..)?;
    match descriptor >> 6 {
        0 => size.first().map(|byte| u64::from(*byte)),
        1 => size.first_chunk().map(|bytes| u64::from(u16::from_le_bytes(*bytes)) + 256),
        2 => size.first_chunk().map(|bytes| u32::from_le_bytes(*bytes).into()),
        _ => size.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)),
    }
}

/// Checks from the headers alone that `stored` is one frame that decodes to `len` bytes with a window of at most
/// 2^`window_log`.
///
/// # Errors
/// Returns an error if it does not conform to core 8.1; the error is about `part`.
pub fn check_frame(part: Part, stored: &[u8], len: u64, window_log: u8) -> Result<(), Error> {
    let fault = |what| Error::Frame { part, what };
    let cut = |_| fault("the zstd frame is cut");
    let mut reader = Reader::new(part, stored);
    if reader.u32().map_err(cut)? != MAGIC {
        return Err(fault("it does not begin with a zstd frame"));
    }
    let descriptor = reader.u8().map_err(cut)?;
    let single_segment = descriptor & 0x20 != 0;
    if descriptor & 0x18 != 0 {
        return Err(fault("the zstd frame has reserved bits set"));
    }
    if descriptor & 0x04 != 0 {
        return Err(fault("the zstd frame has a checksum"));
    }
    if descriptor & 0x03 != 0 {
        return Err(fault("the zstd frame needs a dictionary"));
    }
    let window = if single_segment { None } else { Some(window_len(reader.u8().map_err(cut)?)) };
    let content = match (descriptor >> 6, single_segment) {
        (0, false) => return Err(fault("the zstd frame does not state its content size")),
        (0, true) => u64::from(reader.u8().map_err(cut)?),
        (1, _) => u64::from(reader.u16().map_err(cut)?) + 256,
        (2, _) => u64::from(reader.u32().map_err(cut)?),
        _ => reader.u64().map_err(cut)?,
    };
    if content != len {
        return Err(fault("the zstd frame states another content size than was declared"));
    }
    if window.unwrap_or(content) > 1 << window_log {
        return Err(fault("the zstd frame needs a larger window than was declared"));
    }
    let block_max = window.unwrap_or(content).min(BLOCK_MAX);
    loop {
        let [low, mid, high] = reader.array().map_err(cut)?;
        let header = u32::from_le_bytes([low, mid, high, 0]);
        let size = header >> 3;
        let block = match (header >> 1) & 3 {
            1 => 1,
            3 => return Err(fault("the zstd frame has a block of a reserved type")),
            _ => num::at(size),
        };
        // Decoders disagree about larger blocks.
        if u64::from(size) > block_max {
            return Err(fault("the zstd frame has a block of too many bytes"));
        }
        reader.take(block).map_err(cut)?;
        if header & 1 == 1 {
            break;
        }
    }
    if reader.rest().is_empty() {
        return Ok(());
    }
    Err(fault("bytes follow the zstd frame"))
}

/// The same for a frame that was made with a prefix (core 8.1): its window must not be larger than its content.
///
/// # Errors
/// Returns an error if it does not conform to core 8.1; the error is about `part`.
pub fn check_frame_with_prefix(part: Part, stored: &[u8], len: u64, window_log: u8) -> Result<(), Error> {
    check_frame(part, stored, len, window_log)?;
    match frame_window(stored) {
        Some(window) if window <= len => Ok(()),
        _ => Err(Error::Frame { part, what: "the window of the zstd frame passes its content" }),
    }
}

fn window_len(descriptor: u8) -> u64 {
    let base = 1_u64 << (10 + (descriptor >> 3));
    base + base / 8 * u64::from(descriptor & 7)
}

/// Decodes frames. Reuses its tables.
pub struct FrameDecoder {
    #[cfg(not(target_arch = "wasm32"))]
    context: zstd_safe::DCtx<'static>,
    #[cfg(target_arch = "wasm32")]
    context: zstd_rs::Decompressor,
}

impl Default for FrameDecoder {
    fn default() -> Self {
        Self::new()
    }
}

impl core::fmt::Debug for FrameDecoder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("FrameDecoder").finish_non_exhaustive()
    }
}

impl FrameDecoder {
    /// Returns a new decoder.
    #[must_use]
    pub fn new() -> Self {
        Self {
            #[cfg(not(target_arch = "wasm32"))]
            context: zstd_safe::DCtx::create(),
            #[cfg(target_arch = "wasm32")]
            context: zstd_rs::Decompressor::new(),
        }
    }

    /// Checks the frame as [`check_frame`] does, and decodes it into the first `len` bytes of `out`, which grows if necessary.
    /// `stored` must have matched its digest.
    ///
    /// # Errors
    /// Returns an error if the frame does not conform to core 8.1, or does not decode to `len` bytes.
    pub fn decode(
        &mut self,
        part: Part,
        stored: &[u8],
        len: u64,
        window_log: u8,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        self.decode_with(part, stored, len, window_log, &[], out)
    }

    /// The same for a frame that was made with a prefix (delta 7), which may be empty.
    ///
    /// # Errors
    /// Returns the errors of [`Self::decode`].
    pub fn decode_with(
        &mut self,
        part: Part,
        stored: &[u8],
        len: u64,
        window_log: u8,
        prefix: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        match prefix {
            [] => check_frame(part, stored, len, window_log)?,
            _ => check_frame_with_prefix(part, stored, len, window_log)?,
        }
        let room = usize::try_from(len).map_err(|_| Error::Limit {
            what: "a decoded length",
            declared: len,
            limit: wide(usize::MAX),
        })?;
        let decoded = match prefix {
            [] => self.run(stored, room, out),
            _ => Self::run_with(stored, prefix, room, out),
        };
        if decoded != Some(room) {
            return Err(Error::Frame { part, what: "the zstd frame is corrupt" });
        }
        Ok(())
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn run(&mut self, stored: &[u8], room: usize, out: &mut Vec<u8>) -> Option<usize> {
        self.context.decompress(lengthened(out, room), stored).ok()
    }

    /// Decodes a frame with a prefix. A context borrows its prefix as long as it lives, so this one is used for one frame only.
    #[cfg(not(target_arch = "wasm32"))]
    fn run_with(stored: &[u8], prefix: &[u8], room: usize, out: &mut Vec<u8>) -> Option<usize> {
        let mut context = zstd_safe::DCtx::create();
        context.ref_prefix(prefix).ok()?;
        context.decompress(lengthened(out, room), stored).ok()
    }

    /// Decodes a frame with a prefix, which this decoder takes as a raw dictionary.
    #[cfg(target_arch = "wasm32")]
    fn run_with(stored: &[u8], prefix: &[u8], room: usize, out: &mut Vec<u8>) -> Option<usize> {
        let prefix = zstd_rs::Dictionary::new(prefix, zstd_rs::DictionaryFormat::Raw { id: 0 }).ok()?;
        let prefix = zstd_rs::DecoderDictionary::new(prefix).ok()?;
        out.clear();
        out.reserve_exact(room.checked_add(256)?);
        zstd_rs::Decompressor::new().decompress(stored, Some(&prefix), room, out).ok()
    }

    #[cfg(target_arch = "wasm32")]
    fn run(&mut self, stored: &[u8], room: usize, out: &mut Vec<u8>) -> Option<usize> {
        out.clear();
        // It writes a little beyond the end. Without this room it would allocate twice the memory.
        out.reserve_exact(room.checked_add(256)?);
        self.context.decompress(stored, None, room, out).ok()
    }
}

/// Returns the first `room` bytes of `out`, which is lengthened with zeros if necessary.
#[cfg(not(target_arch = "wasm32"))]
fn lengthened(out: &mut Vec<u8>, room: usize) -> &mut [u8] {
    if out.len() < room {
        out.resize(room, 0);
    }
    &mut out[..room]
}
