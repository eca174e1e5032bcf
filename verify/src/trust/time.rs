//! Seconds since 1970 and the calendar: OpenSSH's notation in, a readable one out.

use core::fmt;

const DAY: i64 = 86_400;

/// Parses `YYYYMMDD`, `YYYYMMDDHHMM` or `YYYYMMDDHHMMSS`, each with or without
/// `Z` or `UTC` behind it.
///
/// Without it OpenSSH means the local time zone. A device in the field may have
/// another one than the desk where the file was written, so here it is UTC too.
pub(super) fn parse(text: &str) -> Option<i64> {
    let upper = text.to_ascii_uppercase();
    let digits = upper.strip_suffix('Z').or_else(|| upper.strip_suffix("UTC")).unwrap_or(&upper);
    if !matches!(digits.len(), 8 | 12 | 14) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let field = |start: usize, len: usize| -> Option<i64> {
        digits.get(start..start + len).map_or(Some(0), |field| field.parse().ok())
    };
    let (year, month, day) = (field(0, 4)?, field(4, 2)?, field(6, 2)?);
    let (hour, minute, second) = (field(8, 2)?, field(10, 2)?, field(12, 2)?);
    if !(1..=12).contains(&month) || day < 1 || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let days = days_before(year, month, day);
    // The 31st of June would be the first of July; we rather ask what was meant.
    if civil(days) != (year, month, day) {
        return None;
    }
    Some(days * DAY + hour * 3600 + minute * 60 + second)
}

/// Shows seconds since 1970 as `2026-11-21 01:06:27 UTC`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Utc(pub(crate) i64);

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil(self.0.div_euclid(DAY));
        let second = self.0.rem_euclid(DAY);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
    }
}

/// Days from 1970-01-01 to a day of the Gregorian calendar. Years begin in
/// March here, so that the leap day is the last one.
fn days_before(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// The inverse of [`days_before`].
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days.saturating_add(719_468);
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
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
    fn openssh_times_are_read() {
        let cases = [
            ("19700101", Some(0)),
            ("19700101Z", Some(0)),
            ("20261121", Some(1_795_219_200)),
            ("202611210106", Some(1_795_223_160)),
            ("20261121010627z", Some(1_795_223_187)),
            ("20261121010627UTC", Some(1_795_223_187)),
            ("20240229", Some(1_709_164_800)),
            ("20230229", None),
            ("20231301", None),
            ("20230100", None),
            ("202301012400", None),
            ("20230101240000", None),
            ("2023010", None),
            ("2023-1-1", None),
            ("+0230101", None),
            ("20230101ZZ", None),
            ("2023010112Z", None),
            ("\u{661}0230101", None),
            ("", None),
            ("Z", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text), expected, "{text}");
        }
    }

    #[test]
    fn times_are_shown() {
        assert_eq!(Utc(1_795_223_187).to_string(), "2026-11-21 01:06:27 UTC");
        assert_eq!(Utc(-1).to_string(), "1969-12-31 23:59:59 UTC");
        // No second that a bundle may state makes this panic.
        assert!(!Utc(i64::MAX).to_string().is_empty());
        assert!(!Utc(i64::MIN).to_string().is_empty());
    }

    #[test]
    fn every_day_has_one_date() {
        for days in (-800_000..800_000).step_by(37) {
            let (year, month, day) = civil(days);
            assert_eq!(days_before(year, month, day), days);
        }
    }
}
