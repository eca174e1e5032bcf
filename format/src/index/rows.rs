//! What the sections of an index and of a difference share.

use alloc::string::String;
use alloc::vec::Vec;

use crate::attributes::Attributes;
use crate::bytes::Reader;
use crate::index::{Device, Symlink};
use crate::name::is_ref_name;
use crate::num::{fit, wide};
use crate::{Error, Part, Row};

/// Returns an error about a row.
pub(crate) fn row_fault(what: &'static str, row: usize) -> Error {
    Error::Row { part: Part::Index, what, row: wide(row) }
}

/// Converts a position in an index or a count of its rows, neither of which exceeds 2^32-1.
pub(crate) fn number(at: usize) -> Result<u32, Error> {
    fit(at, "the length of an index")
}

/// Reads kind and name of a ref, whose name must be greater than `last`. Returns whether it is a commit, and the name.
pub(crate) fn parse_ref(reader: &mut Reader<'_>, last: Option<&String>) -> Result<(bool, String), Error> {
    let is_commit = match reader.u8()? {
        0 => false,
        1 => true,
        found => return Err(Error::Unsupported { part: Part::Index, what: "kind of ref", found: found.into() }),
    };
    let len = reader.u8()?;
    let name = match core::str::from_utf8(reader.take(len.into())?) {
        Ok(name) if is_ref_name(name) => String::from(name),
        _ => return Err(reader.malformed("invalid name of a ref")),
    };
    if last.is_some_and(|last| *last >= name) {
        return Err(reader.malformed("refs do not ascend"));
    }
    Ok((is_commit, name))
}

/// Reads a section that consists of one column.
pub(crate) fn column(mut reader: Reader<'_>, count: usize) -> Result<Vec<u32>, Error> {
    let values = reader.planes::<4>(count)?.u32s().collect();
    reader.finish()?;
    Ok(values)
}

/// Reads the section of devices.
pub(crate) fn parse_devices(mut reader: Reader<'_>, count: usize) -> Result<Vec<Device>, Error> {
    let majors = reader.planes::<4>(count)?.u32s();
    let minors = reader.planes::<4>(count)?.u32s();
    reader.finish()?;
    Ok(majors.zip(minors).map(|(major, minor)| Device { major, minor }).collect())
}

/// Reads the lengths of targets, and the targets. Returns where each lies.
pub(crate) fn parse_symlinks(reader: &mut Reader<'_>, count: usize) -> Result<Vec<Symlink>, Error> {
    let lens = reader.planes::<2>(count)?.u16s();
    let mut symlinks = Vec::with_capacity(count);
    for (at, len) in lens.enumerate() {
        let start = number(reader.position())?;
        let target = reader.take(len.into())?;
        if !(1..=4095).contains(&len) || target.contains(&0) {
            return Err(row_fault("a symbolic link's target is empty, too long or has a NUL byte", at));
        }
        symlinks.push(Symlink { at: start, len: len.into() });
    }
    Ok(symlinks)
}

/// Reads the lengths of targets, and the targets. Returns where each lies in the bytes of all targets, and these bytes.
pub(crate) fn parse_targets(reader: &mut Reader<'_>, count: usize) -> Result<(Vec<Symlink>, Vec<u8>), Error> {
    let mut lens = reader.clone();
    lens.planes::<2>(count)?;
    let start = number(lens.position())?;
    let mut symlinks = parse_symlinks(reader, count)?;
    symlinks.iter_mut().for_each(|link| link.at -= start);
    let len = reader.position() - lens.position();
    Ok((symlinks, lens.take(len)?.to_vec()))
}

/// Notes that a row of attributes is used, and checks that rows are first used in ascending order.
pub(crate) fn use_attributes(
    used: &mut usize,
    row: Option<Row<Attributes>>,
    attributes: &[Attributes],
    at: usize,
) -> Result<Row<Attributes>, Error> {
    let Some(row) = row.filter(|row| row.at() <= *used && row.at() < attributes.len()) else {
        return Err(row_fault("attributes are not used in ascending order", at));
    };
    *used = (*used).max(row.at() + 1);
    Ok(row)
}
