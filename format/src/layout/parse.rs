//! Parses a layout strictly, and checks it against the objects of the index (core 7).

use alloc::vec::Vec;
use core::ops::Range;

use crate::bytes::{Reader, SectionRule, read_sections};
use crate::error::layout_row;
use crate::index::Object;
use crate::num::{at, fit};
use crate::recipes::{MAKES, PartOf, PartRange, Recipes};
use crate::{Error, Part, Row, pieces};

use super::prefixes::{BaseRange, parse_prefixes};
use super::repository::parse_repository;
use super::rows::parse_steps;
use super::{BLOCK_LEN, Chunk, Codec, Extent, HOLE_BLOCKS, Holds, Holes, Large, Layout, Objects, Piece, data_len};

const RULES: [SectionRule; 8] = [
    SectionRule::Required,
    SectionRule::Required,
    SectionRule::Required,
    SectionRule::Required,
    SectionRule::Ignorable,
    SectionRule::Optional,
    SectionRule::Ignorable,
    SectionRule::Optional,
];

const UNKNOWN_OBJECT: &str = "a group has an object that the index does not have";

impl Layout {
    /// Parses the decoded layout of a bundle with pieces of 2^`piece_log2` bytes. The stored layout must have matched its digest.
    ///
    /// # Errors
    /// Returns an error if it does not conform to core 7, or does not place each of `objects` exactly once.
    pub fn parse(bytes: &[u8], objects: &Objects<'_>, piece_log2: u8) -> Result<Self, Error> {
        let piece_len = 1_u64 << piece_log2.min(63);
        let sections = read_sections(Part::Layout, bytes, &RULES)?;
        let empty = || Reader::new(Part::Layout, &[]);
        let [chunks, groups, pieces, holes, landmark, prefixes, repository, recipes] = sections;
        let recipes = match recipes {
            Some(section) => Recipes::parse(section, objects.rows, objects.base)?,
            None => Recipes::default(),
        };
        let joined = if recipes.is_empty() { Vec::new() } else { [objects.rows, &recipes.leaves].concat() };
        let rows = if recipes.is_empty() { objects.rows } else { &joined };
        let (mut chunks, grouped_len) = parse_chunks(chunks.unwrap_or_else(empty))?;
        let grouped = parse_groups(groups.unwrap_or_else(empty), grouped_len)?;
        let (holes, extents) = parse_holes(holes.unwrap_or_else(empty), rows)?;
        let (pieces, large) = parse_pieces(pieces.unwrap_or_else(empty), rows, piece_len)?;
        let landmark = landmark.map(|section| parse_landmark(section, chunks.len())).transpose()?;
        let views = fit(recipes.views.len(), "the number of views")?;
        let base_and_views = objects.base.unwrap_or(0).saturating_add(views);
        let ranges = parse_prefixes(prefixes, &mut chunks, base_and_views)?;
        let repository = match repository {
            Some(section) if !objects.has_commits => {
                return Err(section.malformed("files of a repository without a commit"));
            }
            Some(section) => parse_repository(section)?,
            None => Vec::new(),
        };
        let layout = Self {
            chunks,
            grouped,
            pieces,
            large,
            holes,
            extents,
            landmark,
            ranges,
            repository,
            carried: None,
            recipes,
        };
        layout.check_groups(rows, piece_len)?;
        layout.check_pieces(rows, piece_len)?;
        if let Some(row) = layout.holes.iter().position(|holes| layout.recipes.of(holes.object).is_some()) {
            return Err(layout_row("an object with holes has a recipe", row));
        }
        if MAKES {
            layout.check_views()?;
        }
        layout.check_order(&objects.hashed)?;
        Ok(layout)
    }

