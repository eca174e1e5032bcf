//! What the sections of an index have in common: rows by their numbers, and the targets of symbolic links.

use alloc::vec::Vec;

use crate::bytes::Reader;
use crate::num::{fit, wide};
use crate::{Error, Part};

/// A row that is not as it has to be.
pub(crate) fn row_fault(what: &'static str, row: usize) -> Error {
    Error::Row { part: Part::Index, what, row: wide(row) }
}

/// A place in an index, or a count of its rows, neither of which passes 2^32-1.
pub(crate) fn number(at: usize) -> Result<u32, Error> {
    fit(at, "the length of an index")
}

/// Reads the lengths of targets and the targets; returns where each lies.
pub(crate) fn parse_symlinks(reader: &mut Reader<'_>, count: usize) -> Result<Vec<(u32, u32)>, Error> {
    let lens = reader.planes::<2>(count)?.u16s();
    let mut targets = Vec::with_capacity(count);
    for (at, len) in lens.enumerate() {
        let start = number(reader.position())?;
        let target = reader.take(len.into())?;
        if !(1..=4095).contains(&len) || target.contains(&0) {
            return Err(row_fault("a symbolic link's target is empty, too long or has a NUL byte", at));
        }
        targets.push((start, len.into()));
    }
    Ok(targets)
}
