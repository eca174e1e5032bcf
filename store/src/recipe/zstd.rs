//! libzstd in three versions, since other versions make other frames (recipes 5).
#![allow(unsafe_code, reason = "zstd-safe offers one version, and here are three behind the same calls")]

use std::ffi::{c_int, c_uint, c_ulonglong, c_void};

use sealift_format::num::wide;
use sealift_format::{Zstd, ZstdStream};
// They are linked for what is declared below.
use zstd_older as _;
use zstd_safe as _;

use crate::Error;

/// Bytes that are passed at once, as the programs of zstd do (`ZSTD_CStreamInSize`).
const PORTION: usize = 1 << 17;

// zstd.h: `ZSTD_cParameter` and `ZSTD_EndDirective`.
const LEVEL: c_int = 100;
const WINDOW_LOG: c_int = 101;
const LONG: c_int = 160;
const CHECKSUM: c_int = 201;
const WORKERS: c_int = 400;
/// `ZSTD_c_blockSplitterLevel`, of 1.5.7.
const SPLITTER: c_int = 1017;
/// Blocks are not split.
const UNSPLIT: c_int = 1;
const CONTINUE: c_int = 0;
const END: c_int = 2;

/// zstd.h: `ZSTD_inBuffer`.
#[repr(C)]
struct Input {
    bytes: *const c_void,
    len: usize,
    taken: usize,
}

/// zstd.h: `ZSTD_outBuffer`.
#[repr(C)]
struct Output {
    bytes: *mut c_void,
    len: usize,
    written: usize,
}

type Context = *mut c_void;

/// The calls of a version (zstd.h).
struct Library {
    create: unsafe extern "C" fn() -> Context,
    free: unsafe extern "C" fn(Context) -> usize,
    set: unsafe extern "C" fn(Context, c_int, c_int) -> usize,
    pledge: unsafe extern "C" fn(Context, c_ulonglong) -> usize,
    stream: unsafe extern "C" fn(Context, *mut Output, *mut Input, c_int) -> usize,
    one: unsafe extern "C" fn(Context, *mut c_void, usize, *const c_void, usize, c_int) -> usize,
    #[cfg(test)]
    taken: unsafe extern "C" fn(Context) -> usize,
}

unsafe extern "C" {
    #[link_name = "ZSTD_createCCtx"]
    fn create_157() -> Context;
    #[link_name = "ZSTD_freeCCtx"]
    fn free_157(context: Context) -> usize;
    #[link_name = "ZSTD_CCtx_setParameter"]
    fn set_157(context: Context, parameter: c_int, value: c_int) -> usize;
    #[link_name = "ZSTD_CCtx_setPledgedSrcSize"]
    fn pledge_157(context: Context, len: c_ulonglong) -> usize;
    #[link_name = "ZSTD_compressStream2"]
    fn stream_157(context: Context, to: *mut Output, from: *mut Input, then: c_int) -> usize;
    #[link_name = "ZSTD_compressCCtx"]
    fn one_157(context: Context, to: *mut c_void, room: usize, from: *const c_void, len: usize, level: c_int) -> usize;
    /// The same in all versions.
    #[link_name = "ZSTD_isError"]
    fn is_error(code: usize) -> c_uint;
    #[cfg(test)]
    #[link_name = "ZSTD_sizeof_CCtx"]
    fn taken_157(context: Context) -> usize;
}

/// As zstd-safe links it.
const V1_5_7: Library = Library {
    create: create_157,
    free: free_157,
    set: set_157,
    pledge: pledge_157,
    stream: stream_157,
    one: one_157,
    #[cfg(test)]
    taken: taken_157,
};

