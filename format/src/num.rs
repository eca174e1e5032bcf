//! Sizes of memory and numbers of the format: the one place that says which of each other's they always hold.

use crate::Error;

// Both are true wherever Rust has a standard library, and the code of this crate stands on them.
const _: () = assert!(usize::BITS >= u32::BITS, "a row's number is an index");
const _: () = assert!(usize::BITS <= u64::BITS, "a length in memory is a number of the format");

/// The index of a row by its number.
#[must_use]
#[inline]
#[allow(clippy::as_conversions, reason = "a usize has 32 bits or more")]
pub const fn at(number: u32) -> usize {
    number as usize
}

/// A length in memory as a number of the format.
#[must_use]
#[inline]
#[allow(clippy::as_conversions, reason = "a usize has 64 bits or fewer")]
pub const fn wide(len: usize) -> u64 {
    len as u64
}

/// A length of the format as one in memory, where no more than `most` bytes are meant.
#[must_use]
#[inline]
pub fn up_to(len: u64, most: usize) -> usize {
    usize::try_from(len).map_or(most, |len| len.min(most))
}

/// A length or count in memory in the width of its field.
///
/// # Errors
/// Returns an error that says `what` it is if it does not fit.
pub fn fit<T: TryFrom<usize>>(len: usize, what: &'static str) -> Result<T, Error> {
    let max = u64::MAX >> (64 - 8 * size_of::<T>());
    T::try_from(len).map_err(|_| Error::TooLarge { what, len: wide(len), max })
}

/// A length or place in a file as one in memory, for programs that run on 64 bits alone.
#[cfg(target_pointer_width = "64")]
#[must_use]
#[inline]
#[allow(clippy::as_conversions, reason = "a usize has 64 bits here")]
pub const fn size(len: u64) -> usize {
    len as usize
}
