//! The text of a state file: a first line that says what it is, then a number and the keys that vouch for it, one a line.

use std::collections::BTreeSet;
use std::fmt::{Display, Write as _};
use std::str::FromStr;

use sealift_verify::trust::KeyId;

/// A number, and every trusted key that had signed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record<T> {
    pub(super) number: T,
    pub(super) keys: BTreeSet<KeyId>,
}

/// Writes records in their one order.
pub(super) fn encode<T: Display>(title: &str, records: &[Record<T>]) -> String {
    let mut lines: Vec<String> = records.iter().map(line).collect();
    lines.sort();
    let mut text = format!("{title}\n");
    for line in lines {
        text.push_str(&line);
        text.push('\n');
    }
    text
}

fn line<T: Display>(record: &Record<T>) -> String {
    let mut line = record.number.to_string();
    for key in &record.keys {
        let _ = write!(line, " {key}"); // a String takes everything
    }
    line
}

/// Reads what [`encode`] wrote, and nothing else.
///
/// # Errors
/// The words for what is wrong with it.
pub(super) fn parse<T: Display + FromStr>(title: &str, bytes: &[u8]) -> Result<Vec<Record<T>>, String> {
    let text = str::from_utf8(bytes).map_err(|_| "it is not text".to_owned())?;
    let Some(rest) = text.strip_prefix(title).and_then(|rest| rest.strip_prefix('\n')) else {
        let found = text.lines().next().unwrap_or_default();
        return Err(format!("its first line is {found:?}, not {title:?}; was it written by a newer version?"));
    };
    let mut records = Vec::new();
    for (line, number) in rest.lines().zip(2..) {
        records.push(record(line).ok_or_else(|| format!("line {number} is not a number and the keys for it"))?);
    }
    if records.is_empty() {
        return Err("nothing follows its first line".to_owned());
    }
    // One spelling: what was cut, joined or edited by halves is noticed.
    if encode(title, &records) != text {
        return Err("its lines are not in the one form in which they are written".to_owned());
    }
    Ok(records)
}

fn record<T: FromStr>(line: &str) -> Option<Record<T>> {
    let mut words = line.split(' ');
    let number = words.next()?.parse().ok()?;
    let keys = words.map(str::parse).collect::<Result<BTreeSet<KeyId>, _>>().ok()?;
    (!keys.is_empty()).then_some(Record { number, keys })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TITLE: &str = "sealift floor 1";

    fn key(number: u8) -> KeyId {
        KeyId::from_bytes([number; 32])
    }

    #[test]
    fn what_is_written_is_read() {
        let records = [
            Record { number: 7_u64, keys: [key(2), key(1)].into() },
            Record { number: u64::MAX, keys: [key(3)].into() },
        ];
        let text = encode(TITLE, &records);
        assert_eq!(text.lines().next(), Some(TITLE));
        let read = parse::<u64>(TITLE, text.as_bytes()).expect("it is sound");
        assert_eq!(encode(TITLE, &read), text);
        assert_eq!(read.len(), 2);
        for at in 0..text.len() {
            let cut = parse::<u64>(TITLE, &text.as_bytes()[..at]);
            // A cut at a line's end is a file that could have been written: names and renames guard against it.
            assert!(cut.is_err() || text.as_bytes()[at - 1] == b'\n', "cut at {at}");
        }
    }

    #[test]
    fn another_spelling_is_refused() {
        let key = key(1);
        for text in [
            String::new(),
            format!("{TITLE}\n"),
            format!("{TITLE}\n7 {key}"),
            format!("{TITLE}\n7\n"),
            format!("{TITLE}\n7  {key}\n"),
            format!("{TITLE}\n7 {key} {key}\n"),
            format!("{TITLE}\n07 {key}\n"),
            format!("{TITLE}\n+7 {key}\n"),
            format!("{TITLE}\n-7 {key}\n"),
            format!("{TITLE}\n18446744073709551616 {key}\n"),
            format!("{TITLE}\r\n7 {key}\r\n"),
            format!("{TITLE}\n8 {key}\n7 {key}\n"),
            format!("sealift floor 2\n7 {key}\n"),
        ] {
            assert!(parse::<u64>(TITLE, text.as_bytes()).is_err(), "{text:?}");
        }
    }
}
