//! Lists of paths, as `find` or a package manager prints them.

use std::io::BufRead;

use sealift_store::OrderFault;

use super::Fault;
use super::root::Rooted;
use crate::order::profile::{OrderEntry, each_entry};

/// The longest name of a file, and the longest path with its terminating zero byte, on Linux.
const NAME_MAX: usize = 255;
const PATH_MAX: usize = 4096;

/// Reads a list: literal paths that each end with a zero byte; or, if there is no zero byte, lines of paths as in a profile.
pub(super) fn read(input: &mut dyn BufRead, rooted: &mut Rooted) -> Result<Vec<OrderEntry>, Fault> {
    let (mut text, mut entries) = (Vec::new(), Vec::new());
    input.read_to_end(&mut text)?;
    if !text.contains(&0) {
        each_entry(&text, &mut |entry, _| {
            match entry {
                Ok(OrderEntry { path, ranges }) => {
                    entries.extend(rooted.below(&path).map(|path| OrderEntry { path, ranges }));
                }
                Err(fault) => rooted.skip(fault),
            }
            Ok(())
        })?;
        return Ok(entries);
    }
    for (path, number) in text.split_inclusive(|byte| *byte == 0).zip(1..) {
        let path = ended(path).map_err(|what| OrderFault::Record { number, what })?;
        entries.extend(rooted.below(path).map(|path| OrderEntry { path, ranges: Vec::new() }));
    }
    Ok(entries)
}

/// Returns a path without its terminating zero byte, or why it is not a path: apart from that, any bytes may be one.
fn ended(path: &[u8]) -> Result<&[u8], &'static str> {
    match path.strip_suffix(b"\0") {
        None => Err("it does not end with NUL, as the others do"),
        Some([]) => Err("it is empty: not a list of paths"),
        Some(path) if path.len() >= PATH_MAX || path.split(|byte| *byte == b'/').any(|name| name.len() > NAME_MAX) => {
            Err("it is longer than a path may be: not a list of paths")
        }
        Some(path) => Ok(path),
    }
}
