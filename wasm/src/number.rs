//! Offsets and lengths as JavaScript numbers, which are exact up to 2^53-1.

use sealift_format::{Error, Kind};
use wasm_bindgen::JsValue;

use crate::error::refusal;

/// `Number.MAX_SAFE_INTEGER`.
const MAX: u64 = (1 << 53) - 1;

/// Converts an offset or length for JavaScript. Returns an error of kind *limit* if it is not exact there.
pub(crate) fn to_js(what: &'static str, number: u64) -> Result<f64, JsValue> {
    if number > MAX {
        return Err(refusal(Kind::Limit, &Error::Limit { what, declared: number, limit: MAX }));
    }
    Ok(whole(number))
}

#[allow(clippy::as_conversions, reason = "a float is exact up to 2^53-1, which the callers ensure")]
fn whole(number: u64) -> f64 {
    number as f64
}

/// Converts a number that is only displayed: beyond 2^53 it is rounded.
#[allow(clippy::as_conversions, reason = "rounding is harmless")]
pub(crate) fn rounded(number: u64) -> f64 {
    number as f64
}

/// Converts seconds since 1970. Values that a float rounds are beyond any calendar.
#[allow(clippy::as_conversions, reason = "rounding is harmless")]
pub(crate) fn seconds_to_js(seconds: i64) -> f64 {
    seconds as f64
}

/// Converts a whole number from -(2^53-1) to 2^53-1.
#[allow(clippy::as_conversions, reason = "the range was checked")]
pub(crate) fn integer(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() <= whole(MAX)).then_some(number as i64)
}

/// Converts a whole number from 0 to 2^53-1.
pub(crate) fn natural(number: f64) -> Option<u64> {
    integer(number).and_then(|number| u64::try_from(number).ok())
}
