//! Moments as RFC 3339 writes them, and how long ago they were.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use super::human;

/// Seconds since 1970-01-01 UTC, shown as `2026-11-21T01:06:27Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment(pub(crate) i64);

impl Moment {
    /// The clock.
    pub(crate) fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).map(|since| since.as_secs());
        Self(since.ok().and_then(|seconds| i64::try_from(seconds).ok()).unwrap_or(0))
    }

    /// The moment with its distance from now: `2026-11-21T01:06:27Z (3 days ago)`.
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
        let (days, second) = (self.0.div_euclid(86_400), self.0.rem_euclid(86_400));
        let (year, month, day) = civil(days);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        f.pad(&format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"))
    }
}

/// The day of the Gregorian calendar that lies `days` after 1970-01-01. Years begin in March here, so that the leap day is the last.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days.saturating_add(719_468);
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (year_of_era + era * 400 + next, month, day)
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
        // Nothing that a bundle may state makes this panic.
        for seconds in [i64::MIN, i64::MAX] {
            assert!(!Moment(seconds).with_distance().is_empty());
        }
    }
}
