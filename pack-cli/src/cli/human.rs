//! Numbers in human-readable form.

use std::fmt;
use std::time::Duration;

/// Bytes in decimal units with three digits: `1.30 GB`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes(pub(crate) u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 7] = ["bytes", "kB", "MB", "GB", "TB", "PB", "EB"];
        // Thousandths of the unit, rounded half up; those of u64::MAX bytes need more than 64 bits.
        let (mut unit, mut size) = (0, u128::from(self.0) * 1000);
        while size >= 999_500 && unit + 1 < UNITS.len() {
            (unit, size) = (unit + 1, (size + 500) / 1000);
        }
        let text = match (unit, size) {
            (0, _) if self.0 == 1 => "1 byte".to_owned(),
            (0, _) => format!("{} bytes", self.0),
            (_, ..9_995) => format!("{}.{:02} {}", (size + 5) / 1000, (size + 5) % 1000 / 10, UNITS[unit]),
            (_, ..99_950) => format!("{}.{} {}", (size + 50) / 1000, (size + 50) % 1000 / 100, UNITS[unit]),
            _ => format!("{} {}", (size + 500) / 1000, UNITS[unit]),
        };
        f.pad(&text)
    }
}

/// A number with thousands separators: `1,297,345,678`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grouped(pub(crate) u64);

impl fmt::Display for Grouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        let mut text = String::new();
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        f.pad(&text)
    }
}

/// Returns a count with its noun, in the plural unless it is one: `1 file`, `2,000 files`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let plural = match noun {
        _ if number == 1 => noun.to_owned(),
        "directory" => "directories".to_owned(),
        "entry" => "entries".to_owned(),
        _ => format!("{noun}s"),
    };
    format!("{} {plural}", Grouped(number))
}

/// Returns a duration: `0.42 s`, `12.3 s`, `3 min 5 s`.
pub(crate) fn duration(duration: Duration) -> String {
    let millis = duration.as_millis();
    match millis {
        0..9_995 => format!("{:.2} s", duration.as_secs_f64()),
        9_995..59_950 => format!("{:.1} s", duration.as_secs_f64()),
        59_950..3_600_000 => format!("{} min {} s", millis / 60_000, millis / 1000 % 60),
        _ => format!("{} h {} min", millis / 3_600_000, millis / 60_000 % 60),
    }
}

/// Returns a span of seconds in its largest unit: `3 days`.
pub(crate) fn span(seconds: u64) -> String {
    const UNITS: [(u64, &str); 5] =
        [(365 * 86_400, "year"), (30 * 86_400, "month"), (86_400, "day"), (3600, "hour"), (60, "minute")];
    let unit = UNITS.iter().find(|(len, _)| seconds >= *len);
    unit.map_or_else(|| count(seconds, "second"), |(len, noun)| count(seconds / len, noun))
}

/// Returns a rate: `281 MB/s`.
pub(crate) fn rate(bytes: u64, duration: Duration) -> String {
    format!("{}/s", Bytes(per_second(bytes, duration)))
}

/// Returns the rate as a number.
pub(crate) fn per_second(bytes: u64, duration: Duration) -> u64 {
    let rate = u128::from(bytes) * 1_000_000_000 / duration.as_nanos().max(1);
    u64::try_from(rate).unwrap_or(u64::MAX) // after almost no time
}

/// Returns seconds to three places, for JSON.
pub(crate) fn seconds(duration: Duration) -> f64 {
    f64::from(u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)) / 1000.0
}

/// Returns the stored size of `whole` bytes, with its share if it is smaller: `211 MB (15.8 %)`.
pub(crate) fn stored(part: u64, whole: u64) -> String {
    if part <= whole { format!("{} ({})", Bytes(part), percentage(part, whole)) } else { Bytes(part).to_string() }
}

/// Returns `part` of `whole` in per cent, to one place: `15.8 %`.
pub(crate) fn percentage(part: u64, whole: u64) -> String {
    let tenths = (u128::from(part) * 1000 + u128::from(whole) / 2) / u128::from(whole.max(1));
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// Parses a size: `65536`, `64k`, `64KiB`, `1M`, `1MiB`, `1G`, `1T`. Units are powers of 1024. Decimal units (`1MB`) are refused, because
/// they mean powers of 1000.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let shift = match unit.trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        "t" | "tib" => 40,
        _ => return Err("write a size such as 65536, 64k or 1MiB".into()),
    };
    let number: u64 = digits.parse().map_err(|_| "write a size such as 65536, 64k or 1MiB".to_owned())?;
    number.checked_mul(1 << shift).ok_or_else(|| "the size is too large".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_three_digits() {
        let cases = [
            (0, "0 bytes"),
            (1, "1 byte"),
            (999, "999 bytes"),
            (1000, "1.00 kB"),
            (9_994, "9.99 kB"),
            (9_995, "10.0 kB"),
            (99_949, "99.9 kB"),
            (99_950, "100 kB"),
            (999_499, "999 kB"),
            (999_500, "1.00 MB"),
            (1_297_345_678, "1.30 GB"),
            (u64::MAX, "18.4 EB"),
        ];
        for (number, shown) in cases {
            assert_eq!(Bytes(number).to_string(), shown, "{number}");
        }
    }

    #[test]
    fn counts_and_spans() {
        assert_eq!(count(1, "file"), "1 file");
        assert_eq!(count(1_234_567, "directory"), "1,234,567 directories");
        assert_eq!(span(59), "59 seconds");
        assert_eq!(span(86_400), "1 day");
        assert_eq!(span(u64::MAX), "584,942,417,355 years");
        assert_eq!(percentage(158, 1000), "15.8 %");
        assert_eq!(percentage(1, 0), "100.0 %");
        assert_eq!(duration(Duration::from_millis(420)), "0.42 s");
        assert_eq!(duration(Duration::from_secs(185)), "3 min 5 s");
        assert_eq!(rate(281_000_000, Duration::from_secs(1)), "281 MB/s");
    }

    #[test]
    fn sizes_are_parsed() {
        for (text, size) in [("65536", 65_536), ("64k", 65_536), ("64KiB", 65_536), ("1MiB", 1 << 20), ("2G", 2 << 30)]
        {
            assert_eq!(parse_size(text), Ok(size), "{text}");
        }
        for bad in ["", "k", "1MB", "-1", "1.5M", "99999999999999G"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }
}
