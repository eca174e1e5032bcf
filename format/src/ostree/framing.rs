//! The layout of GVariant containers: each member is aligned with zeros before it, and the ends of members of variable length follow.

use alloc::vec::Vec;

use super::Malformed;
use crate::num::wide;

/// What the layout of a container depends on in a member's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// The alignment in bytes, from the container's start: 1, 2, 4 or 8.
    pub(super) align: usize,
    /// The size in bytes, if it is the same for all values of the type.
    pub(super) size: Option<usize>,
}

impl Shape {
    /// `u`
    pub(super) const U32: Self = Self::fixed(4);
    /// `t`
    pub(super) const U64: Self = Self::fixed(8);
    /// `s`, `ay`, and arrays and tuples of these.
    pub(super) const BYTES: Self = Self::variable(1);
    /// `v`, `a{sv}`
    pub(super) const VARIANT: Self = Self::variable(8);

    pub(super) const fn fixed(len: usize) -> Self {
        Self { align: len, size: Some(len) }
    }

    pub(super) const fn variable(align: usize) -> Self {
        Self { align, size: None }
    }
}

const ENDS: Malformed = Malformed::new("a container's members do not end in order within it");
const WIDTH: Malformed = Malformed::new("a container has longer offsets than it needs");
const PADDING: Malformed = Malformed::new("padding is not zero");

/// Returns the bytes of each offset in a container of `len` bytes.
fn width_of(len: usize) -> usize {
    match wide(len) {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    }
}

/// Returns the bytes of each of `count` offsets that follow `body` bytes: the fewest that can express the container's end.
fn width_for(body: usize, count: usize) -> usize {
    let fits = |width: &usize| width_of(body.saturating_add(count.saturating_mul(*width))) <= *width;
    [1, 2, 4].into_iter().find(fits).unwrap_or(8)
}

fn offset(bytes: &[u8]) -> Result<usize, Malformed> {
    let mut wide = [0; 8];
    wide.get_mut(..bytes.len()).ok_or(ENDS)?.copy_from_slice(bytes);
    usize::try_from(u64::from_le_bytes(wide)).map_err(|_| ENDS)
}

/// Returns where the next member begins, after checking that the bytes of alignment before it are zero.
fn padded(bytes: &[u8], at: usize, align: usize) -> Result<usize, Malformed> {
    let start = at.checked_next_multiple_of(align).ok_or(ENDS)?;
    let padding = bytes.get(at..start).ok_or(ENDS)?;
    if padding.iter().all(|byte| *byte == 0) { Ok(start) } else { Err(PADDING) }
}

/// Calls `take` with each member of a tuple or dictionary entry.
pub(super) fn for_each_member<'a>(
    bytes: &'a [u8],
    shapes: impl Iterator<Item = Shape> + Clone,
    mut take: impl FnMut(&'a [u8]) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    let count = shapes.clone().count();
    let framed = shapes.clone().take(count.saturating_sub(1)).filter(|shape| shape.size.is_none()).count();
    let width = width_of(bytes.len());
    let body = framed.checked_mul(width).and_then(|framing| bytes.len().checked_sub(framing)).ok_or(ENDS)?;
    if framed > 0 && width_for(body, framed) != width {
        return Err(WIDTH);
    }
    let (members, framing) = bytes.split_at(body);
    let mut ends = framing.rchunks_exact(width);
    let mut at = 0;
    for (number, shape) in shapes.clone().enumerate() {
        let start = padded(members, at, shape.align)?;
        at = match shape.size {
            Some(size) => start.checked_add(size).ok_or(ENDS)?,
            None if number + 1 == count => body,
            None => offset(ends.next().ok_or(ENDS)?)?,
        };
        take(members.get(start..at).ok_or(ENDS)?)?;
    }
    // A tuple of fixed size is padded at its end to its own alignment, and is never empty.
    if shapes.clone().all(|shape| shape.size.is_some()) {
        let align = shapes.map(|shape| shape.align).max().unwrap_or(1);
        at = padded(members, at.max(usize::from(count == 0)), align)?;
        if count == 0 && members.first() != Some(&0) {
            return Err(PADDING);
        }
    }
    if at == body { Ok(()) } else { Err(ENDS) }
}

