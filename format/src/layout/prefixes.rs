//! The parts of base objects with which chunks are decoded (delta 6).

use alloc::vec::Vec;

use crate::bytes::{Reader, put_planes};
use crate::error::layout_row;
use crate::num;
use crate::recipes::{PartOf, PartRange};
use crate::{Error, Row};

use super::{Chunk, Layout};
use crate::base_object::BaseObject;

/// A part of an object of a base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BaseRange {
    /// The object.
    pub object: Row<BaseObject>,
    /// Its first byte.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u64,
}

/// Parses the section, sets the range of each chunk, and returns all ranges. The bases have `base_objects` objects.
pub(super) fn parse_prefixes(
    section: Option<Reader<'_>>,
    chunks: &mut [Chunk],
    base_objects: u32,
) -> Result<Vec<BaseRange>, Error> {
    let prefixed: Vec<&mut Chunk> = chunks.iter_mut().filter(|chunk| chunk.codec.has_prefix()).collect();
    let mut reader = match section {
        Some(reader) if !prefixed.is_empty() => reader,
        None if prefixed.is_empty() => return Ok(Vec::new()),
        _ => return Err(layout_row("the prefixes are there without a chunk that has one, or a chunk without them", 0)),
    };
    let counts = reader.planes::<4>(prefixed.len())?.u32s();
    let mut total = 0_u32;
    for (row, (chunk, count)) in prefixed.into_iter().zip(counts).enumerate() {
        let Some(end) = total.checked_add(count).filter(|_| count > 0) else {
            return Err(layout_row("a chunk has no prefix, or there are too many ranges", row));
        };
        chunk.prefix = core::mem::replace(&mut total, end)..end;
    }
    let count = num::at(total);
    let objects = reader.planes::<4>(count)?.u32s();
    let offsets = reader.planes::<8>(count)?.u64s();
    let lens = reader.planes::<8>(count)?.u64s();
    reader.finish()?;
    let mut ranges = Vec::with_capacity(count);
    for (row, ((object, offset), len)) in objects.zip(offsets).zip(lens).enumerate() {
        let Some(object) = Row::new(object).filter(|object| object.number() < base_objects) else {
            return Err(layout_row("a prefix has an object that the bases do not have", row));
        };
        if len == 0 || offset.checked_add(len).is_none() {
            return Err(layout_row("a prefix has a range without bytes, or one that no object has", row));
        }
        ranges.push(BaseRange { object, offset, len });
    }
    let mut seen = Vec::new();
    for (row, chunk) in chunks.iter().enumerate() {
        seen.clear();
        seen.extend(super::slice(&ranges, &chunk.prefix).iter().map(|range| range.object));
        seen.sort_unstable();
        if seen.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(layout_row("a prefix has an object twice", row));
        }
    }
    Ok(ranges)
}

/// Returns the section, if a chunk has a prefix.
pub(super) fn encode_prefixes(chunks: &[Chunk], ranges: &[BaseRange]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let counts = chunks.iter().filter(|chunk| chunk.codec.has_prefix()).map(|chunk| &chunk.prefix);
    put_planes(&mut out, counts.map(|range| (range.end - range.start).to_le_bytes()));
    if out.is_empty() {
        return None;
    }
    put_planes(&mut out, ranges.iter().map(|range| range.object.number().to_le_bytes()));
    put_planes(&mut out, ranges.iter().map(|range| range.offset.to_le_bytes()));
    put_planes(&mut out, ranges.iter().map(|range| range.len.to_le_bytes()));
    Some(out)
}

/// Checks that the ranges do not exceed the sizes of their base objects.
pub(crate) fn check_ranges(layout: &Layout, size: impl Fn(Row<BaseObject>) -> Option<u64>) -> Result<(), Error> {
    let recipes = &layout.recipes;
    let len = |object: Row<BaseObject>| match recipes.view_of(object) {
        Some(view) => Some(view.len),
        None => size(object),
    };
    let beyond = |object: Row<BaseObject>, offset: u64, length: u64| {
        len(object).is_none_or(|len| offset.saturating_add(length) > len)
    };
    if let Some(row) = layout.ranges.iter().position(|range| beyond(range.object, range.offset, range.len)) {
        return Err(layout_row("a prefix passes the end of an object of the base", row));
    }
    let of_recipe = |range: &PartRange| match range.of {
        PartOf::Base(object) => beyond(object, range.offset, range.len),
        PartOf::Object(_) | PartOf::View(_) => false,
    };
    match recipes.ranges.iter().position(of_recipe) {
        Some(row) => Err(layout_row("a recipe's range passes the end of an object of the base", row)),
        None => Ok(()),
    }
}
