//! *Now*: the time by which keys and expiry are judged.

use std::time::{SystemTime, UNIX_EPOCH};

use sealift_verify::trust::Now;

/// When this program was built, in seconds since 1970.
#[must_use]
pub fn build_time() -> i64 {
    env!("SEALIFT_BUILD_TIME").parse().unwrap_or(0)
}

/// The clock, if it stands at 1970 or later.
fn clock() -> Option<i64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_secs()).ok()
}

/// The clock, or 1970 where it stands before.
pub(super) fn clock_time() -> i64 {
    clock().unwrap_or(0)
}

/// The later of the clock and the build, beyond which nothing that somebody says counts unless several keys say it.
pub(super) fn own_time() -> i64 {
    clock_time().max(build_time())
}

/// The moment that was given, or else the latest of those that are known (spec 9).
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
