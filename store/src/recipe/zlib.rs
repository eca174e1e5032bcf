//! zlib as its authors publish it, whose output for given parameters is the same since 1.2.11 (recipes 5).
#![allow(
    unsafe_code,
    reason = "flate2 offers neither memLevel nor strategy, and its default implementations give other output"
)]

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr;

use libz_sys::{Z_DEFLATED, Z_FINISH, Z_OK, Z_STREAM_END, deflate, deflateEnd, deflateInit2_, z_stream, zlibVersion};
use sealift_format::Zlib;

use crate::Error;

/// Returns what `deflate` makes of `bytes`; `None` if that is longer than `len` bytes.
///
/// # Errors
/// Returns an error if there is not enough memory.
pub(super) fn encode(parameters: &Zlib, bytes: &[u8], len: usize) -> Result<Option<Vec<u8>>, Error> {
    // deflate ends a raw stream only in a call that leaves room.
    let room = len.saturating_add(1);
    let (Ok(avail_in), Ok(avail_out)) = (bytes.len().try_into(), room.try_into()) else { return Ok(None) };
    let bits = c_int::from(parameters.window_bits) * if parameters.is_raw { -1 } else { 1 };
    let mut out: Vec<u8> = Vec::with_capacity(room);
    let mut stream = MaybeUninit::<z_stream>::zeroed();
    let stream = stream.as_mut_ptr();
    // SAFETY: a zeroed z_stream is what deflateInit2_ expects: null allocators are zlib's own. Its size is passed, and the version of the library itself.
    let begun = unsafe {
        deflateInit2_(
            stream,
            parameters.level.into(),
            Z_DEFLATED,
            bits,
            parameters.mem_level.into(),
            parameters.strategy.into(),
            zlibVersion(),
            c_int::try_from(size_of::<z_stream>()).unwrap_or_default(),
        )
    };
    if begun != Z_OK {
        return Err(Error::Usage(format!("zlib does not begin with these parameters (error {begun})")));
    }
    // SAFETY: the stream was initialised. Input and output outlive the calls, and zlib only reads the former and writes at most avail_out bytes to
    // the latter; total_out says how many.
    unsafe {
        (*stream).next_in = bytes.as_ptr().cast_mut();
        (*stream).avail_in = avail_in;
        (*stream).next_out = out.as_mut_ptr();
        (*stream).avail_out = avail_out;
        let ended = deflate(stream, Z_FINISH);
        let written = room - usize::try_from((*stream).avail_out).unwrap_or(room);
        (*stream).next_in = ptr::null_mut();
        deflateEnd(stream);
        if ended != Z_STREAM_END || written > len {
            return Ok(None);
        }
        out.set_len(written);
    }
    Ok(Some(out))
}
