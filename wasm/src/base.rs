//! A delta bundle over its base: the parts of base objects that its chunks are decoded with (delta 6).

use std::convert::Infallible;
use std::ops::Range;

use js_sys::Array;
use sealift_format::num::{self, at};
use sealift_format::{BaseRange, Bundle, Delta, Holds};
use sealift_verify::carried::prefix_of;
use sealift_verify::content::{ChunkDecoder, ContentError, ObjectRows, fill_holes, portions_of, range_of};
use wasm_bindgen::JsValue;

use crate::content::place;
use crate::error::misuse;

/// The state that a reader of a delta bundle keeps for its base.
#[derive(Debug)]
pub(crate) struct Base {
    /// For each object of the base, the chunk of its group.
    homes: Vec<Option<u32>>,
    decoder: ChunkDecoder,
    /// The prefix of a chunk, as far as it has been filled.
    prefix: Vec<u8>,
}

/// The position of a range in its object and in the prefix.
struct Place {
    within: Range<u64>,
    at: u64,
}

impl Base {
    pub(crate) fn new(base: &Bundle) -> Self {
        let mut homes = vec![None; base.index.objects().len()];
        for (number, chunk) in (0..).zip(&base.layout.chunks) {
            if let Holds::Group(range) = &chunk.holds {
                for object in base.layout.group(range) {
                    homes[at(*object)] = Some(number);
                }
            }
        }
        Self { homes, decoder: ChunkDecoder::default(), prefix: Vec::new() }
    }

    /// Returns the base chunks that a chunk's prefix needs, each with its offset and length in the base's file.
    pub(crate) fn begin_prefix(&mut self, delta: &Delta, base: &Bundle, chunk: u32) -> Result<Array, JsValue> {
        let mut chunks: Vec<u32> = Vec::new();
        let mut len = 0;
        for (range, place) in places(delta, chunk) {
            len = place.at + range.len;
            chunks.extend(self.parts(base, range.object, &place.within).filter_map(|(chunk, _)| chunk));
        }
        chunks.sort_unstable();
        chunks.dedup();
        self.prefix.clear();
        self.prefix.resize(usize::try_from(len).map_err(|_| misuse("the prefix is longer than memory"))?, 0);
        let rows = Array::new();
        for number in chunks {
            rows.push(&Array::of2(&number.into(), &place(base, Some(number))?));
        }
        Ok(rows)
    }

    /// Copies the parts in a chunk of the base, given its stored bytes, to the prefix of a chunk.
    pub(crate) fn fill_prefix(
        &mut self,
        delta: &Delta,
        base: &Bundle,
        chunk: u32,
        number: u32,
        stored: &[u8],
    ) -> Result<(), ContentError> {
        let mut decoder = std::mem::take(&mut self.decoder);
        let mut prefix = std::mem::take(&mut self.prefix);
        let decoded = decoder.decode(base, number, stored, &[])?;
        for (range, place) in places(delta, chunk) {
            for (_, part) in self.parts(base, range.object, &place.within).filter(|(own, _)| *own == Some(number)) {
                let data = match &base.layout.chunks[at(number)].holds {
                    Holds::Piece => decoded,
                    Holds::Group(group) => {
                        let mut objects = ObjectRows::from(base).group(base.layout.group(group), decoded);
                        objects.find(|(found, _)| *found == range.object).map_or(&[][..], |(_, data)| data)
                    }
                };
                put(base, range.object, part, data, &place, &mut prefix);
            }
        }
        (self.decoder, self.prefix) = (decoder, prefix);
        Ok(())
    }

    pub(crate) fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// Returns the parts in which the base stores an object, within `wanted`: chunk, and bytes of the object.
    fn parts<'a>(
        &self,
        base: &'a Bundle,
        object: u32,
        wanted: &Range<u64>,
    ) -> impl Iterator<Item = (Option<u32>, Range<u64>)> + use<'a> {
        let (home, wanted) = (self.homes.get(at(object)).copied().flatten(), wanted.clone());
        portions_of(base, object, home)
            .map(|(portion, chunk)| (chunk, range_of(base, portion)))
            .filter(move |(_, part)| part.start < wanted.end && wanted.start < part.end)
    }
}

/// Returns the ranges of a chunk's prefix, and their positions.
fn places(delta: &Delta, chunk: u32) -> impl Iterator<Item = (BaseRange, Place)> + use<'_> {
    prefix_of(delta, chunk).iter().scan(0, |next: &mut u64, range| {
        let place = Place { within: range.offset..range.offset.saturating_add(range.len), at: *next };
        *next = next.saturating_add(range.len);
        Some((*range, place))
    })
}

/// Copies the wanted bytes of a part of an object, whose data are `data`, to the prefix. Holes are already zero there.
fn put(base: &Bundle, object: u32, part: Range<u64>, data: &[u8], place: &Place, prefix: &mut [u8]) {
    let mut from = part.start;
    let Ok(()) = fill_holes(data, base.layout.holes_of(object), part, &mut |bytes| {
        let end = from + num::wide(bytes.len());
        let wanted = place.within.start.max(from)..place.within.end.min(end);
        if !wanted.is_empty() {
            let target = place.at + (wanted.start - place.within.start);
            let source = within(wanted.start - from..wanted.end - from).and_then(|part| bytes.get(part));
            let target = within(target..target + (wanted.end - wanted.start)).and_then(|part| prefix.get_mut(part));
            if let (Some(source), Some(target)) = (source, target) {
                target.copy_from_slice(source);
            }
        }
        from = end;
        Ok::<(), Infallible>(())
    });
}

fn within(range: Range<u64>) -> Option<Range<usize>> {
    Some(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)
}
