//! Which versions of a channel a rule names: `last:7,weekly:8,monthly:12`.

use std::collections::BTreeSet;
use std::str::FromStr;

/// A rule that names versions by their age, as those of backup programs do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionRule {
    parts: Vec<(Period, usize)>,
}

/// Of each such period, the last version counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Period {
    /// Each version is a period of its own.
    Version,
    Day,
    Week,
    Month,
    Year,
}

const PERIODS: [(&str, Period); 5] = [
    ("last", Period::Version),
    ("daily", Period::Day),
    ("weekly", Period::Week),
    ("monthly", Period::Month),
    ("yearly", Period::Year),
];

/// Seconds of a day.
const DAY: i64 = 86_400;

impl FromStr for VersionRule {
    type Err = String;

    /// Parses `PERIOD:NUMBER`, separated by commas.
    fn from_str(text: &str) -> Result<Self, String> {
        let part = |part: &str| {
            let (word, number) = part.split_once(':')?;
            let (_, period) = PERIODS.iter().find(|(own, _)| *own == word)?;
            let number = number.parse().ok().filter(|number| *number > 0)?;
            Some((*period, number))
        };
        let parts: Option<Vec<_>> = text.split(',').map(part).collect();
        let words = PERIODS.map(|(word, _)| word).join(", ");
        let parts = parts.ok_or_else(|| format!("not PERIOD:NUMBER, such as last:7,weekly:8; periods are {words}"))?;
        Ok(Self { parts })
    }
}

impl VersionRule {
    /// Returns the versions that the rule names. `versions` are versions and when they were made, in seconds since 1970.
    #[must_use]
    pub fn named(&self, versions: &[(u64, i64)]) -> BTreeSet<u64> {
        let mut newest_first = versions.to_vec();
        newest_first.sort_unstable_by(|a, b| b.cmp(a));
        let mut named = BTreeSet::new();
        for (period, number) in &self.parts {
            let mut seen = BTreeSet::new();
            for (version, created) in &newest_first {
                if seen.insert(period.number(*version, *created)) && seen.len() <= *number {
                    named.insert(*version);
                }
            }
        }
        named
    }
}

impl Period {
    /// Returns a number that is the same for all versions of one period.
    fn number(self, version: u64, created: i64) -> i128 {
        let day = created.div_euclid(DAY);
        match self {
            Self::Version => version.into(),
            Self::Day => day.into(),
            // 1970-01-01 was a Thursday; weeks begin on Mondays.
            Self::Week => day.saturating_add(3).div_euclid(7).into(),
            Self::Month => months(day).into(),
            Self::Year => months(day).div_euclid(12).into(),
        }
    }
}

/// Returns the number of the month of a day: the day is counted from 1970, the month from January of the year 0 (Howard Hinnant, "chrono-compatible low-level date algorithms").
fn months(day: i64) -> i64 {
    let day = day.saturating_add(719_468);
    let era = day.div_euclid(146_097);
    let of_era = day.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153; // counted from March
    (era * 400 + year) * 12 + month + 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(rule: &str, versions: &[(u64, i64)]) -> Vec<u64> {
        rule.parse::<VersionRule>().expect("a rule").named(versions).into_iter().collect()
    }

    #[test]
    fn the_last_of_each_period_is_named() {
        // One version a day from Monday 2024-01-01 on.
        let daily: Vec<(u64, i64)> =
            (0..70).map(|day| (day, 1_704_067_200 + i64::try_from(day).expect("small") * DAY)).collect();
        assert_eq!(named("last:3", &daily), [67, 68, 69]);
        assert_eq!(named("daily:2", &daily), [68, 69]);
        assert_eq!(named("weekly:3", &daily), [55, 62, 69]);
        assert_eq!(named("monthly:2", &daily), [59, 69]); // 2024-02-29
        assert_eq!(named("yearly:5", &daily), [69]);
        assert_eq!(named("last:1,monthly:3", &daily), [30, 59, 69]);
        assert_eq!(named("last:9", &daily[..2]), [0, 1]);
        // Two versions of a day: the higher one counts.
        assert_eq!(named("daily:5", &[(1, 10), (2, 20), (3, DAY)]), [2, 3]);
        assert_eq!(named("monthly:1,daily:1", &[(u64::MAX, i64::MIN), (1, i64::MAX)]), [u64::MAX]);
    }

    #[test]
    fn other_text_is_no_rule() {
        for text in ["", "last", "last:", "last:0", "last:-1", "hourly:3", "last:1,", "last:1;daily:2"] {
            assert!(text.parse::<VersionRule>().is_err(), "{text}");
        }
    }
}
