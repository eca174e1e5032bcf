//! Reads and writes integers, byte planes and section lists (core 1 and 3.1).

use alloc::vec::Vec;

use crate::num::{fit, wide};
use crate::{Error, Part, Row, Table};

/// A cursor over the bytes of one structure.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    part: Part,
    all: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(part: Part, bytes: &'a [u8]) -> Self {
        Self { part, all: bytes, at: 0 }
    }

    /// Returns the cursor's position, in bytes from the structure's start.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.all.get(self.at..).unwrap_or_default()
    }

    pub(crate) fn malformed(&self, what: &'static str) -> Error {
        Error::Malformed { part: self.part, what, at: wide(self.at) }
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], Error> {
        let end = self.at.checked_add(len).filter(|&end| end <= self.all.len());
        let Some(end) = end else {
            return Err(self.malformed("it ends within a field"));
        };
        let bytes = self.all.get(self.at..end).unwrap_or_default();
        self.at = end;
        Ok(bytes)
    }

    /// The same for a length of the format, which may exceed memory.
    pub(crate) fn take_wide(&mut self, len: u64) -> Result<&'a [u8], Error> {
        let len = usize::try_from(len).map_err(|_| self.malformed("it ends within a field"))?;
        self.take(len)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Error> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Error> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Error> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn i64(&mut self) -> Result<i64, Error> {
        self.array().map(i64::from_le_bytes)
    }

    /// Reads a u64 count of rows. A row takes at least one byte of what follows, so a
    /// count that exceeds the bytes left is refused before anything is allocated for it.
    pub(crate) fn count(&mut self) -> Result<usize, Error> {
        let count = self.u64()?;
        self.rows(count)
    }

    /// Reads a u32 count of rows, as [`Self::count`].
    pub(crate) fn count32(&mut self) -> Result<usize, Error> {
        let count = self.u32()?;
        self.rows(count.into())
    }

    fn rows(&self, count: u64) -> Result<usize, Error> {
        match usize::try_from(count) {
            Ok(count) if count <= self.rest().len() && u32::try_from(count).is_ok() => Ok(count),
            _ => Err(self.malformed("a count is larger than what follows it")),
        }
    }

    pub(crate) fn planes<const W: usize>(&mut self, count: usize) -> Result<Planes<'a, W>, Error> {
        let Some(len) = count.checked_mul(W) else {
            return Err(self.malformed("a column is longer than memory"));
        };
        Ok(Planes { bytes: self.take(len)?, count })
    }

    /// Checks that the structure ends here.
    ///
    /// # Errors
    /// Returns an error if bytes are left.
    pub(crate) fn finish(self) -> Result<(), Error> {
        if self.rest().is_empty() {
            return Ok(());
        }
        Err(self.malformed("bytes are left after the last field"))
    }
}

/// A column of W-byte integers, stored as byte planes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planes<'a, const W: usize> {
    bytes: &'a [u8],
    count: usize,
}

/// Reads a row of a column. For browsers, this is not inlined, so that the module contains it only once.
#[cfg_attr(target_arch = "wasm32", inline(never))]
fn gather(bytes: &[u8], count: usize, row: usize, value: &mut [u8]) {
    let mut at = row;
    for byte in value {
        *byte = bytes[at];
        at += count;
    }
}

impl<'a, const W: usize> Planes<'a, W> {
    fn rows(self) -> impl ExactSizeIterator<Item = [u8; W]> + 'a {
        (0..self.count).map(move |row| {
            let mut value = [0; W];
            gather(self.bytes, self.count, row, &mut value);
            value
        })
    }
}

impl<'a> Planes<'a, 2> {
    pub(crate) fn u16s(self) -> impl ExactSizeIterator<Item = u16> + 'a {
        self.rows().map(u16::from_le_bytes)
    }
}

impl<'a> Planes<'a, 4> {
    pub(crate) fn u32s(self) -> impl ExactSizeIterator<Item = u32> + 'a {
        self.rows().map(u32::from_le_bytes)
    }
}

impl<'a> Planes<'a, 8> {
    pub(crate) fn u64s(self) -> impl ExactSizeIterator<Item = u64> + 'a {
        self.rows().map(u64::from_le_bytes)
    }

    pub(crate) fn i64s(self) -> impl ExactSizeIterator<Item = i64> + 'a {
        self.rows().map(i64::from_le_bytes)
    }
}

/// Appends `values` to `out` as byte planes of W bytes.
pub(crate) fn put_planes<const W: usize>(out: &mut Vec<u8>, values: impl Iterator<Item = [u8; W]> + Clone) {
    for plane in 0..W {
        out.extend(values.clone().map(|value| value[plane]));
    }
}

/// Like [`fit`], for builders that report the first length that does not fit only when they finish.
#[derive(Debug, Default)]
pub(crate) struct Widths {
    fault: Option<Error>,
}

