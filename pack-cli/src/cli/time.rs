//! Times in RFC 3339 format, and their distance from now.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use sealift::Identity;
use sealift::trust::Utc;

use super::failure::Failure;
use super::human;
use super::show::Show;

/// Seconds of a day.
const DAY: i64 = 86_400;

/// Seconds since 1970-01-01 UTC, shown as `2026-11-21T01:06:27Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment(pub(crate) i64);

impl Moment {
    /// Returns the current time.
    pub(crate) fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).map(|since| since.as_secs());
        Self(since.ok().and_then(|seconds| i64::try_from(seconds).ok()).unwrap_or(0))
    }

    /// Returns the time with its distance from now: `2026-11-21T01:06:27Z (3 days ago)`.
    pub(crate) fn with_distance(self) -> String {
        let now = Self::now();
        match self.0.abs_diff(now.0) {
            0 => format!("{self} (now)"),
            distance if self.0 < now.0 => format!("{self} ({} ago)", human::span(distance)),
            distance => format!("{self} (in {})", human::span(distance)),
        }
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&Utc(self.0).rfc3339())
    }
}

/// Returns SOURCE_DATE_EPOCH, as defined by reproducible-builds.org.
pub(crate) fn source_date_epoch() -> Result<Option<i64>, Failure> {
    let Some(value) = std::env::var_os("SOURCE_DATE_EPOCH") else { return Ok(None) };
    let seconds = value.to_str().and_then(|text| text.parse::<i64>().ok()).filter(|seconds| *seconds >= 0);
    seconds
        .map(Some)
        .ok_or_else(|| Failure::usage(format!("SOURCE_DATE_EPOCH is {}, not a number of seconds", value.display())))
}

/// Warns before a signature if a bundle is dated a day or more ahead of this machine's clock: devices that take it keep that date as the earliest
/// that it can be.
pub(crate) fn warn_if_ahead(show: Show, identity: &Identity) {
    let ahead = identity.created.saturating_sub(Moment::now().0);
    if ahead >= DAY {
        let (created, span) = (Moment(identity.created), human::span(ahead.unsigned_abs()));
        show.warn(&format!(
            "the bundle is dated {created}, {span} ahead of this machine's clock: a device that takes it will refuse bundles of {} that expire \
             before then; check the clock and SOURCE_DATE_EPOCH, and pack it again",
            identity.name
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (1_795_223_187, "2026-11-21T01:06:27Z"),
            (1_709_164_800, "2024-02-29T00:00:00Z"),
        ];
        for (seconds, shown) in cases {
            assert_eq!(Moment(seconds).to_string(), shown);
        }
        // No value that a bundle may state makes this panic.
        for seconds in [i64::MIN, i64::MAX] {
            assert!(!Moment(seconds).with_distance().is_empty());
        }
    }
}