unsafe extern "C" {
    #[link_name = "sealift_zstd_1_5_5_ZSTD_createCCtx"]
    fn create_155() -> Context;
    #[link_name = "sealift_zstd_1_5_5_ZSTD_freeCCtx"]
    fn free_155(context: Context) -> usize;
    #[link_name = "sealift_zstd_1_5_5_ZSTD_CCtx_setParameter"]
    fn set_155(context: Context, parameter: c_int, value: c_int) -> usize;
    #[link_name = "sealift_zstd_1_5_5_ZSTD_CCtx_setPledgedSrcSize"]
    fn pledge_155(context: Context, len: c_ulonglong) -> usize;
    #[link_name = "sealift_zstd_1_5_5_ZSTD_compressStream2"]
    fn stream_155(context: Context, to: *mut Output, from: *mut Input, then: c_int) -> usize;
    #[link_name = "sealift_zstd_1_5_5_ZSTD_compressCCtx"]
    fn one_155(context: Context, to: *mut c_void, room: usize, from: *const c_void, len: usize, level: c_int) -> usize;
    #[cfg(test)]
    #[link_name = "sealift_zstd_1_5_5_ZSTD_sizeof_CCtx"]
    fn taken_155(context: Context) -> usize;
}

/// As zstd-older links it.
const V1_5_5: Library = Library {
    create: create_155,
    free: free_155,
    set: set_155,
    pledge: pledge_155,
    stream: stream_155,
    one: one_155,
    #[cfg(test)]
    taken: taken_155,
};

unsafe extern "C" {
    #[link_name = "sealift_zstd_1_5_4_ZSTD_createCCtx"]
    fn create_154() -> Context;
    #[link_name = "sealift_zstd_1_5_4_ZSTD_freeCCtx"]
    fn free_154(context: Context) -> usize;
    #[link_name = "sealift_zstd_1_5_4_ZSTD_CCtx_setParameter"]
    fn set_154(context: Context, parameter: c_int, value: c_int) -> usize;
    #[link_name = "sealift_zstd_1_5_4_ZSTD_CCtx_setPledgedSrcSize"]
    fn pledge_154(context: Context, len: c_ulonglong) -> usize;
    #[link_name = "sealift_zstd_1_5_4_ZSTD_compressStream2"]
    fn stream_154(context: Context, to: *mut Output, from: *mut Input, then: c_int) -> usize;
    #[link_name = "sealift_zstd_1_5_4_ZSTD_compressCCtx"]
    fn one_154(context: Context, to: *mut c_void, room: usize, from: *const c_void, len: usize, level: c_int) -> usize;
    #[cfg(test)]
    #[link_name = "sealift_zstd_1_5_4_ZSTD_sizeof_CCtx"]
    fn taken_154(context: Context) -> usize;
}

/// As zstd-older links it.
const V1_5_4: Library = Library {
    create: create_154,
    free: free_154,
    set: set_154,
    pledge: pledge_154,
    stream: stream_154,
    one: one_154,
    #[cfg(test)]
    taken: taken_154,
};

/// A context that is freed when it goes out of scope.
struct Encoder {
    library: &'static Library,
    context: Context,
}

impl Drop for Encoder {
    fn drop(&mut self) {
        // SAFETY: the library made it, and nothing else has it.
        unsafe { (self.library.free)(self.context) };
    }
}

impl Encoder {
    fn new(library: &'static Library) -> Result<Self, Error> {
        // SAFETY: the call has no conditions.
        let context = unsafe { (library.create)() };
        if context.is_null() {
            return Err(Error::Usage("libzstd does not begin: there is not enough memory".into()));
        }
        Ok(Self { library, context })
    }

    fn check(code: usize) -> Result<usize, Error> {
        // SAFETY: the call has no conditions.
        match unsafe { is_error(code) } {
            0 => Ok(code),
            _ => {
                Err(Error::Usage("libzstd does not encode with these parameters, or there is not enough memory".into()))
            }
        }
    }

    fn set(&self, parameter: c_int, value: c_int) -> Result<(), Error> {
        // SAFETY: the context is valid, and the library checks numbers and values.
        Self::check(unsafe { (self.library.set)(self.context, parameter, value) })?;
        Ok(())
    }

