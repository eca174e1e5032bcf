//! liblzma, whose output for given parameters is the same since 5.4 (recipes 5).
#![allow(
    unsafe_code,
    reason = "no encoder in Rust makes the bytes of liblzma, and no safe layer offers its calls for one buffer"
)]

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;

use liblzma_sys::{
    LZMA_BUF_ERROR, LZMA_FILTER_LZMA2, LZMA_OK, LZMA_PRESET_EXTREME, LZMA_VLI_UNKNOWN, lzma_filter, lzma_lzma_preset,
    lzma_options_lzma, lzma_raw_buffer_encode, lzma_stream_buffer_encode,
};
use sealift_format::Xz;

use crate::Error;

/// Returns what `lzma_stream_buffer_encode` makes of `bytes`, or `lzma_raw_buffer_encode` if no check is stated; `None` if that is longer than
/// `len` bytes.
///
/// # Errors
/// Returns an error if there is not enough memory.
pub(super) fn encode(parameters: &Xz, bytes: &[u8], len: usize) -> Result<Option<Vec<u8>>, Error> {
    let mut options = options(parameters)?;
    let mut filters = filters(parameters, &mut options);
    let (mut out, mut written): (Vec<u8>, usize) = (Vec::with_capacity(len), 0);
    // SAFETY: the filters end with LZMA_VLI_UNKNOWN, and their options outlive the call. It reads bytes.len() bytes, writes at most `len`, which is the
    // capacity, and counts those that it wrote. A null allocator is malloc.
    let ended = unsafe {
        let (input, input_len, to) = (bytes.as_ptr(), bytes.len(), out.as_mut_ptr());
        match parameters.check {
            Some(check) => lzma_stream_buffer_encode(
                filters.as_mut_ptr(),
                check.into(),
                ptr::null(),
                input,
                input_len,
                to,
                &raw mut written,
                len,
            ),
            None => lzma_raw_buffer_encode(filters.as_ptr(), ptr::null(), input, input_len, to, &raw mut written, len),
        }
    };
    match ended {
        LZMA_OK => {
            // SAFETY: so many bytes were written.
            unsafe { out.set_len(written.min(len)) };
            Ok(Some(out))
        }
        LZMA_BUF_ERROR => Ok(None),
        error => Err(Error::Usage(format!("liblzma does not encode with these parameters (error {error})"))),
    }
}

/// Returns the filters of these parameters, which refer to `options`.
fn filters(parameters: &Xz, options: &mut lzma_options_lzma) -> Vec<lzma_filter> {
    let mut filters = Vec::with_capacity(3);
    if parameters.filter != 0 {
        filters.push(lzma_filter { id: parameters.filter.into(), options: ptr::null_mut() });
    }
    let options: *mut lzma_options_lzma = options;
    filters.push(lzma_filter { id: LZMA_FILTER_LZMA2, options: options.cast::<c_void>() });
    filters.push(lzma_filter { id: LZMA_VLI_UNKNOWN, options: ptr::null_mut() });
    filters
}

fn options(parameters: &Xz) -> Result<lzma_options_lzma, Error> {
    let preset = u32::from(parameters.preset) | if parameters.is_extreme { LZMA_PRESET_EXTREME } else { 0 };
    let mut options = MaybeUninit::<lzma_options_lzma>::zeroed();
    // SAFETY: zeros are valid for all its fields, and the call only writes to it.
    let (failed, mut options) = unsafe { (lzma_lzma_preset(options.as_mut_ptr(), preset), options.assume_init()) };
    if failed != 0 {
        return Err(Error::Usage(format!("liblzma has no preset {}", parameters.preset)));
    }
    (options.dict_size, options.lc) = (parameters.dictionary_len, parameters.lc.into());
    (options.lp, options.pb) = (parameters.lp.into(), parameters.pb.into());
    Ok(options)
}

#[cfg(test)]
mod tests {
    use sealift_format::Coder;

    use super::*;

    /// The slack of the declared memory, in bytes.
    const SLACK: u64 = 2 << 20;

    #[test]
    fn the_declared_memory_is_what_liblzma_takes() {
        for preset in 0..=9 {
            for (is_extreme, dictionary_len) in [false, true]
                .into_iter()
                .flat_map(|is| [1 << 12, 5000, 1 << 17, 3 << 20, 1 << 25, 1 << 26].map(|len| (is, len)))
            {
                let xz = Xz { preset, is_extreme, dictionary_len, lc: 3, lp: 0, pb: 2, filter: 0, check: Some(1) };
                let mut options = options(&xz).expect("there is such a preset");
                let filters = filters(&xz, &mut options);
                // SAFETY: the filters end with LZMA_VLI_UNKNOWN, and their options outlive the call.
                let taken = unsafe { liblzma_sys::lzma_raw_encoder_memusage(filters.as_ptr()) };
                let declared = Coder::Xz(xz).memory(0);
                assert!((taken..taken + SLACK).contains(&declared), "{xz:?}: {declared}, {taken}");
            }
        }
    }
}
