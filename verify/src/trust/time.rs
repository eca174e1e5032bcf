//! Converts between seconds since 1970 and dates: reads the notation of OpenSSH and RFC 3339, and writes a readable one.

use core::fmt;

const DAY: i64 = 86_400;

/// Parses `YYYYMMDD`, `YYYYMMDDHHMM` or `YYYYMMDDHHMMSS`, each with or without
/// a suffix `Z` or `UTC`.
///
/// Without the suffix, OpenSSH uses the local time zone. A device may be in
/// another zone than the author of the file, so this always uses UTC.
pub(super) fn parse(text: &str) -> Option<i64> {
    if !is_date(text) {
        return None;
    }
    let digits = without_zone(text);
    let field = |start: usize, len: usize| -> Option<i64> {
        digits.get(start..start + len).map_or(Some(0), |field| field.parse().ok())
    };
    let (year, month, day) = (field(0, 4)?, field(4, 2)?, field(6, 2)?);
    let (hour, minute, second) = (field(8, 2)?, field(10, 2)?, field(12, 2)?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let days = checked_days(year, month, day)?;
    Some(days * DAY + hour * 3600 + minute * 60 + second)
}

/// Returns whether a text has the form of a date in digits alone. As seconds since 1970, 8 digits would
/// mean a day before 1974, and 12 or 14 one after the year 5000: nobody means these.
fn is_date(text: &str) -> bool {
    let digits = without_zone(text);
    matches!(digits.len(), 8 | 12 | 14) && is_digits(digits)
}

fn without_zone(text: &str) -> &str {
    let zone_at = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    match text.split_at(zone_at) {
        (digits, zone) if zone.eq_ignore_ascii_case("z") || zone.eq_ignore_ascii_case("utc") => digits,
        _ => text,
    }
}

/// Seconds since 1970, shown as `2026-11-21 01:06:27 UTC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(clippy::exhaustive_structs, reason = "it is only a number")]
pub struct Utc(pub i64);

impl Utc {
    /// Reads a time as users write it: `2026-11-21T01:06:27Z` and other forms of
    /// RFC 3339, a day `2026-11-21` (its first second, UTC), the digits that
    /// `valid-before` takes in a file of allowed signers, such as `20261121`, or
    /// seconds since 1970. Fractions of a second are dropped.
    ///
    /// # Errors
    /// Returns an error if the text is none of these, or there is no such day.
    pub fn parse(text: &str) -> Result<Self, TimeError> {
        let moment = if is_date(text) { parse(text) } else { rfc3339(text).or_else(|| seconds(text)) };
        moment.map(Self).ok_or_else(|| TimeError(text.into()))
    }
}

/// A text that is not a time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a time such as 2027-01-31, 20270131, 2027-01-31T12:00:00Z or 1801396800, \
     the seconds since 1970"
)]
pub struct TimeError(String);

/// Parses a decimal number in its canonical form: `+5` and `05` are probably mistakes.
fn seconds(text: &str) -> Option<i64> {
    text.parse().ok().filter(|seconds: &i64| seconds.to_string() == text)
}

fn rfc3339(text: &str) -> Option<i64> {
    let (day, time) = match text.split_once(['T', 't', ' ']) {
        Some((day, time)) => (day, Some(time)),
        None => (text, None),
    };
    let [year, month, day] = numbers(day, '-', [4, 2, 2])?;
    let days = checked_days(year, month, day)?;
    let Some(time) = time else {
        return Some(days * DAY);
    };
    let zone_at = time.find(['Z', 'z', '+', '-'])?;
    let (time, zone) = time.split_at_checked(zone_at)?;
    let time = match time.split_once('.') {
        Some((_, fraction)) if !is_digits(fraction) => return None,
        Some((time, _)) => time,
        None => time,
    };
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    Some(days * DAY + hour * 3600 + minute * 60 + second - offset(zone)?)
}