    /// Parses only the chunks of a decoded layout, for whoever lacks the index.
    ///
    /// # Errors
    /// Returns an error if its form as a section list, or section 1, does not conform to core 7.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn parse_chunks_alone(bytes: &[u8]) -> Result<Vec<Chunk>, Error> {
        let [chunks, ..] = read_sections(Part::Layout, bytes, &RULES)?;
        parse_chunks(chunks.unwrap_or_else(|| Reader::new(Part::Layout, &[]))).map(|(chunks, _)| chunks)
    }

    pub(super) fn check_groups(&self, objects: &[Object], piece_len: u64) -> Result<(), Error> {
        let mut placed = alloc::vec![false; objects.len()];
        for (row, chunk) in self.chunks.iter().enumerate() {
            let Holds::Group(range) = &chunk.holds else { continue };
            let mut len = 0_u64;
            for &object in self.group(range) {
                let Some(&Object { size, .. }) = object.get(objects) else {
                    return Err(layout_row(UNKNOWN_OBJECT, row));
                };
                if size > piece_len {
                    return Err(layout_row("a group has an object that is to be in pieces", row));
                }
                let data = data_len(self.holes_of(object), 0..size);
                if data == 0 {
                    return Err(layout_row("a group has an object without data", row));
                }
                if core::mem::replace(&mut placed[object.at()], true) {
                    return Err(layout_row("an object is in groups twice", row));
                }
                len += data;
            }
            if len != u64::from(chunk.len) {
                return Err(layout_row("a group's length is not that of its objects", row));
            }
        }
        for (row, object) in Row::all(objects) {
            let has_data = object.size <= piece_len && data_len(self.holes_of(row), 0..object.size) > 0;
            let grouped = has_data && self.recipes.of(row).is_none();
            if grouped != placed[row.at()] {
                return Err(layout_row("an object is in no group", row.at()));
            }
        }
        Ok(())
    }

    fn check_pieces(&self, objects: &[Object], piece_len: u64) -> Result<(), Error> {
        self.check_piece_chunks(objects, piece_len)?;
        for large in &self.large {
            let values: Vec<[u8; 32]> = self.pieces_of(large.object).iter().map(|piece| piece.chaining_value).collect();
            if pieces::object_id(&values) != Some(objects[large.object.at()].id) {
                return Err(layout_row("an object's chaining values do not merge to its id", large.object.at()));
            }
        }
        Ok(())
    }

    /// Checks that each piece has a chunk of its length, and that each chunk that is not a group is used by a piece.
    pub(super) fn check_piece_chunks(&self, objects: &[Object], piece_len: u64) -> Result<(), Error> {
        let mut used = alloc::vec![false; self.chunks.len()];
        for large in &self.large {
            let object = &objects[large.object.at()];
            let holes = self.holes_of(large.object);
            let (mut start, is_made) = (0, self.recipes.of(large.object).is_some());
            for (row, piece) in (at(large.first_piece)..).zip(self.pieces_of(large.object)) {
                let end = object.size.min(start + piece_len);
                let data = if is_made { 0 } else { data_len(holes, start..end) };
                match piece.chunk {
                    None if data == 0 => {}
                    None => return Err(layout_row("a piece with data has no chunk", row)),
                    Some(_) if data == 0 => return Err(layout_row("a piece without data has a chunk", row)),
                    Some(chunk) => match chunk.get(&self.chunks) {
                        Some(Chunk { holds: Holds::Piece, len, .. }) if u64::from(*len) == data => {
                            used[chunk.at()] = true;
                        }
                        Some(Chunk { holds: Holds::Piece, .. }) => {
                            return Err(layout_row("a piece's chunk has another length than its data", row));
                        }
                        _ => return Err(layout_row("a piece's chunk is a group or does not exist", row)),
                    },
                }
                start = end;
            }
        }
        let unused = self.chunks.iter().zip(&used).position(|(chunk, used)| chunk.holds == Holds::Piece && !used);
        match unused {
            Some(row) => Err(layout_row("no piece names the chunk", row)),
            None => Ok(()),
        }
    }

    /// Checks that each view is used.
    fn check_views(&self) -> Result<(), Error> {
        let mut used = alloc::vec![false; self.recipes.views.len()];
        let of_prefix = |range: &BaseRange| range.object.at().checked_sub(at(self.recipes.base_objects));
        let of_range = |range: &PartRange| match range.of {
            PartOf::View(view) => Some(view.at()),
            PartOf::Object(_) | PartOf::Base(_) => None,
        };
        let views = self.ranges.iter().filter_map(of_prefix).chain(self.recipes.ranges.iter().filter_map(of_range));
        for view in views {
            if let Some(used) = used.get_mut(view) {
                *used = true;
            }
        }
        match used.iter().position(|used| !used) {
            Some(row) => Err(layout_row("a view is not used", row)),
            None => Ok(()),
        }
    }

    /// Checks that the pieces of OSTree files are in order, since these files are hashed from start to end.
    fn check_order(&self, hashed: &[bool]) -> Result<(), Error> {
        for large in self.large.iter().filter(|large| hashed.get(large.object.at()).is_some_and(|hashed| *hashed)) {
            if !self.pieces_of(large.object).iter().filter_map(|piece| piece.chunk).is_sorted() {
                return Err(layout_row("an OSTree file's pieces lie in chunks that descend", large.object.at()));
            }
        }
        Ok(())
    }
}

