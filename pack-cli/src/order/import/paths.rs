//! Lists of paths, as `find` or a package manager prints them.

use std::io::BufRead;

use sealift_store::OrderFault;

use super::Fault;
use super::root::Rooted;
use crate::order::profile::{OrderEntry, entries};

/// Reads a list: paths that end with a zero byte, as they are, or else lines of paths, as in a profile.
pub(super) fn read(input: &mut dyn BufRead, rooted: &mut Rooted) -> Result<Vec<OrderEntry>, Fault> {
    let mut text = Vec::new();
    input.read_to_end(&mut text)?;
    if !text.contains(&0) {
        return Ok(entries(&text, &mut |path| rooted.below(path))?.0);
    }
    let mut entries = Vec::new();
    for (path, number) in text.split(|byte| *byte == 0).zip(1..) {
        let below = rooted.below(path).map_err(|what| OrderFault::Record { number, what })?;
        entries.extend(below.map(|path| OrderEntry { path, ranges: Vec::new() }));
    }
    Ok(entries)
}