    /// Returns what one call makes of `bytes`.
    fn one(&self, level: i8, bytes: &[u8]) -> Result<Vec<u8>, Error> {
        // ZSTD_COMPRESSBOUND, or a little more.
        let room = bytes.len() + bytes.len() / 256 + (1 << 10);
        let mut out: Vec<u8> = Vec::with_capacity(room);
        let (to, from) = (out.as_mut_ptr().cast::<c_void>(), bytes.as_ptr().cast::<c_void>());
        // SAFETY: the call reads `bytes`, writes at most `room` bytes, which is the capacity, and returns how many it wrote.
        unsafe {
            let written = (self.library.one)(self.context, to, room, from, bytes.len(), level.into());
            out.set_len(Self::check(written)?.min(room));
        }
        Ok(out)
    }

    /// Returns what a stream makes of `bytes`; `None` if that is longer than `len` bytes.
    fn stream(&self, level: i8, stream: &ZstdStream, bytes: &[u8], len: usize) -> Result<Option<Vec<u8>>, Error> {
        self.set(LEVEL, level.into())?;
        self.set(CHECKSUM, stream.is_checked.into())?;
        self.set(LONG, stream.is_long.into())?;
        self.set(WINDOW_LOG, stream.window_log.into())?;
        self.set(WORKERS, stream.has_worker.into())?;
        if stream.is_unsplit {
            self.set(SPLITTER, UNSPLIT)?;
        }
        if stream.is_pledged {
            // SAFETY: the context is valid.
            Self::check(unsafe { (self.library.pledge)(self.context, wide(bytes.len())) })?;
        }
        // Room for one byte more, so that all of a stream that has none left is flushed.
        let room = len.saturating_add(1);
        let mut out: Vec<u8> = Vec::with_capacity(room);
        let mut output = Output { bytes: out.as_mut_ptr().cast(), len: room, written: 0 };
        let mut portions = bytes.chunks(PORTION).peekable();
        loop {
            let portion = portions.next().unwrap_or_default();
            // Who knows the length ends with the last portion, and who does not with nothing.
            let is_last = portion.is_empty() || stream.is_pledged && portions.peek().is_none();
            let mut input = Input { bytes: portion.as_ptr().cast(), len: portion.len(), taken: 0 };
            loop {
                let then = if is_last { END } else { CONTINUE };
                // SAFETY: the call reads the portion and writes at most to the end of the capacity; both buffers outlive it.
                let left = unsafe { (self.library.stream)(self.context, &raw mut output, &raw mut input, then) };
                let left = Self::check(left)?;
                if if is_last { left == 0 } else { input.taken == input.len } {
                    break;
                }
                if output.written >= room {
                    return Ok(None);
                }
            }
            if is_last {
                break;
            }
        }
        // SAFETY: so many bytes were written.
        unsafe { out.set_len(output.written.min(room)) };
        Ok(Some(out))
    }
}

/// Which version of libzstd encodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V1_5_4,
    V1_5_5,
    V1_5_7,
}

/// Returns what libzstd makes of `bytes`; `None` if that is longer than `len` bytes.
///
/// # Errors
/// Returns an error if there is not enough memory.
pub(super) fn encode(version: Version, parameters: &Zstd, bytes: &[u8], len: usize) -> Result<Option<Vec<u8>>, Error> {
    let encoder = Encoder::new(match version {
        Version::V1_5_4 => &V1_5_4,
        Version::V1_5_5 => &V1_5_5,
        Version::V1_5_7 => &V1_5_7,
    })?;
    let made = match &parameters.stream {
        None => Some(encoder.one(parameters.level, bytes)?),
        Some(stream) => encoder.stream(parameters.level, stream, bytes, len)?,
    };
    Ok(made.filter(|made| made.len() <= len))
}

#[cfg(test)]
mod tests {
    use sealift_format::Coder;

    use super::*;

