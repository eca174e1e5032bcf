//! Files that are read in parts. Each is compared with its object's id once, from its start to its end. It may change afterwards: so what its parts
//! were then is kept, and each part is compared with that whenever it is read.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::sync::Arc;

use blake3::Hasher;
use blake3::hazmat::{ChainingValue, HasherExt as _};
use parking_lot::RwLock;
use sealift_format::num::{size, up_to, wide};
use sealift_format::{Object, Row, pieces};
use sealift_verify::content::overlap;

/// Bytes of a part.
pub(super) const PART_LEN: u64 = 256 << 10;
/// Bytes per read of a whole file.
const READ_LEN: usize = 64 << 10;

/// The objects that a file was found to have, with the chaining values of their parts; none of an object of one part, which its id names.
#[derive(Debug, Default)]
pub(super) struct KnownParts(RwLock<HashMap<Row<Object>, Arc<[ChainingValue]>>>);

/// Compares content with an object, from its start to its end.
pub(super) struct Comparison<'a> {
    known: &'a KnownParts,
    number: Row<Object>,
    object: &'a Object,
    hasher: Hasher,
    /// The bytes that were hashed.
    at: u64,
    values: Vec<ChainingValue>,
}

impl KnownParts {
    /// Returns whether a file was found to have an object.
    pub(super) fn has(&self, object: Row<Object>) -> bool {
        self.0.read().contains_key(&object)
    }

    /// Notes the chaining values of the parts of a file that was compared with an object.
    pub(super) fn know(&self, object: Row<Object>, values: Vec<ChainingValue>) {
        self.0.write().insert(object, values.into());
    }

    /// Returns where the first part begins that has bytes of a range.
    pub(super) fn start_of(range: &Range<u64>) -> u64 {
        range.start - range.start % PART_LEN
    }

    /// Begins to compare content with an object.
    pub(super) fn compare<'a>(&'a self, number: Row<Object>, object: &'a Object) -> Comparison<'a> {
        Comparison { known: self, number, object, hasher: Hasher::new(), at: 0, values: Vec::new() }
    }

    /// Appends a range of an object that [`Self::has`] to `out`. `read` fills a buffer from an offset of a file that should have the object; the
    /// offsets ascend. Returns whether the parts in which the range lies are those of the object; nothing is appended otherwise.
    ///
    /// # Errors
    /// Returns an error of `read`, except [`ErrorKind::UnexpectedEof`].
    pub(super) fn read(
        &self,
        number: Row<Object>,
        object: &Object,
        mut read: impl FnMut(&mut [u8], u64) -> io::Result<()>,
        range: &Range<u64>,
        out: &mut Vec<u8>,
    ) -> io::Result<bool> {
        let Some(values) = self.0.read().get(&number).map(Arc::clone) else { return Ok(false) };
        let (start, mut part) = (out.len(), Vec::new());
        for number in range.start / PART_LEN..range.end.div_ceil(PART_LEN) {
            let at = number * PART_LEN;
            let end = object.size.min(at + PART_LEN).max(at);
            // A whole part is read to its place.
            let (is_whole, from) = (range.start <= at && end <= range.end, out.len());
            let into = if is_whole { &mut *out } else { &mut part };
            let behind = if is_whole { from } else { 0 };
            into.resize(behind + size(end - at), 0);
            let into = &mut into[behind..];
            let is_right = match read(into, at) {
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => false,
                read => read.map(|()| match values.get(size(number)) {
                    Some(value) => pieces::chaining_value(at, std::iter::once(&*into)) == *value,
                    None => values.is_empty() && blake3::hash(into).as_bytes() == &object.id,
                })?,
            };
            if !is_right {
                out.truncate(start);
                return Ok(false);
            }
            if !is_whole {
                out.extend(overlap(&part, at, range));
            }
        }
        Ok(true)
    }
}

impl Comparison<'_> {
    /// Takes all that a file has.
    pub(super) fn take_all(&mut self, mut from: impl Read) -> io::Result<()> {
        let mut buffer = vec![0; READ_LEN];
        loop {
            match from.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(len) => self.take(&buffer[..len]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes what follows.
    pub(super) fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let within = self.at % PART_LEN;
            if within == 0 && self.at > 0 {
                self.end_part();
                self.hasher.set_input_offset(self.at);
            }
            let (part, rest) = bytes.split_at(up_to(PART_LEN - within, bytes.len()));
            self.hasher.update(part);
            self.at += wide(part.len());
            bytes = rest;
        }
    }

    /// Returns whether that was the object, whose parts are known then.
    pub(super) fn finish(mut self) -> bool {
        let id = if self.values.is_empty() {
            Some(*self.hasher.finalize().as_bytes())
        } else {
            self.end_part();
            pieces::object_id(&self.values)
        };
        let is_right = id == Some(self.object.id);
        if is_right {
            self.known.know(self.number, self.values);
        }
        is_right
    }

    fn end_part(&mut self) {
        self.values.push(std::mem::take(&mut self.hasher).finalize_non_root());
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use super::*;

    #[test]
    fn parts_are_those_of_the_object_or_are_not_read() {
        for len in [0, 1, PART_LEN - 1, PART_LEN, PART_LEN + 1, 3 * PART_LEN, 4 * PART_LEN + 17] {
            let content: Vec<u8> = (0..251).cycle().take(size(len)).collect();
            let object = Object { id: *blake3::hash(&content).as_bytes(), size: len };
            let (known, mut file) = (KnownParts::default(), tempfile::tempfile().expect("a file"));
            io::Write::write_all(&mut file, &content).expect("written");
            let read = |range: Range<u64>| {
                let mut out = vec![7];
                let is_right = known
                    .read(Row::FIRST, &object, |part, at| file.read_exact_at(part, at), &range, &mut out)
                    .expect("it is read");
                (is_right, out)
            };
            assert_eq!(read(0..len.min(1)), (false, vec![7]), "{len}: it is not known yet");
            for (wrong, is_right) in [(true, false), (false, true)] {
                let mut comparison = known.compare(Row::FIRST, &object);
                // In steps that part nothing evenly.
                content.chunks(99_991).for_each(|bytes| comparison.take(bytes));
                comparison.take(if wrong { b"x" } else { b"" });
                assert_eq!((comparison.finish(), known.has(Row::FIRST)), (is_right, is_right), "{len}");
            }
            let ranges = [0..len, 0..0, len / 2..len, len.saturating_sub(3)..len, len.min(9)..len.min(PART_LEN + 5)];
            for range in ranges {
                let wanted = [&[7][..], &content[size(range.start)..size(range.end)]].concat();
                assert!(read(range.clone()) == (true, wanted), "{len}: {range:?}");
            }
            if len == 0 {
                continue;
            }
            file.write_all_at(&[content[size(len - 1)] ^ 1], len - 1).expect("written");
            assert_eq!(read(len - 1..len), (false, vec![7]), "{len}: it changed");
            assert_eq!(read(0..1).0, len > PART_LEN, "{len}");
            file.set_len(len - 1).expect("cut");
            assert_eq!(read(0..len), (false, vec![7]), "{len}: it is shorter");
        }
    }
}
