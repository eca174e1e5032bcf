//! The text of a state file: a first line with its type and name, then what each set of keys vouched for.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use sealift_verify::trust::{FloorRecord, KeyId};

/// What records are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// Bundles: their versions.
    Bundles,
    /// Lists of channels: their sequences (channel 4).
    Lists,
}

/// Encodes records in canonical order.
pub(super) fn encode(of: Of, name: &str, records: &[FloorRecord]) -> String {
    let mut lines: Vec<String> = records.iter().map(line).collect();
    lines.sort();
    let mut text = format!("{}\n", title(of, name));
    for line in lines {
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// Includes the name, so that a file moved to another name's place is noticed.
fn title(of: Of, name: &str) -> String {
    match of {
        Of::Bundles => format!("sealift floor 2 {name}"),
        Of::Lists => format!("sealift list 1 {name}"),
    }
}

fn line(record: &FloorRecord) -> String {
    let mut line = format!("{} {}", record.version, record.created);
    for key in &record.keys {
        let _ = write!(line, " {key}"); // writing to a string does not fail
    }
    line
}

/// Parses what [`encode`] wrote, and nothing else.
///
/// # Errors
/// Returns a description of what is wrong with it.
pub(super) fn parse(of: Of, name: &str, text: &str) -> Result<Vec<FloorRecord>, String> {
    let title = title(of, name);
    let Some(rest) = text.strip_prefix(&title).and_then(|rest| rest.strip_prefix('\n')) else {
        let found = text.lines().next().unwrap_or_default();
        return Err(format!("its first line is {found:?}, not {title:?}; was it written by a newer version?"));
    };
    let mut records = Vec::new();
    for (line, number) in rest.lines().zip(2..) {
        let record = record(line);
        records.push(record.ok_or_else(|| format!("line {number} is not a version, a time and the keys for them"))?);
    }
    if records.is_empty() {
        return Err("nothing follows its first line".to_owned());
    }
    // Only the exact encoding is accepted, so that a partial edit is noticed.
    if encode(of, name, &records) != text {
        return Err("its lines are not exactly as sealift writes them".to_owned());
    }
    Ok(records)
}

fn record(line: &str) -> Option<FloorRecord> {
    let mut words = line.split(' ');
    let version = words.next()?.parse().ok()?;
    let created = words.next()?.parse().ok()?;
    let keys = words.map(str::parse).collect::<Result<BTreeSet<KeyId>, _>>().ok()?;
    (!keys.is_empty()).then_some(FloorRecord { version, created, keys: keys.into_iter().collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> KeyId {
        KeyId::from_bytes([number; 32])
    }

    #[test]
    fn what_is_written_is_read() {
        let records = [
            FloorRecord { version: 7, created: -5, keys: [key(1), key(2)].into() },
            FloorRecord { version: u64::MAX, created: i64::MAX, keys: [key(3)].into() },
        ];
        let text = encode(Of::Bundles, "os", &records);
        assert_eq!(text.lines().next(), Some("sealift floor 2 os"));
        let read = parse(Of::Bundles, "os", &text).expect("it is sound");
        assert_eq!(encode(Of::Bundles, "os", &read), text);
        assert_eq!(read.len(), 2);
        assert!(parse(Of::Bundles, "app", &text).is_err());
        assert!(parse(Of::Lists, "os", &text).is_err());
    }

    #[test]
    fn another_spelling_is_refused() {
        let (key, title) = (key(1), title(Of::Bundles, "os"));
        for text in [
            String::new(),
            format!("{title}\n"),
            format!("{title}\n7 0 {key}"),
            format!("{title}\n7 0\n"),
            format!("{title}\n7 {key}\n"),
            format!("{title}\n7  0 {key}\n"),
            format!("{title}\n7 0 {key} {key}\n"),
            format!("{title}\n07 0 {key}\n"),
            format!("{title}\n+7 0 {key}\n"),
            format!("{title}\n-7 0 {key}\n"),
            format!("{title}\n18446744073709551616 0 {key}\n"),
            format!("{title}\r\n7 0 {key}\r\n"),
            format!("{title}\n8 0 {key}\n7 0 {key}\n"),
            format!("sealift floor 3 os\n7 0 {key}\n"),
            format!("sealift floor 1\n7 {key}\n"),
        ] {
            assert!(parse(Of::Bundles, "os", &text).is_err(), "{text:?}");
        }
        assert!(parse(Of::Bundles, "os", &format!("{title}\n7 0 {key}\n")).is_ok());
    }
}
