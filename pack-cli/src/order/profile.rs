//! The profile: a text file with a path a line, in the order of first use.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;

use sealift_store::OrderFault;
use sealift_store::kept_order::united;
use sealift_verify::escape;

use crate::{Error, FileFault};

/// The first line of a profile. Without it, a file is a plain list of paths.
const HEADER: &str = "# sealift order 1";
/// What every version's header begins with.
const ANY_HEADER: &[u8] = b"# sealift order ";

/// The files that a workload reads, in the order of their first use, relative to the root of the tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrderProfile {
    entries: Vec<OrderEntry>,
    /// Whether the paths were written by hand or by another program: a path may then be escaped as `ls` prints it, or literal.
    is_list: bool,
    /// All files of the bundle that this order is from, if any. A file that is not among them is new, and may take the place of a removed one.
    known: HashSet<Vec<u8>>,
}

/// A file of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrderEntry {
    /// The path, relative to the root: without `.`, `..` and empty names.
    pub path: Vec<u8>,
    /// The ranges of a large file that are read first, in bytes, in the order of first use and without overlaps. Empty if the whole file is read.
    pub ranges: Vec<Range<u64>>,
}

/// Only files above this size get ranges: smaller ones are stored in one piece in any case.
pub(super) const LARGE: u64 = 1 << 20;

impl OrderEntry {
    /// Makes the entry of a file of which these ranges were read. If its size is unknown, the end of the last range decides whether it is large.
    pub(crate) fn of_reads(path: Vec<u8>, ranges: Vec<Range<u64>>, size: Option<u64>) -> Self {
        let end = size.unwrap_or(u64::MAX);
        let inside = ranges.into_iter().map(|range| range.start.min(end)..range.end.min(end));
        let ranges = united(inside.collect());
        let is_large = size.or(ranges.iter().map(|range| range.end).max()).is_some_and(|size| size > LARGE);
        let is_whole = ranges.first().is_some_and(|range| *range == (0..end));
        Self { path, ranges: if is_large && !is_whole { ranges } else { Vec::new() } }
    }
}

impl OrderProfile {
    /// Makes a profile of entries in the order of use. Of several entries for a path, the first one's place counts; their ranges are united, and
    /// if one of them stands for the whole file, the result does. Entries whose path is empty are left out.
    #[must_use]
    pub fn new(entries: Vec<OrderEntry>) -> Self {
        let used = entries.into_iter().filter(|entry| !entry.path.is_empty());
        let mut placed: Vec<(usize, OrderEntry)> = used.enumerate().collect();
        placed.sort_by(|(a, one), (b, other)| one.path.cmp(&other.path).then(a.cmp(b)));
        placed.dedup_by(|(_, next), (_, first)| {
            let is_same = next.path == first.path;
            if is_same && next.ranges.is_empty() {
                first.ranges.clear();
            } else if is_same && !first.ranges.is_empty() {
                first.ranges.append(&mut next.ranges);
            }
            is_same
        });
        placed.sort_by_key(|(place, _)| *place);
        let tidy = |(_, OrderEntry { path, ranges })| OrderEntry { path, ranges: united(ranges) };
        Self { entries: placed.into_iter().map(tidy).collect(), is_list: false, known: HashSet::new() }
    }

    /// Parses a profile, or a plain list of paths. Empty lines and lines that begin with `#` are skipped, and a leading `/` or `./` is dropped.
    ///
    /// # Errors
    /// Returns an error with the line's number if a path leaves the root, a range is malformed, or the line is not UTF-8.
    pub fn parse(text: &[u8]) -> Result<Self, OrderFault> {
        let mut entries = Vec::new();
        let is_list = each_entry(text, &mut |entry, line| {
            let OrderEntry { path, ranges } = entry?;
            let path = relative(&path).map_err(|what| OrderFault::Line { line, what })?;
            entries.push(OrderEntry { path, ranges });
            Ok(())
        })?;
        Ok(Self { is_list, ..Self::new(entries) })
    }