/// Returns the members of a tuple.
pub(super) fn members<'a, const N: usize>(bytes: &'a [u8], shapes: [Shape; N]) -> Result<[&'a [u8]; N], Malformed> {
    let mut found: [&'a [u8]; N] = [&[]; N];
    let mut slots = found.iter_mut();
    for_each_member(bytes, shapes.into_iter(), |member| {
        *slots.next().ok_or(ENDS)? = member;
        Ok(())
    })?;
    Ok(found)
}

/// The elements of an array, of variable length.
pub(super) struct Elements<'a> {
    body: &'a [u8],
    ends: core::slice::ChunksExact<'a, u8>,
    align: usize,
    at: usize,
}

impl<'a> Elements<'a> {
    pub(super) fn of(bytes: &'a [u8], align: usize) -> Result<Self, Malformed> {
        let width = width_of(bytes.len());
        // The end of the last element is where the list of ends begins.
        let body = match bytes.len().checked_sub(width) {
            Some(last) => offset(bytes.get(last..).ok_or(ENDS)?)?,
            None => 0,
        };
        let (body, framing) = bytes.split_at_checked(body).ok_or(ENDS)?;
        let ends = framing.chunks_exact(width);
        if !ends.remainder().is_empty() || (framing.is_empty() && !body.is_empty()) {
            return Err(ENDS);
        }
        if ends.len() > 0 && width_for(body.len(), ends.len()) != width {
            return Err(WIDTH);
        }
        Ok(Self { body, ends, align, at: 0 })
    }

    /// Returns how many elements are left.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns where the last element ended.
    pub(super) fn place(&self) -> usize {
        self.at
    }

    fn element(&mut self, end: &[u8]) -> Result<&'a [u8], Malformed> {
        let start = padded(self.body, self.at, self.align)?;
        self.at = offset(end)?;
        self.body.get(start..self.at).ok_or(ENDS)
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<&'a [u8], Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let end = self.ends.next()?;
        Some(self.element(end))
    }
}

/// Returns the text of a GVariant string, which ends with its only NUL byte.
pub(super) fn text(bytes: &[u8]) -> Result<&str, Malformed> {
    match bytes.split_last() {
        Some((0, text)) if !text.contains(&0) => {
            core::str::from_utf8(text).map_err(|_| Malformed::new("a string is not UTF-8"))
        }
        _ => Err(Malformed::new("a string has no NUL byte at its end, or one within")),
    }
}

/// Builds a container.
#[derive(Default)]
pub(super) struct Writer {
    body: Vec<u8>,
    ends: Vec<usize>,
    last_varies: bool,
}

impl Writer {
    pub(super) fn put(&mut self, shape: Shape, member: &[u8]) {
        self.body.resize(self.body.len().next_multiple_of(shape.align), 0);
        self.body.extend(member);
        self.last_varies = shape.size.is_none();
        if self.last_varies {
            self.ends.push(self.body.len());
        }
    }

    pub(super) fn put_text(&mut self, text: &str) {
        self.put(Shape::BYTES, &[text.as_bytes(), &[0]].concat());
    }

    pub(super) fn put_u32(&mut self, value: u32) {
        self.put(Shape::U32, &value.to_be_bytes());
    }

    pub(super) fn put_u64(&mut self, value: u64) {
        self.put(Shape::U64, &value.to_be_bytes());
    }

    /// Ends a tuple with a member of variable length.
    pub(super) fn tuple(mut self) -> Vec<u8> {
        if self.last_varies {
            self.ends.pop();
        }
        self.ends.reverse();
        self.framed()
    }

    /// Ends an array of elements of variable length.
    pub(super) fn array(self) -> Vec<u8> {
        self.framed()
    }