    #[test]
    #[allow(clippy::unwrap_used, reason = "tests")]
    fn the_memory_is_at_most_what_is_declared() {
        let plain: Vec<u8> = (0_u32..300_000).flat_map(|n| (n / 7).to_le_bytes()).collect();
        let of = |is_pledged, has_worker, is_long, window_log| {
            Some(ZstdStream { is_pledged, is_checked: true, has_worker, is_long, is_unsplit: false, window_log })
        };
        let streams = [
            None,
            of(true, false, false, 0),
            of(false, false, false, 0),
            of(true, true, false, 0),
            of(false, true, false, 0),
            of(false, false, true, 24),
            of(true, true, true, 25),
        ];
        for (version, library) in [(Version::V1_5_4, &V1_5_4), (Version::V1_5_5, &V1_5_5), (Version::V1_5_7, &V1_5_7)] {
            for level in [-5, 3, 9, 16, 19, 22] {
                for (stream, len) in
                    streams.iter().flat_map(|stream| [100, 131_072, 1_200_000].map(|len| (stream, len)))
                {
                    if level == 22 && stream.is_some_and(|stream| stream.has_worker && !stream.is_pledged) {
                        // It takes more than any reader grants.
                        continue;
                    }
                    let (bytes, encoder) = (&plain[..len], Encoder::new(library).unwrap());
                    let zstd = Zstd { level, stream: *stream };
                    let beside = match stream {
                        None => encoder.one(level, bytes).unwrap().capacity(),
                        Some(stream) => encoder.stream(level, stream, bytes, len + 1000).map(|_| 0).unwrap(),
                    };
                    // SAFETY: the context is valid.
                    let taken = wide(unsafe { (library.taken)(encoder.context) } + beside);
                    let declared = Coder::Zstd157(zstd).memory(wide(len));
                    assert!(taken <= declared, "{version:?} {zstd:?} {len}: {taken} of {declared}");
                }
            }
        }
    }

    /// Words of small and large vocabularies, and noise.
    fn text(len: usize) -> Vec<u8> {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state
        };
        let mut out = Vec::new();
        while out.len() < len {
            let drawn = next() >> 33;
            if drawn % 50 == 0 {
                out.extend((0..40).map(|_| next().to_le_bytes()[7]));
            } else {
                let word = drawn / 50 % if drawn % 3 == 0 { 30_000 } else { 300 };
                out.extend(format!("{:x} ", word * word * 2_654_435_761 % (1 << 32)).into_bytes());
            }
        }
        out.truncate(len);
        out
    }

    #[test]
    #[allow(clippy::unwrap_used, reason = "tests")]
    fn frames_are_those_of_the_released_versions() {
        let mut plain = text(300_000);
        let others: Vec<u8> = plain.iter().map(|byte| byte ^ 0x80).collect();
        plain.extend(others);
        let unsplit = ZstdStream {
            is_pledged: true,
            is_checked: false,
            has_worker: false,
            is_long: false,
            is_unsplit: true,
            window_log: 0,
        };
        // The first bytes of the BLAKE3 hashes of frames by the libraries themselves: 1.5.4 of Debian 12, 1.5.6 in zstandard 0.23 (PyPI).
        let rows = [
            (Version::V1_5_4, 5, None, "f18261f186fef470"),
            (Version::V1_5_4, 7, None, "fa56326f96ee4ca7"),
            (Version::V1_5_4, 9, None, "97d40545487d14a3"),
            (Version::V1_5_4, 12, None, "411c00ecc6db6d57"),
            (Version::V1_5_4, 19, None, "dcee3e750ce8fc94"),
            (Version::V1_5_5, 5, None, "82894e05df4483a6"),
            (Version::V1_5_5, 9, None, "e3b8780f1c77a248"),
            (Version::V1_5_5, 19, None, "dcee3e750ce8fc94"),
            (Version::V1_5_7, 9, Some(unsplit), "e3b8780f1c77a248"),
            (Version::V1_5_7, 19, Some(unsplit), "6652fcc685420a1b"),
            (Version::V1_5_7, 9, None, "16f8a8e7b9a48808"),
            (Version::V1_5_7, 19, None, "cfcf0c1bc190b58b"),
        ];
        for (version, level, stream, wanted) in rows {
            let made = encode(version, &Zstd { level, stream }, &plain, plain.len()).unwrap().unwrap();
            assert_eq!(blake3::hash(&made).to_hex()[..16], *wanted, "{version:?} {level}");
        }
    }
}