impl Widths {
    pub(crate) fn fit<T: TryFrom<usize> + Default>(&mut self, len: usize, what: &'static str) -> T {
        fit(len, what).unwrap_or_else(|error| {
            self.fault.get_or_insert(error);
            T::default()
        })
    }

    /// As [`Row::after`].
    pub(crate) fn row<T: Table>(&mut self, rows: usize) -> Row<T> {
        Row::after(rows).unwrap_or_else(|error| {
            self.fault.get_or_insert(error);
            Row::FIRST
        })
    }

    /// # Errors
    /// Returns the first fault.
    pub(crate) fn check(self) -> Result<(), Error> {
        self.fault.map_or(Ok(()), Err)
    }
}

/// Appends a column of numbers.
pub(crate) fn put_u32s(out: &mut Vec<u8>, column: impl Iterator<Item = u32> + Clone) {
    put_planes(out, column.map(u32::to_le_bytes));
}

/// Appends a section of a section list.
pub(crate) fn put_section(out: &mut Vec<u8>, id: u16, must_understand: bool, payload: &[u8]) {
    write_section(out, id, must_understand, |out| out.extend(payload));
}

/// Appends a section whose payload `write` appends.
pub(crate) fn write_section(out: &mut Vec<u8>, id: u16, must_understand: bool, write: impl FnOnce(&mut Vec<u8>)) {
    out.extend(id.to_le_bytes());
    out.extend(u16::from(must_understand).to_le_bytes());
    let at = out.len();
    out.extend([0; 8]);
    write(out);
    let len = wide(out.len() - at - 8);
    out[at..at + 8].copy_from_slice(&len.to_le_bytes());
}

/// The rule for a section in a structure's table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SectionRule {
    Required,
    /// It may be missing, but readers must understand it.
    Optional,
    Ignorable,
    /// A number without a meaning yet, below one that has one.
    Unassigned,
}

/// Parses a section list and returns a reader for each section that is there. `rules` are those of the sections from 1 on.
///
/// # Errors
/// Returns an error if ids do not ascend, flags break the rules, a required section is missing, or an unknown
/// section must be understood or is in the index.
pub(crate) fn read_sections<'a, const N: usize>(
    part: Part,
    bytes: &'a [u8],
    rules: &[SectionRule; N],
) -> Result<[Option<Reader<'a>>; N], Error> {
    let mut found = [const { None }; N];
    find_sections(part, bytes, rules, &mut found)?;
    Ok(found)
}

/// The same, without a copy of the code for each number of sections.
fn find_sections<'a>(
    part: Part,
    bytes: &'a [u8],
    rules: &[SectionRule],
    found: &mut [Option<Reader<'a>>],
) -> Result<(), Error> {
    let mut reader = Reader::new(part, bytes);
    let mut last = None;
    while !reader.rest().is_empty() {
        let (id, flags, len) = (reader.u16()?, reader.u16()?, reader.u64()?);
        if last.is_some_and(|last| id <= last) {
            return Err(reader.malformed("section ids do not ascend"));
        }
        last = Some(id);
        if flags > 1 {
            return Err(reader.malformed("a section has an unknown flag"));
        }
        let payload = reader.take_wide(len)?;
        let at = usize::from(id).wrapping_sub(1);
        match rules.get(at).filter(|rule| **rule != SectionRule::Unassigned) {
            Some(rule) if (*rule != SectionRule::Ignorable) == (flags == 1) => {
                found[at] = Some(Reader { part, all: &bytes[..reader.at], at: reader.at - payload.len() });
            }
            Some(_) => return Err(reader.malformed("a section's must-understand flag is wrong")),
            None if flags == 1 => {
                return Err(Error::Unsupported { part, what: "section", found: id.into() });
            }
            // Equal contents must have equal indexes, so an index may contain nothing else.
            None if part == Part::Index => return Err(reader.malformed("a section that an index does not have")),
            None => {}
        }
    }
    let missing = rules.iter().zip(found).any(|(rule, found)| *rule == SectionRule::Required && found.is_none());
    if missing {
        return Err(reader.malformed("a required section is missing"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn planes_carry_the_values_in_order() {
        let values = [0x0102_0304_u32, 0xa0b0_c0d0];
        let mut bytes = Vec::new();
        put_planes(&mut bytes, values.iter().map(|v| v.to_le_bytes()));
        assert_eq!(bytes, [0x04, 0xd0, 0x03, 0xc0, 0x02, 0xb0, 0x01, 0xa0]);
        let mut reader = Reader::new(Part::Index, &bytes);
        let back: Vec<u32> = reader.planes::<4>(2).expect("eight bytes are there").u32s().collect();
        assert_eq!(back, values);
        reader.finish().expect("nothing is left");
    }
}
