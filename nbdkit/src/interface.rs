//! nbdkit's plugin interface, version 2, as declared in `nbdkit-plugin.h` and `nbdkit-common.h` of nbdkit 1.32 and described in nbdkit-plugin(3): the
//! structure, and the functions in it, which call safe ones.
//!
//! nbdkit keeps this interface compatible: fields are only added at the end of the structure, and its size tells how many there are. The crate
//! `nbdkit` declares it too, but lacks `block_size`, needs a second version of bitflags, and has had no release since 2023.
#![allow(unsafe_code, reason = "the interface is written in C")]

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::ptr;

use rustix::io::Errno;

use crate::calls::tell;
use crate::parameters::HELP;
use crate::plugin;

/// `NBDKIT_API_VERSION`.
const API_VERSION: c_int = 2;
/// `NBDKIT_THREAD_MODEL_PARALLEL`: nbdkit may call any function at any time from any thread.
const THREAD_MODEL_PARALLEL: c_int = 3;
/// `NBDKIT_CACHE_EMULATE`: nbdkit reads what a client asks to cache, which brings it into our cache.
const CACHE_EMULATE: c_int = 1;
/// `NBDKIT_FLAG_REQ_ONE`: the client wants one extent only.
const FLAG_REQ_ONE: u32 = 1 << 2;
/// `NBDKIT_EXTENT_HOLE | NBDKIT_EXTENT_ZERO`.
const EXTENT_HOLE: u32 = 1 << 0 | 1 << 1;

/// The length of a page of the cache in bytes: smaller reads cost as much.
const PREFERRED_LEN: u32 = 64 << 10;

/// `struct nbdkit_extents`.
#[repr(C)]
struct Extents {
    _opaque: [u8; 0],
}

unsafe extern "C" {
    fn nbdkit_set_error(error: c_int);
    fn nbdkit_add_extent(extents: *mut Extents, offset: u64, length: u64, kind: u32) -> c_int;
}

type Ask = extern "C" fn(*mut c_void) -> c_int;
type Old = extern "C" fn();

/// `struct nbdkit_plugin`.
#[repr(C)]
struct Plugin {
    struct_size: u64,
    api_version: c_int,
    thread_model: c_int,
    name: *const c_char,
    longname: *const c_char,
    version: *const c_char,
    description: *const c_char,
    load: Option<extern "C" fn()>,
    unload: Option<extern "C" fn()>,
    config: Option<unsafe extern "C" fn(*const c_char, *const c_char) -> c_int>,
    config_complete: Option<extern "C" fn() -> c_int>,
    config_help: *const c_char,
    open: Option<extern "C" fn(c_int) -> *mut c_void>,
    close: Option<extern "C" fn(*mut c_void)>,
    get_size: Option<extern "C" fn(*mut c_void) -> i64>,
    can_write: Option<Ask>,
    can_flush: Option<Ask>,
    is_rotational: Option<Ask>,
    can_trim: Option<Ask>,
    /// `pread`, `pwrite`, `flush`, `trim` and `zero` of version 1.
    of_version_1: [Option<Old>; 5],
    errno_is_preserved: c_int,
    dump_plugin: Option<extern "C" fn()>,
    can_zero: Option<Ask>,
    can_fua: Option<Ask>,
    pread: Option<unsafe extern "C" fn(*mut c_void, *mut c_void, u32, u64, u32) -> c_int>,
    pwrite: Option<extern "C" fn(*mut c_void, *const c_void, u32, u64, u32) -> c_int>,
    flush: Option<extern "C" fn(*mut c_void, u32) -> c_int>,
    trim: Option<extern "C" fn(*mut c_void, u32, u64, u32) -> c_int>,
    zero: Option<extern "C" fn(*mut c_void, u32, u64, u32) -> c_int>,
    magic_config_key: *const c_char,
    can_multi_conn: Option<Ask>,
    can_extents: Option<Ask>,
    extents: Option<unsafe extern "C" fn(*mut c_void, u32, u64, u32, *mut Extents) -> c_int>,
    can_cache: Option<Ask>,
    cache: Option<extern "C" fn(*mut c_void, u32, u64, u32) -> c_int>,
    get_thread_model: Option<extern "C" fn() -> c_int>,
    can_fast_zero: Option<Ask>,
    preconnect: Option<extern "C" fn(c_int) -> c_int>,
    get_ready: Option<extern "C" fn() -> c_int>,
    after_fork: Option<extern "C" fn() -> c_int>,
    list_exports: Option<extern "C" fn(c_int, c_int, *mut c_void) -> c_int>,
    default_export: Option<extern "C" fn(c_int, c_int) -> *const c_char>,
    export_description: Option<extern "C" fn(*mut c_void) -> *const c_char>,
    cleanup: Option<extern "C" fn()>,
    block_size: Option<unsafe extern "C" fn(*mut c_void, *mut u32, *mut u32, *mut u32) -> c_int>,
}

// SAFETY: it is never written, and its pointers point to constants.
unsafe impl Sync for Plugin {}

