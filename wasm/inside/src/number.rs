//! Offsets and lengths as JavaScript numbers, which are exact up to 2^53-1.

/// `Number.MAX_SAFE_INTEGER`.
const MAX: u64 = (1 << 53) - 1;

/// Converts a length or an offset. Beyond 2^53 it is rounded.
#[allow(
    clippy::as_conversions,
    reason = "files are shorter, and what a container states beyond that is only displayed"
)]
pub(crate) fn to_js(number: u64) -> f64 {
    number as f64
}

/// Converts a whole number from 0 to 2^53-1.
#[allow(clippy::as_conversions, reason = "the range was checked")]
pub(crate) fn natural(number: f64) -> Option<u64> {
    (number.fract() == 0.0 && (0.0..=to_js(MAX)).contains(&number)).then_some(number as u64)
}
