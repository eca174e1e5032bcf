//! liblz4, whose output for given parameters is the same since 1.9.4 (recipes 5).
#![allow(
    unsafe_code,
    reason = "no encoder in Rust makes the bytes of liblz4, and no safe layer offers its calls that fill their output"
)]

use std::borrow::Cow;
use std::ffi::{c_char, c_int, c_void};

use lz4_sys::{LZ4_compress_HC, LZ4_compress_fast};
use sealift_format::num::size;
use sealift_format::{Filled, Lz4};

use crate::Error;

// lz4-sys compiles these, and does not declare them (lz4.h, lz4hc.h).
unsafe extern "C" {
    fn LZ4_compress_destSize(source: *const c_char, to: *mut c_char, source_len: *mut c_int, room: c_int) -> c_int;
    fn LZ4_compress_HC_destSize(
        state: *mut c_void,
        source: *const c_char,
        to: *mut c_char,
        source_len: *mut c_int,
        room: c_int,
        level: c_int,
    ) -> c_int;
    fn LZ4_sizeofStateHC() -> c_int;
}

/// The compressor without levels hashes as many bytes as fit a register, in their order there.
pub(super) const IS_USUAL: bool = cfg!(all(target_pointer_width = "64", target_endian = "little"));

/// Returns what liblz4 makes of `bytes`; `None` if that is longer than `len` bytes.
///
/// # Errors
/// Returns an error if this machine's liblz4 gives other output than most.
pub(super) fn encode(parameters: &Lz4, bytes: &[u8], len: usize) -> Result<Option<Vec<u8>>, Error> {
    if !parameters.is_high && !IS_USUAL {
        return Err(Error::Usage(
            "this machine cannot make objects that need lz4: it has another word length or byte order".into(),
        ));
    }
    let padded = match parameters.filled {
        Some(Filled { is_padded: true, .. }) => Cow::Owned([bytes, &vec![0; size(Lz4::PADDING_LEN.into())]].concat()),
        _ => Cow::Borrowed(bytes),
    };
    let room = match parameters.filled {
        Some(filled) => usize::try_from(filled.room).ok(),
        // With less, it gives up on output that would fit.
        None => padded.len().checked_add(padded.len() / 255 + 16),
    };
    let lens = room.and_then(|room| Some((room, c_int::try_from(padded.len()).ok()?, c_int::try_from(room).ok()?)));
    let Some((room, mut source_len, limit)) = lens else { return Ok(None) };
    let (mut out, level): (Vec<u8>, c_int) = (Vec::with_capacity(room), parameters.level.into());
    let (source, to) = (padded.as_ptr().cast::<c_char>(), out.as_mut_ptr().cast::<c_char>());
    // SAFETY: the calls read at most source_len bytes, write at most `limit`, which is the capacity, and return how many they wrote. The state has the
    // length that is asked for, and the alignment of numbers of 8 bytes.
    let written = unsafe {
        match (parameters.filled.is_some(), parameters.is_high) {
            (false, false) => LZ4_compress_fast(source, to, source_len, limit, level),
            (false, true) => LZ4_compress_HC(source, to, source_len, limit, level),
            (true, false) => LZ4_compress_destSize(source, to, &raw mut source_len, limit),
            (true, true) => {
                let state_len = usize::try_from(LZ4_sizeofStateHC()).unwrap_or_default();
                let mut state = vec![0_u64; state_len.div_ceil(8)];
                let state = state.as_mut_ptr().cast::<c_void>();
                LZ4_compress_HC_destSize(state, source, to, &raw mut source_len, limit, level)
            }
        }
    };
    let written = usize::try_from(written).ok().filter(|written| (1..=len.min(room)).contains(written));
    Ok(written.map(|written| {
        // SAFETY: so many bytes were written.
        unsafe { out.set_len(written) };
        out
    }))
}
