//! The pack files of systemd-readahead (systemd 217 removed it). The first line names the host and ends with `VERSION=2`; a
//! letter after it says whether the medium rotates. Then follow records: a path and a newline, the inode's number (8 bytes), and pairs of page
//! numbers (4 bytes each), of a first page and of the one after a last; two zeros end a record. A file without pairs is read whole. Numbers are in
//! the host's byte order; it was mostly used on hosts that are little-endian and have pages of 4096 bytes.

use std::io::BufRead;

use sealift_store::OrderFault;

use super::Fault;
use super::root::Rooted;
use crate::order::profile::OrderEntry;

const PAGE: u64 = 4096;
/// What ends the first line.
const VERSION: &[u8] = b";VERSION=2\n";

/// Reads a pack file.
pub(super) fn read(input: &mut dyn BufRead, rooted: &mut Rooted) -> Result<Vec<OrderEntry>, Fault> {
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes)?;
    let unknown = OrderFault::Whole("not a pack file of systemd-readahead, or one of another version");
    let line = bytes.iter().position(|byte| *byte == b'\n').map_or(&[][..], |end| &bytes[..=end]);
    let (Some(b'S' | b'R'), true) = (bytes.get(line.len()), line.ends_with(VERSION)) else {
        return Err(unknown.into());
    };
    let mut rest = &bytes[line.len() + 1..];
    let mut entries = Vec::new();
    while !rest.is_empty() {
        let offset = sealift_format::num::wide(bytes.len() - rest.len());
        let fault = |what| OrderFault::Offset { offset, what };
        let (path, ranges) = record(&mut rest).map_err(fault)?;
        entries.extend(rooted.below(path).map(|path| OrderEntry { path, ranges }));
    }
    Ok(entries)
}

/// Takes a record from the front.
fn record<'a>(rest: &mut &'a [u8]) -> Result<(&'a [u8], Vec<std::ops::Range<u64>>), &'static str> {
    const SHORT: &str = "the pack file ends within a file's record";
    let end = rest.iter().position(|byte| *byte == b'\n').ok_or(SHORT)?;
    let (path, after) = (&rest[..end], &rest[end + 1..]);
    if !path.starts_with(b"/") {
        return Err("a record does not begin with an absolute path");
    }
    let (_, mut after) = after.split_first_chunk::<8>().ok_or(SHORT)?;
    let mut ranges = Vec::new();
    loop {
        let (pair, next) = after.split_first_chunk::<8>().ok_or(SHORT)?;
        after = next;
        let [a, b, c, d, e, f, g, h] = *pair;
        let (first, end) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
        if (first, end) == (0, 0) {
            break;
        }
        if end <= first {
            return Err("a range of pages ends before it begins");
        }
        ranges.push(u64::from(first) * PAGE..u64::from(end) * PAGE);
    }
    *rest = after;
    Ok((path, ranges))
}
