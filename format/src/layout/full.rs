//! What makes the layout of the full bundle that a delta bundle stands for (spec 7.6).

use alloc::vec::Vec;

use crate::bytes::{Reader, put_planes};
use crate::head::compare;
use crate::index::Index;
use crate::num::{at, wide};
use crate::{Error, Maxima};

use super::rows::{number, parse_steps, put_steps, row_fault};
use super::{Chunk, Codec, Extent, Holds, Holes, Large, Layout, Piece, data_len, layout_maxima};

/// Which objects and pieces each chunk of the full bundle holds, by the numbers of the wanted index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FullLayout {
    /// For each chunk the objects of its group; 0 for a piece.
    pub(super) objects: Vec<u32>,
    /// The numbers of the objects in groups, group after group.
    pub(super) grouped: Vec<u32>,
    /// For each piece of the large objects, in the object table's order, its chunk, unless it has no data.
    pub(super) pieces: Vec<Option<u32>>,
    pub(super) landmark: Option<u32>,
}

impl From<&Layout> for FullLayout {
    fn from(layout: &Layout) -> Self {
        Self {
            objects: layout.chunks.iter().map(|chunk| chunk.holds.objects()).collect(),
            grouped: layout.grouped.clone(),
            pieces: layout.pieces.iter().map(|piece| piece.chunk).collect(),
            landmark: layout.landmark,
        }
    }
}

impl FullLayout {
    /// Number of the full bundle's chunks.
    #[must_use]
    pub fn chunks(&self) -> u64 {
        wide(self.objects.len())
    }

    pub(super) fn parse(mut reader: Reader<'_>) -> Result<Self, Error> {
        let count = reader.count32()?;
        let objects: Vec<u32> = reader.planes::<4>(count)?.u32s().collect();
        let grouped = objects.iter().try_fold(0_u32, |sum, objects| sum.checked_add(*objects));
        let Some(grouped) = grouped else {
            return Err(reader.malformed("the full bundle's groups have more objects than can be numbered"));
        };
        let grouped = parse_steps(&mut reader, at(grouped))?;
        let pieces = reader.count32()?;
        let pieces = parse_steps(&mut reader, pieces)?.into_iter().map(|chunk| chunk.checked_sub(1)).collect();
        let landmark = reader.u32()?.checked_sub(1);
        if landmark.is_some_and(|landmark| at(landmark) > count) {
            return Err(reader.malformed("the full bundle's landmark is behind its last chunk"));
        }
        reader.finish()?;
        Ok(Self { objects, grouped, pieces, landmark })
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = number(self.objects.len()).to_le_bytes().to_vec();
        put_planes(&mut out, self.objects.iter().map(|objects| objects.to_le_bytes()));
        put_steps(&mut out, self.grouped.iter().copied());
        out.extend(number(self.pieces.len()).to_le_bytes());
        put_steps(&mut out, self.pieces.iter().map(|chunk| chunk.map_or(0, |chunk| chunk + 1)));
        out.extend(self.landmark.map_or(0, |landmark| landmark + 1).to_le_bytes());
        out
    }

    /// Lays out the objects of `index` as the full bundle, which declares `maxima`, stores them. Of its chunks codec, stored length, offset and
    /// digest are left open, and of its pieces the chaining values. `holes_of` gives each object's holes.
    ///
    /// # Errors
    /// Returns an error if it does not place each object exactly once, or chunks come out otherwise than the maxima say.
    pub fn lay_out<'a>(
        &self,
        index: &Index,
        maxima: &Maxima,
        holes_of: impl Fn(u32) -> &'a [Extent],
    ) -> Result<Layout, Error> {
        let mut layout = Layout { grouped: self.grouped.clone(), landmark: self.landmark, ..Layout::default() };
        for object in 0..number(index.objects().len()) {
            let holes = holes_of(object);
            if !holes.is_empty() {
                let first = number(layout.extents.len());
                layout.extents.extend(holes);
                layout.holes.push(Holes { object, extents: first..number(layout.extents.len()) });
            }
        }
        let mut first = 0;
        for objects in &self.objects {
            // The sum was found to have 32 bits when this was parsed.
            let range = first..first + objects;
            first = range.end;
            let len = group_len(&layout, index, &range)?;
            let holds = if range.is_empty() { Holds::Piece } else { Holds::Group(range) };
            let (codec, digest, prefix) = (Codec::Raw, [0; 32], 0..0);
            layout.chunks.push(Chunk { codec, offset: 0, stored_len: 0, len, digest, holds, prefix });
        }
        self.lay_out_pieces(&mut layout, index, maxima.piece_len())?;
        layout.check_groups(index.objects(), maxima.piece_len())?;
        layout.check_piece_chunks(index.objects(), maxima.piece_len())?;
        let found = layout_maxima(&layout)?;
        compare(&[
            ("data", maxima.data, found.data),
            ("chunks", maxima.chunks, found.chunks),
            ("chunk_len", maxima.chunk_len.into(), found.chunk_len.into()),
        ])?;
        Ok(layout)
    }

    fn lay_out_pieces(&self, layout: &mut Layout, index: &Index, piece_len: u64) -> Result<(), Error> {
        let mut rest = self.pieces.iter();
        for (object, row) in (0..).zip(index.objects()).filter(|(_, row)| row.size > piece_len) {
            layout.large.push(Large { object, first_piece: number(layout.pieces.len()) });
            let mut start = 0;
            while start < row.size {
                let end = row.size.min(start + piece_len);
                let Some(&chunk) = rest.next() else {
                    return Err(row_fault("the full bundle has fewer pieces than its large objects need", at(object)));
                };
                let len = u32::try_from(data_len(layout.holes_of(object), start..end)).unwrap_or(u32::MAX);
                // The first piece says the length; whether those that share the chunk agree is checked with the rest.
                if let Some(row) = chunk.and_then(|chunk| layout.chunks.get_mut(at(chunk)))
                    && row.len == 0
                {
                    row.len = len;
                }
                layout.pieces.push(Piece { chunk, chaining_value: [0; 32] });
                start = end;
            }
        }
        match rest.next() {
            None => Ok(()),
            Some(_) => Err(row_fault("the full bundle has more pieces than its large objects", layout.pieces.len())),
        }
    }
}

/// Bytes of data of the objects of a group.
fn group_len(layout: &Layout, index: &Index, range: &core::ops::Range<u32>) -> Result<u32, Error> {
    let mut len = 0_u64;
    for object in layout.group(range) {
        let Some(row) = index.objects().get(at(*object)) else {
            return Err(row_fault("the full bundle has an object that the index does not have", at(*object)));
        };
        len = len.saturating_add(data_len(layout.holes_of(*object), 0..row.size));
    }
    u32::try_from(len).map_err(|_| row_fault("a group of the full bundle is too long", at(range.start)))
}
