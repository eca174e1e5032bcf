//! Whether standard output was closed when the program started. Rust's runtime opens /dev/null in its place before `main`, so that what is written
//! there would be lost without an error.
#![allow(unsafe_code, reason = "the linker calls the function before the runtime starts")]

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::{Errno, fcntl_getfd};

use super::failure::Failure;

static IS_CLOSED: AtomicBool = AtomicBool::new(false);

// SAFETY: the C library calls the functions in this section, without arguments that they need, before `main`; this one makes a single system call.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    IS_CLOSED.store(fcntl_getfd(rustix::stdio::stdout()) == Err(Errno::BADF), Ordering::Relaxed);
}

/// Refuses to write content to a closed standard output.
pub(crate) fn check_stdout() -> Result<(), Failure> {
    match IS_CLOSED.load(Ordering::Relaxed) {
        true => Err(Failure::usage("standard output is closed: redirect it to a file or a pipe")),
        false => Ok(()),
    }
}
