//! Functions of nbdkit that the plugin calls; `nbdkit-common.h` declares them.
#![allow(unsafe_code, reason = "they are written in C")]

use std::ffi::{CString, c_char, c_int};

use sealift::escape;

unsafe extern "C" {
    fn nbdkit_error(format: *const c_char, ...);
    fn nbdkit_debug(format: *const c_char, ...);
    fn nbdkit_parse_bool(text: *const c_char) -> c_int;
    fn nbdkit_parse_size(text: *const c_char) -> i64;
}

/// Writes a line to nbdkit's errors: to standard error, or to the system log if nbdkit runs in the background.
pub(crate) fn tell(line: &str) {
    // SAFETY: the format takes one string, which lasts as long as the call.
    unsafe { nbdkit_error(c"%s".as_ptr(), text(&escape::text(line)).as_ptr()) };
}

/// Writes a debug message, which nbdkit shows with `--verbose`.
pub(crate) fn note(line: &str) {
    // SAFETY: as above.
    unsafe { nbdkit_debug(c"%s".as_ptr(), text(&escape::text(line)).as_ptr()) };
}

/// Parses a boolean like other parameters of nbdkit, which reports the error.
pub(crate) fn parse_bool(value: &str) -> Option<bool> {
    // SAFETY: the argument is a C string, which lasts as long as the call.
    match unsafe { nbdkit_parse_bool(text(value).as_ptr()) } {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// Parses a size, such as 64M, like other parameters of nbdkit, which reports the error.
pub(crate) fn parse_size(value: &str) -> Option<u64> {
    // SAFETY: the argument is a C string, which lasts as long as the call.
    u64::try_from(unsafe { nbdkit_parse_size(text(value).as_ptr()) }).ok()
}

/// Returns a C string, which ends at the first zero byte.
fn text(line: &str) -> CString {
    let line = line.split('\0').next().unwrap_or_default();
    CString::new(line).unwrap_or_default()
}