static PLUGIN: Plugin = Plugin {
    struct_size: PLUGIN_LEN,
    api_version: API_VERSION,
    thread_model: THREAD_MODEL_PARALLEL,
    name: c"sealift".as_ptr(),
    longname: c"Sealift bundle".as_ptr(),
    version: VERSION.as_ptr(),
    description: c"Serves a file of a bundle, such as a disk image, read-only, and checks what is read.".as_ptr(),
    load: None,
    unload: Some(unload),
    config: Some(config),
    config_complete: Some(config_complete),
    config_help: HELP.as_ptr(),
    open: Some(open),
    close: None,
    get_size: Some(get_size),
    can_write: None,
    can_flush: None,
    is_rotational: None,
    can_trim: None,
    of_version_1: [None; 5],
    errno_is_preserved: 0,
    dump_plugin: None,
    can_zero: None,
    can_fua: None,
    pread: Some(pread),
    pwrite: None,
    flush: None,
    trim: None,
    zero: None,
    magic_config_key: c"file".as_ptr(),
    can_multi_conn: Some(can_multi_conn),
    can_extents: None,
    extents: Some(extents),
    can_cache: Some(can_cache),
    cache: None,
    get_thread_model: None,
    can_fast_zero: None,
    preconnect: None,
    get_ready: Some(get_ready),
    after_fork: Some(after_fork),
    list_exports: None,
    default_export: None,
    export_description: None,
    cleanup: None,
    block_size: Some(block_size),
};

#[allow(clippy::as_conversions, reason = "a constant that the structure holds in 64 bits")]
const PLUGIN_LEN: u64 = size_of::<Plugin>() as u64;

const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => c"",
};

/// The symbol that nbdkit looks up in a plugin.
// SAFETY: nothing else has this name: nbdkit loads each plugin with its own symbols.
#[unsafe(no_mangle)]
extern "C" fn plugin_init() -> *const c_void {
    (&raw const PLUGIN).cast()
}

extern "C" fn unload() {
    plugin::stop();
}

/// # Safety
/// `key` and `value` must be C strings.
unsafe extern "C" fn config(key: *const c_char, value: *const c_char) -> c_int {
    // SAFETY: nbdkit-plugin(3): both are C strings, which last as long as this call.
    let (key, value) = unsafe { (CStr::from_ptr(key), CStr::from_ptr(value)) };
    status(plugin::set(&key.to_string_lossy(), OsStr::from_bytes(value.to_bytes())))
}

extern "C" fn config_complete() -> c_int {
    status(plugin::check())
}

extern "C" fn get_ready() -> c_int {
    status(plugin::open())
}

extern "C" fn after_fork() -> c_int {
    status(plugin::start())
}

/// Returns a handle, which only must not be null: the same reader serves every connection.
extern "C" fn open(_readonly: c_int) -> *mut c_void {
    (&raw const PLUGIN).cast_mut().cast()
}

extern "C" fn get_size(_handle: *mut c_void) -> i64 {
    plugin::len().unwrap_or(-1)
}

extern "C" fn can_multi_conn(_handle: *mut c_void) -> c_int {
    1
}

extern "C" fn can_cache(_handle: *mut c_void) -> c_int {
    CACHE_EMULATE
}

/// # Safety
/// `minimum`, `preferred` and `maximum` must be valid for writes.
unsafe extern "C" fn block_size(
    _handle: *mut c_void,
    minimum: *mut u32,
    preferred: *mut u32,
    maximum: *mut u32,
) -> c_int {
    // SAFETY: nbdkit-plugin(3): the results are written there.
    unsafe {
        minimum.write(1);
        preferred.write(PREFERRED_LEN);
        maximum.write(u32::MAX);
    }
    0
}

/// # Safety
/// `buffer` must have `count` bytes.
unsafe extern "C" fn pread(_handle: *mut c_void, buffer: *mut c_void, count: u32, offset: u64, _flags: u32) -> c_int {
    let Ok(mut left) = usize::try_from(count) else { return failed(Errno::INVAL) };
    let mut at = buffer.cast::<u8>();
    let read = plugin::read(offset, count, &mut |bytes| {
        let len = bytes.len().min(left);
        // SAFETY: the buffer has `left` bytes from here on, and does not overlap `bytes`. It may be uninitialised, so no slice of it is made.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), at, len);
            at = at.add(len);
        }
        left -= len;
    });
    if read && left == 0 { 0 } else { failed(Errno::IO) }
}

/// # Safety
/// `extents` must come from nbdkit.
unsafe extern "C" fn extents(
    _handle: *mut c_void,
    count: u32,
    offset: u64,
    flags: u32,
    extents: *mut Extents,
) -> c_int {
    let wants_one = flags & FLAG_REQ_ONE != 0;
    let mut status = 0;
    plugin::extents(offset, count, &mut |range, is_data| {
        let kind = if is_data { 0 } else { EXTENT_HOLE };
        // SAFETY: `extents` is what nbdkit passed to this call.
        status = unsafe { nbdkit_add_extent(extents, range.start, range.end - range.start, kind) };
        status == 0 && !wants_one
    });
    status
}

fn failed(error: Errno) -> c_int {
    // SAFETY: the function only stores the number.
    unsafe { nbdkit_set_error(error.raw_os_error()) };
    -1
}

/// Returns the status of a call for nbdkit, after reporting an error.
fn status(done: Result<(), String>) -> c_int {
    match done {
        Ok(()) => 0,
        Err(error) => {
            tell(&error);
            -1
        }
    }
}
