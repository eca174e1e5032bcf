//! Conversions between lengths in memory and numbers of the format: the only place that assumes which of them always fit.

use crate::Error;

// Both are true on every platform with a standard library, and this crate relies on them.
const _: () = assert!(usize::BITS >= u32::BITS, "a row's number is an index");
const _: () = assert!(usize::BITS <= u64::BITS, "a length in memory is a number of the format");

/// Converts a row's number to an index.
#[must_use]
#[inline]
#[allow(clippy::as_conversions, reason = "a usize has 32 bits or more")]
pub const fn at(number: u32) -> usize {
    number as usize
}

/// Converts a length in memory to a number of the format.
#[must_use]
#[inline]
#[allow(clippy::as_conversions, reason = "a usize has 64 bits or fewer")]
pub const fn wide(len: usize) -> u64 {
    len as u64
}

/// Converts a length of the format to one in memory, of at most `most` bytes.
#[must_use]
#[inline]
pub fn up_to(len: u64, most: usize) -> usize {
    usize::try_from(len).map_or(most, |len| len.min(most))
}

/// Converts a length or count in memory to the type of its field.
///
/// # Errors
/// Returns an error that names it as `what` if it does not fit.
pub fn fit<T: TryFrom<usize>>(len: usize, what: &'static str) -> Result<T, Error> {
    let max = u64::MAX >> (64 - 8 * size_of::<T>());
    T::try_from(len).map_err(|_| Error::TooLarge { what, len: wide(len), max })
}

/// Converts a length or offset in a file to one in memory, for programs that only run on 64-bit machines.
#[cfg(target_pointer_width = "64")]
#[must_use]
#[inline]
#[allow(clippy::as_conversions, reason = "a usize has 64 bits here")]
pub const fn size(len: u64) -> usize {
    len as usize
}
