//! The lists that `mksquashfs -sort` and `genisoimage -sort` take, in which live systems keep what is read first: a path and a priority per line; the
//! highest priority comes first. Spaces and backslashes in a path have a backslash before them.

use std::cmp::Reverse;
use std::io::BufRead;

use sealift_store::OrderFault;

use super::root::Rooted;
use super::{Fault, lines};
use crate::order::profile::OrderEntry;

/// Reads a list. Files of priority 0, which all unlisted files have, and below are left out.
pub(super) fn read(input: &mut dyn BufRead, rooted: &mut Rooted) -> Result<Vec<OrderEntry>, Fault> {
    let mut found = Vec::new();
    lines::each(input, |line, number| {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            return Ok(());
        }
        match entry(line) {
            Some((path, priority)) => {
                let below = rooted.below(&path);
                found.extend(below.filter(|_| priority > 0).map(|path| (priority, path)));
            }
            None => {
                let what = "expected a path and a priority from -32768 to 32767";
                rooted.skip(OrderFault::Line { line: number, what });
            }
        }
        Ok(())
    })?;
    // Stable: equal priorities stay in the order of the list.
    found.sort_by_key(|(priority, _)| Reverse(*priority));
    Ok(found.into_iter().map(|(_, path)| OrderEntry { path, ranges: Vec::new() }).collect())
}

fn entry(line: &[u8]) -> Option<(Vec<u8>, i16)> {
    let mut path = Vec::new();
    let mut bytes = line.iter();
    loop {
        match bytes.next()? {
            b'\\' => path.push(*bytes.next()?),
            byte if byte.is_ascii_whitespace() => break,
            byte => path.push(*byte),
        }
    }
    let priority = std::str::from_utf8(bytes.as_slice()).ok()?.trim().parse().ok()?;
    Some((path, priority))
}