    /// Reads a profile from a file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read; also as [`OrderProfile::parse`].
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read(path).map_err(|source| Error::Io { doing: "read", path: path.to_owned(), source })?;
        Self::parse(&text).map_err(|fault| Error::file(path, FileFault::Order(fault)))
    }

    /// The files, in the order of first use.
    #[must_use]
    pub fn entries(&self) -> &[OrderEntry] {
        &self.entries
    }

    /// Returns the profile's text, with paths as `sealift ls` prints them. Parsing it gives the same profile.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!("{HEADER}\n");
        for entry in &self.entries {
            // Otherwise, the line would be a comment.
            text.push_str(if entry.path.starts_with(b"#") { "./" } else { "" });
            text.push_str(&escape::bytes(&entry.path));
            for (number, range) in entry.ranges.iter().enumerate() {
                let separator = if number == 0 { '\t' } else { ',' };
                // Writing to a string does not fail.
                let _ = write!(text, "{separator}{}-{}", range.start, range.end - 1);
            }
            text.push('\n');
        }
        text
    }

    /// Notes that this is the order of a bundle with these files.
    pub(super) fn of_files(self, known: HashSet<Vec<u8>>) -> Self {
        Self { known, ..self }
    }

    /// Returns the files of the bundle that this order is from; none if it is not from a bundle.
    pub(crate) fn known(&self) -> &HashSet<Vec<u8>> {
        &self.known
    }

    /// Returns the names that the path of an entry may stand for: in a profile one; in a plain list also what the path is if it is escaped.
    #[must_use]
    pub fn names(&self, entry: &OrderEntry) -> Vec<Vec<u8>> {
        if self.is_list { escape::readings(&entry.path) } else { vec![entry.path.clone()] }
    }
}

/// Takes the entry in a line, with the path as it is written, or what is wrong with the line, and the line's number.
pub(crate) type Visit<'a> = dyn FnMut(Result<OrderEntry, OrderFault>, u64) -> Result<(), OrderFault> + 'a;

/// Parses the lines of a profile or list, and passes each that is not a comment to `visit`. Returns whether it is a list.
pub(crate) fn each_entry(text: &[u8], visit: &mut Visit<'_>) -> Result<bool, OrderFault> {
    let lines = text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let mut is_list = true;
    for (line, number) in lines.zip(1..) {
        let fault = |what| OrderFault::Line { line: number, what };
        if number == 1 && line.starts_with(ANY_HEADER) {
            if line != HEADER.as_bytes() {
                return Err(fault("a later version of the format, which this program does not read"));
            }
            is_list = false;
        } else if !line.is_empty() && !line.starts_with(b"#") {
            let (written, ranges) = match line.iter().position(|byte| *byte == b'\t') {
                Some(tab) => (&line[..tab], Some(&line[tab + 1..])),
                None => (line, None),
            };
            let ranges = ranges.map_or(Ok(Vec::new()), |ranges| parse_ranges(ranges, number));
            let path = named(written, is_list).map_err(fault);
            visit(path.and_then(|path| Ok(OrderEntry { path, ranges: ranges? })), number)?;
        }
    }
    Ok(is_list)
}

/// Returns the path that is written in a line.
fn named(path: &[u8], is_list: bool) -> Result<Vec<u8>, &'static str> {
    if path.iter().any(u8::is_ascii_control) {
        return Err("control characters in a path (write such a name as `sealift ls` prints it)");
    }
    match is_list {
        true => Ok(path.to_vec()),
        false if std::str::from_utf8(path).is_err() => {
            Err("the path is not UTF-8 (write such a name as `sealift ls` prints it)")
        }
        false => match escape::unescaped(path) {
            Some(path) => Ok(path),
            None if path.contains(&b'\\') => Err("a backslash that is not written \\\\, as `sealift ls` prints it"),
            None => Ok(path.to_vec()),
        },
    }
}

/// Returns a path without what does not change its meaning: a leading `/`, `.`, and empty names.
pub(crate) fn relative(path: &[u8]) -> Result<Vec<u8>, &'static str> {
    let names = || path.split(|byte| *byte == b'/').filter(|name| !name.is_empty() && *name != b".");
    if names().any(|name| name == b"..") {
        return Err("a path with .. may leave the root");
    }
    if path.contains(&0) {
        return Err("a path cannot contain NUL");
    }
    Ok(names().collect::<Vec<_>>().join(&b'/'))
}

/// Parses `FIRST-LAST,...`, both included.
fn parse_ranges(text: &[u8], line: u64) -> Result<Vec<Range<u64>>, OrderFault> {
    let ranges = text.split(|byte| *byte == b',').map(|text| {
        parse_range(text).map_err(|what| {
            let shown = &text[..text.len().min(RANGE_SHOWN)];
            OrderFault::Range { line, range: String::from_utf8_lossy(shown).into_owned(), what }
        })
    });
    Ok(united(ranges.collect::<Result<_, _>>()?))
}

/// As much of a range as messages show: two numbers of 20 digits.
const RANGE_SHOWN: usize = 41;