    fn framed(mut self) -> Vec<u8> {
        let width = width_for(self.body.len(), self.ends.len());
        for end in self.ends {
            self.body.extend(wide(end).to_le_bytes().into_iter().take(width));
        }
        self.body
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn offsets_are_as_short_as_they_can_be() {
        for len in [0, 1, 250, 251, 252, 253, 254, 255, 256, 65_529, 65_530, 65_531, 65_532, 65_533, 65_536] {
            let content = vec![7; len];
            let mut writer = Writer::default();
            writer.put(Shape::BYTES, &content);
            writer.put(Shape::BYTES, b"");
            let bytes = writer.tuple();
            assert_eq!(members(&bytes, [Shape::BYTES; 2]), Ok([&*content, b""]), "{len}");
            let mut writer = Writer::default();
            writer.put(Shape::BYTES, &content);
            writer.put(Shape::BYTES, b"");
            let bytes = writer.array();
            let back: Result<Vec<_>, _> = Elements::of(&bytes, 1).expect("it is an array").collect();
            assert_eq!(back, Ok(vec![&*content, b""]), "{len}");
        }
        // 254 bytes and an offset of one byte: with an offset of two bytes, it would be long enough to need them.
        let mut wide = vec![7; 254];
        wide.extend([254, 0]);
        assert_eq!(members(&wide, [Shape::BYTES; 2]), Err(WIDTH));
    }

    #[test]
    fn tuples_of_one_size_are_padded() {
        let shapes = [Shape::U32, Shape::fixed(1)];
        let padded: &[u8] = &[1, 2, 3, 4, 5, 0, 0, 0];
        assert_eq!(members(padded, shapes), Ok([&padded[..4], &padded[4..5]]));
        assert_eq!(members(&padded[..5], shapes), Err(ENDS));
        assert_eq!(members(&[1, 2, 3, 4, 5, 0, 1, 0], shapes), Err(PADDING));
        assert_eq!(members(&[0], []), Ok([]));
        for unit in [&[][..], &[1], &[0, 0]] {
            assert!(members(unit, []).is_err());
        }
    }

    #[test]
    fn ends_are_in_order_and_padding_is_zero() {
        let three = [Shape::BYTES; 3];
        assert_eq!(members(b"abc\x02\x01", three), Ok([&b"a"[..], b"b", b"c"]));
        assert_eq!(members(b"abc\x01\x02", three), Err(ENDS));
        assert_eq!(members(b"abc\x02\x04", three), Err(ENDS));
        let shapes = [Shape::BYTES, Shape::U32];
        assert_eq!(members(b"a\0\0\0\x01\0\0\0\x01", shapes), Ok([&b"a"[..], &[1, 0, 0, 0]]));
        assert_eq!(members(b"a\0\x01\0\x01\0\0\0\x01", shapes), Err(PADDING));
        assert_eq!(members(b"a\0\0\0\x01\0\0\0\0\x01", shapes), Err(ENDS));
        assert_eq!(members(b"", [Shape::BYTES; 2]), Err(ENDS));
    }

    #[test]
    fn an_array_has_its_ends_behind_it() {
        let all = |bytes| Elements::of(bytes, 1).and_then(Iterator::collect::<Result<Vec<&[u8]>, _>>);
        assert_eq!(all(b""), Ok(vec![]));
        assert_eq!(all(b"\0"), Ok(vec![&b""[..]]));
        assert_eq!(all(b"ab\x01\x02"), Ok(vec![&b"a"[..], b"b"]));
        for bytes in [&b"a"[..], b"ab\x02\x01\x02", b"ab\x05"] {
            assert_eq!(all(bytes), Err(ENDS), "{bytes:?}");
        }
        assert_eq!(Elements::of(b"a\x01", 1).expect("it is an array").count(), 1);
    }

    #[test]
    fn strings() {
        assert_eq!(text(b"a\0"), Ok("a"));
        assert_eq!(text(b"\0"), Ok(""));
        for bytes in [&b""[..], b"a", b"a\0b\0", b"a\0\0", b"\xff\0"] {
            assert!(text(bytes).is_err());
        }
    }
}
