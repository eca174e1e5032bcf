//! The records of an extended header (POSIX.1-2001).
//!
//! Only its length delimits a record: values are binary and may contain newlines, as capabilities do. A reader that splits at newlines can be
//! tricked into other paths and sizes.

use super::fault::TarFault;
use super::header::decimal;

/// Splits the records `LENGTH KEYWORD=VALUE\n` of an extended header into keywords and values.
///
/// An item is an error if a record is malformed; it is the last one.
pub fn records(mut data: &[u8]) -> impl Iterator<Item = Result<(&[u8], &[u8]), TarFault>> {
    std::iter::from_fn(move || {
        // Some writers pad with NUL bytes.
        if data.iter().all(|byte| *byte == 0) {
            return None;
        }
        let record = split_record(data);
        data = record.map_or(&[][..], |(_, _, rest)| rest);
        Some(record.map(|(keyword, value, _)| (keyword, value)).ok_or(TarFault::Pax))
    })
}

fn split_record(data: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = data.iter().take(20).position(|byte| *byte == b' ')?;
    let len = usize::try_from(decimal(&data[..space])?).ok()?;
    let (record, rest) = data.split_at_checked(len)?;
    let body = record.get(space + 1..)?.strip_suffix(b"\n")?;
    let equals = body.iter().position(|byte| *byte == b'=')?;
    Some((&body[..equals], &body[equals + 1..], rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_framed_exactly() {
        let bad: [&[u8]; 8] = [
            b"9 size=1",
            b"8 size=1\n",
            b"11 size=1\n",
            b"size=1\n",
            b" 9 size=1\n",
            b"0 \n",
            b"99999999999999999999999 a=b\n",
            b"4 a\n",
        ];
        for data in bad {
            assert_eq!(records(data).collect::<Vec<_>>(), [Err(TarFault::Pax)], "{}", data.escape_ascii());
        }
        let good: Vec<_> = records(b"9 size=1\n12 a=b\n9 c=\n\0\0\0").collect();
        assert_eq!(good, [Ok((&b"size"[..], &b"1"[..])), Ok((b"a", b"b\n9 c="))]);
    }
}
