//! The moment at which bundles are judged.

use std::time::{SystemTime, UNIX_EPOCH};

use sealift_verify::trust::Now;

/// Returns when this program was built, in seconds since 1970.
#[must_use]
pub fn build_time() -> i64 {
    env!("SEALIFT_BUILD_TIME").parse().unwrap_or(0)
}

/// Returns the clock's time if it is 1970 or later.
fn clock() -> Option<i64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_secs()).ok()
}

/// Returns the clock's time, or 1970 if the clock is earlier.
pub(super) fn clock_time() -> i64 {
    clock().unwrap_or(0)
}

/// Returns the later of the clock and the build time. A `created` that is much later counts in full only if several keys vouch for it.
pub(super) fn own_time() -> i64 {
    clock_time().max(build_time())
}

/// Returns the given moment, or else the latest known one (trust 2).
pub(super) fn now(given: Option<i64>, newest_created: Option<i64>) -> Now {
    given.map_or_else(|| Now::latest(clock(), newest_created, build_time()), Now::exactly)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn now_is_not_before_the_build() {
        assert!(now(None, None).seconds() >= build_time());
        assert_eq!(now(None, Some(i64::MAX)).seconds(), i64::MAX);
        assert_eq!(now(Some(5), Some(i64::MAX)).seconds(), 5);
    }
}
