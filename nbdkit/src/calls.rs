//! The functions of nbdkit that the plugin calls at any time; `nbdkit-common.h` declares them.
#![allow(unsafe_code, reason = "they are in C")]

use std::ffi::{CString, c_char, c_int};

use sealift_verify::escape;

unsafe extern "C" {
    fn nbdkit_error(format: *const c_char, ...);
    fn nbdkit_debug(format: *const c_char, ...);
    fn nbdkit_parse_bool(text: *const c_char) -> c_int;
    fn nbdkit_parse_size(text: *const c_char) -> i64;
}

/// Writes a line where nbdkit writes errors: standard error, or the system's log if it is in the background.
pub(crate) fn tell(line: &str) {
    // SAFETY: the format takes one string, which lasts as long as the call.
    unsafe { nbdkit_error(c"%s".as_ptr(), text(&escape::text(line)).as_ptr()) };
}

/// Writes a line if nbdkit is verbose.
pub(crate) fn note(line: &str) {
    // SAFETY: as above.
    unsafe { nbdkit_debug(c"%s".as_ptr(), text(&escape::text(line)).as_ptr()) };
}

/// Parses a truth value as nbdkit does everywhere; nbdkit tells the error.
pub(crate) fn parse_bool(value: &str) -> Option<bool> {
    // SAFETY: it takes a string.
    match unsafe { nbdkit_parse_bool(text(value).as_ptr()) } {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// Parses a size, such as 64M, as nbdkit does everywhere; nbdkit tells the error.
pub(crate) fn parse_size(value: &str) -> Option<u64> {
    // SAFETY: it takes a string.
    u64::try_from(unsafe { nbdkit_parse_size(text(value).as_ptr()) }).ok()
}

/// Returns a C string, which ends at the first zero byte.
fn text(line: &str) -> CString {
    let line = line.split('\0').next().unwrap_or_default();
    CString::new(line).unwrap_or_default()
}