fn parse_range(text: &[u8]) -> Result<Range<u64>, &'static str> {
    // The system's offsets are signed.
    let number = |digits: &str| digits.parse::<i64>().ok().and_then(|number| u64::try_from(number).ok());
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let parts = std::str::from_utf8(text).ok().and_then(|text| text.split_once('-'));
    let (first, last) = parts
        .filter(|(first, last)| is_number(first) && is_number(last))
        .ok_or("write FIRST-LAST, the first and the last byte as numbers, and commas between ranges")?;
    let (first, last) =
        number(first).zip(number(last)).ok_or("it is too large: a byte's number is at most 9223372036854775807")?;
    if first > last {
        return Err("it ends before it begins: write FIRST-LAST, both included");
    }
    Ok(first..last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(profile: &OrderProfile) -> Vec<&[u8]> {
        profile.entries().iter().map(|entry| &entry.path[..]).collect()
    }

    #[test]
    fn profiles_are_lines_of_paths() {
        let list = b"# boot\n/usr/bin/init\n./etc/fstab\r\n\n.hidden\n//a/./b\n.\nusr/bin/init";
        let profile = OrderProfile::parse(list).expect("a list");
        assert_eq!(paths(&profile), [&b"usr/bin/init"[..], b"etc/fstab", b".hidden", b"a/b"]);
    }

    #[test]
    fn ranges_are_united_in_the_order_of_use() {
        let text = b"# sealift order 1\na\t10-19,0-4,15-30,50-59,31-31\nb\t0-0\na\t5-6\nb\n";
        let profile = OrderProfile::parse(text).expect("a profile");
        assert_eq!(profile.to_text(), "# sealift order 1\na\t10-31,0-6,50-59\nb\n");
    }

    #[test]
    fn files_have_ranges_that_are_large_and_not_read_whole() {
        let cases = [
            // The end of a file is within the last page that is read.
            (vec![0..4096, 4096..LARGE + 4096], Some(LARGE + 1), vec![]),
            (vec![0..1, LARGE..LARGE + 4096], Some(LARGE + 1), vec![0..1, LARGE..LARGE + 1]),
            (vec![0..1, 4096..8192], Some(LARGE), vec![]),
            // A large file of which only the first piece is read.
            (vec![0..1, 8192..LARGE], Some(LARGE + 1), vec![0..1, 8192..LARGE]),
            (vec![0..1, 8192..LARGE], None, vec![]),
            (vec![0..1, LARGE..LARGE + 1], None, vec![0..1, LARGE..LARGE + 1]),
            (vec![], Some(u64::MAX), vec![]),
        ];
        for (read, size, ranges) in cases {
            assert_eq!(OrderEntry::of_reads(Vec::new(), read.clone(), size).ranges, ranges, "{read:?} of {size:?}");
        }
    }

    #[test]
    fn a_list_may_have_names_as_they_are_or_as_ls_prints_them() {
        let list = OrderProfile::parse(b"a\\x2db\nc").expect("a list");
        assert_eq!(list.names(&list.entries()[0]), [b"a\\x2db".to_vec(), b"a-b".to_vec()]);
        let profile = OrderProfile::parse(b"# sealift order 1\na\\\\x2db").expect("a profile");
        assert_eq!(profile.names(&profile.entries()[0]), [b"a\\x2db"]);
    }

    #[test]
    fn faults_name_the_line() {
        let cases: [(&[u8], u64, &str); 8] = [
            (b"a\n../b", 2, ".."),
            (b"a\nb/../../c", 2, ".."),
            (b"# sealift order 1\n\\u{2e}./c", 2, ".."),
            (b"\x7fELF\x02\x01", 1, "control"),
            (b"a\nb\x01\t\xff", 2, "control"),
            (b"# sealift order 2\na", 1, "later version"),
            (b"# sealift order 1\n\na\\qb", 3, "backslash"),
            (b"# sealift order 1\n\xff", 2, "UTF-8"),
        ];
        for (text, number, why) in cases {
            let fault = OrderProfile::parse(text).expect_err("refused");
            let OrderFault::Line { line, what } = &fault else { panic!("{fault}") };
            assert!(*line == number && what.contains(why), "{fault}");
        }
    }

    #[test]
    fn faults_name_the_range() {
        for (ranges, wrong, why) in [
            ("", "", "write FIRST-LAST"),
            ("0-1,", "", "write FIRST-LAST"),
            ("b", "b", "write FIRST-LAST"),
            ("0-+4", "0-+4", "write FIRST-LAST"),
            ("0-1, 2-3", " 2-3", "write FIRST-LAST"),
            ("0-1\t", "0-1\t", "write FIRST-LAST"),
            ("0-1,5-4,7-6", "5-4", "it ends before it begins"),
            ("0-9223372036854775808", "0-9223372036854775808", "at most 9223372036854775807"),
            ("0-99999999999999999999", "0-99999999999999999999", "at most 9223372036854775807"),
        ] {
            let fault = OrderProfile::parse(format!("a\nb\t{ranges}").as_bytes()).expect_err("refused");
            assert!(fault.to_string().starts_with(&format!("line 2: range {wrong}: ")), "{fault}");
            assert!(fault.to_string().contains(why), "{fault}");
        }
        let longest = "0-9223372036854775807";
        OrderProfile::parse(format!("b\t{longest}").as_bytes()).expect("a range");
    }
}