fn parse_chunks(mut reader: Reader<'_>) -> Result<(Vec<Chunk>, usize), Error> {
    let count = reader.count32()?;
    let codecs = reader.take(count)?;
    let stored_lens = reader.planes::<4>(count)?.u32s();
    let lens = reader.planes::<4>(count)?.u32s();
    let groups = reader.planes::<4>(count)?.u32s();
    let Some(digests_len) = count.checked_mul(32) else {
        return Err(reader.malformed("a column is longer than memory"));
    };
    let digests = reader.take(digests_len)?.as_chunks::<32>().0;
    reader.finish()?;
    // Checked before the rows: a codec that this reader does not know is not a fault of the layout.
    let mut known = Vec::with_capacity(count);
    for codec in codecs {
        known.push(match codec {
            0 => Codec::Raw,
            1 => Codec::Zstd,
            2 => Codec::ZstdPrefix,
            3 => Codec::ByteDifference,
            other => {
                return Err(Error::Unsupported { part: Part::Layout, what: "codec", found: u64::from(*other) });
            }
        });
    }
    let mut chunks = Vec::with_capacity(count);
    let (mut offset, mut grouped) = (0_u64, 0_u32);
    let columns = known.into_iter().zip(stored_lens).zip(lens).zip(groups).zip(digests);
    for (row, ((((codec, stored_len), len), objects), digest)) in columns.enumerate() {
        if len == 0 || stored_len == 0 {
            return Err(layout_row("a chunk is empty", row));
        }
        if codec == Codec::Raw && stored_len != len {
            return Err(layout_row("a raw chunk's two lengths differ", row));
        }
        let holds = match objects {
            0 => Holds::Piece,
            _ => {
                let Some(end) = grouped.checked_add(objects) else {
                    return Err(layout_row("the groups have more objects than can be numbered", row));
                };
                Holds::Group(core::mem::replace(&mut grouped, end)..end)
            }
        };
        chunks.push(Chunk { codec, offset, stored_len, len, digest: *digest, holds, prefix: 0..0 });
        offset += u64::from(stored_len);
    }
    Ok((chunks, at(grouped)))
}

fn parse_groups(mut reader: Reader<'_>, count: usize) -> Result<Vec<Row<Object>>, Error> {
    let numbers = parse_steps(&mut reader, count)?;
    reader.finish()?;
    let rows = numbers.into_iter().map(Row::new).collect::<Option<_>>();
    rows.ok_or_else(|| layout_row(UNKNOWN_OBJECT, 0))
}

fn parse_holes(mut reader: Reader<'_>, objects: &[Object]) -> Result<(Vec<Holes>, Vec<Extent>), Error> {
    let count = reader.count32()?;
    let numbers = reader.planes::<4>(count)?.u32s();
    let counts = reader.planes::<4>(count)?.u32s();
    let mut holes: Vec<Holes> = Vec::with_capacity(count);
    let mut total = 0_u32;
    for (row, (object, extents)) in numbers.zip(counts).enumerate() {
        let ascends = |object: &Row<Object>| holes.last().is_none_or(|last| last.object < *object);
        let Some(object) = Row::new(object).filter(|object| object.at() < objects.len() && ascends(object)) else {
            return Err(layout_row("objects with holes do not ascend, or one does not exist", row));
        };
        let Some(end) = total.checked_add(extents).filter(|_| extents > 0) else {
            return Err(layout_row("an object with holes has none, or there are too many", row));
        };
        holes.push(Holes { object, extents: core::mem::replace(&mut total, end)..end });
    }
    let starts = reader.planes::<8>(at(total))?.u64s();
    let lens = reader.planes::<8>(at(total))?.u64s();
    let extents: Vec<Extent> = starts.zip(lens).map(|(start, len)| Extent { start, len }).collect();
    reader.finish()?;
    for (row, object) in holes.iter().enumerate() {
        let blocks = objects[object.object.at()].size / BLOCK_LEN;
        let mut free_from = 0;
        for extent in &extents[at(object.extents.start)..at(object.extents.end)] {
            if extent.start < free_from {
                return Err(layout_row("holes touch or do not ascend", row));
            }
            if extent.len < HOLE_BLOCKS {
                return Err(layout_row("a hole is shorter than 16 blocks", row));
            }
            match extent.start.checked_add(extent.len) {
                Some(end) if end <= blocks => free_from = end + 1,
                _ => return Err(layout_row("a hole passes the end of its object", row)),
            }
        }
    }
    Ok((holes, extents))
}

fn parse_pieces(mut reader: Reader<'_>, objects: &[Object], piece_len: u64) -> Result<(Vec<Piece>, Vec<Large>), Error> {
    let mut large = Vec::new();
    let mut count = 0_u64;
    for (row, object) in Row::all(objects).filter(|(_, object)| object.size > piece_len) {
        let Ok(first_piece) = u32::try_from(count) else { break };
        large.push(Large { object: row, first_piece });
        count = count.saturating_add(object.size.div_ceil(piece_len));
    }
    let count = match usize::try_from(count) {
        // Each row has 36 bytes: a count that exceeds the bytes is refused before anything is allocated.
        Ok(count) if u32::try_from(count).is_ok() && count <= reader.rest().len() / 36 => count,
        _ => return Err(reader.malformed("there are fewer pieces than the large objects need")),
    };
    let chunks = reader.planes::<4>(count)?.u32s();
    let mut pieces = Vec::with_capacity(count);
    for chunk in chunks {
        pieces.push(Piece { chunk: Row::of_column(chunk), chaining_value: reader.array()? });
    }
    reader.finish()?;
    Ok((pieces, large))
}

fn parse_landmark(mut reader: Reader<'_>, chunks: usize) -> Result<Range<u32>, Error> {
    let (start, count) = (reader.u32()?, reader.u32()?);
    let Some(end) = start.checked_add(count).filter(|end| at(*end) <= chunks) else {
        return Err(reader.malformed("the landmark is behind the last chunk"));
    };
    reader.finish()?;
    Ok(start..end)
}