/// Returns the offset from UTC in seconds: `Z`, or hours and minutes east (+) or west (-) of it.
fn offset(zone: &str) -> Option<i64> {
    let (sign, zone) = match zone.split_at_checked(1)? {
        ("Z" | "z", "") => return Some(0),
        ("+", zone) => (1, zone),
        ("-", zone) => (-1, zone),
        _ => return None,
    };
    let [hours, minutes] = numbers(zone, ':', [2, 2])?;
    (hours <= 23 && minutes <= 59).then_some(sign * (hours * 3600 + minutes * 60))
}

/// Parses numbers with exactly these numbers of digits, separated by `mark`.
fn numbers<const N: usize>(text: &str, mark: char, lens: [usize; N]) -> Option<[i64; N]> {
    let mut parts = text.split(mark);
    let mut found = [0; N];
    for (number, len) in found.iter_mut().zip(lens) {
        let part = parts.next().filter(|part| part.len() == len && is_digits(part))?;
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(found)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the days from 1970-01-01, or `None` if there is no such day: the 31st
/// of June is an error, not the 1st of July.
fn checked_days(year: i64, month: i64, day: i64) -> Option<i64> {
    let days = (1..=12).contains(&month).then(|| days_before(year, month, day))?;
    (civil(days) == (year, month, day)).then_some(days)
}

impl Utc {
    /// Returns the time in the form of RFC 3339, with `Z`.
    #[must_use]
    pub fn rfc3339(&self) -> String {
        let (year, month, day, hour, minute, second) = self.parts();
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }

    fn parts(&self) -> (i64, i64, i64, i64, i64, i64) {
        let (year, month, day) = civil(self.0.div_euclid(DAY));
        let second = self.0.rem_euclid(DAY);
        (year, month, day, second / 3600, second / 60 % 60, second % 60)
    }
}

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day, hour, minute, second) = self.parts();
        write!(f, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
    }
}

/// Returns the days from 1970-01-01 to a day of the Gregorian calendar. Years
/// begin in March here, so that the leap day is the last one.
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
            ("20261121010627uTc", Some(1_795_223_187)),
            ("20261121010660", None),
            ("202611210160", None),
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
    fn moments_are_read() {
        let cases = [
            ("2026-11-21", Some(1_795_219_200)),
            ("2026-11-21T01:06:27Z", Some(1_795_223_187)),
            ("2026-11-21t01:06:27z", Some(1_795_223_187)),
            ("2026-11-21 01:06:27Z", Some(1_795_223_187)),
            ("2026-11-21T01:06:27.999Z", Some(1_795_223_187)),
            ("2026-11-21T02:06:27+01:00", Some(1_795_223_187)),
            ("2026-11-20T23:36:27-01:30", Some(1_795_223_187)),
            ("1969-12-31T23:59:59Z", Some(-1)),
            ("1795223187", Some(1_795_223_187)),
            ("20261121", Some(1_795_219_200)),
            ("20261121Z", Some(1_795_219_200)),
            ("202611210106", Some(1_795_223_160)),
            ("20261121010627utc", Some(1_795_223_187)),
            ("99999999", None),
            ("20260631", None),
            ("100000000000", None),
            ("17952231870000", None),
            ("1795223187Z", None),
            ("-20261121", Some(-20_261_121)),
            ("-1", Some(-1)),
            ("0", Some(0)),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775808", None),
            ("2026-11-21T01:06:27", None),
            ("2026-11-21T01:06Z", None),
            ("2026-11-21T24:00:00Z", None),
            ("2026-11-21T01:06:60Z", None),
            ("2026-11-21T01:06:27.Z", None),
            ("2026-11-21T01:06:27Zulu", None),
            ("2026-11-21T01:06:27+0100", None),
            ("2026-11-21T01:06:27+24:00", None),
            ("2026-06-31", None),
            ("2026-13-01", None),
            ("2026-00-01", None),
            ("2026-1-1", None),
            ("26-11-21", None),
            ("+5", None),
            ("05", None),
            ("-0", None),
            ("", None),
            ("T", None),
            ("soon", None),
            ("\u{661}026-11-21", None),
        ];
        for (text, expected) in cases {
            assert_eq!(Utc::parse(text).ok().map(|utc| utc.0), expected, "{text}");
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
