//! What a delta bundle carries, checked over its base: each object against the id that the difference has of it. The objects that it leaves in
//! place are the base's, and are checked with that.

use std::ops::Range;

use sealift_format::{BaseRange, Delta, Holds, data_len};

use crate::content::{ChunkDecoder, ContentError, check_piece_at, check_row};

/// Checks chunks of one delta bundle, in any order; keeps its buffers from one to the next.
#[derive(Debug)]
pub struct CarriedChecker {
    decoder: ChunkDecoder,
    /// Chunk, object and piece, in this order.
    uses: Vec<(u32, u32, u64)>,
    /// Objects and pieces that no chunk brings, the last first.
    bare: Vec<(u32, Option<u64>)>,
}

fn at(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// The ranges of base objects that make a chunk's prefix (spec 7.5).
#[must_use]
pub fn prefix_of(delta: &Delta, chunk: u32) -> &[BaseRange] {
    delta.layout.chunks.get(at(chunk)).map_or(&[], |chunk| delta.layout.prefix_of(chunk))
}

impl CarriedChecker {
    /// A checker that has seen no chunk.
    #[must_use]
    pub fn new(delta: &Delta) -> Self {
        let (layout, piece_len) = (&delta.layout, delta.head.root().maxima.piece_len());
        let (mut uses, mut bare) = (Vec::new(), Vec::new());
        for (object, row) in (0..).zip(delta.difference.objects()) {
            for (number, piece) in (0..).zip(layout.pieces_of(object)) {
                match piece.chunk {
                    Some(chunk) => uses.push((chunk, object, number)),
                    None => bare.push((object, Some(number))),
                }
            }
            if row.size <= piece_len && data_len(layout.holes_of(object), 0..row.size) == 0 {
                bare.push((object, None));
            }
        }
        uses.sort_unstable();
        bare.reverse();
        Self { decoder: ChunkDecoder::default(), uses, bare }
    }

    /// Checks the stored bytes of chunk `number` and all that it holds. `prefix` are the bytes of its prefix.
    ///
    /// # Errors
    /// The first of them that is not what it is to be.
    pub fn check(&mut self, delta: &Delta, number: u32, stored: &[u8], prefix: &[u8]) -> Result<(), ContentError> {
        let Self { decoder, uses, .. } = self;
        let (head, layout, objects) = (&delta.head, &delta.layout, delta.difference.objects());
        let mut rest = decoder.decode_of(head, layout, number, stored, prefix)?;
        match &layout.chunks[at(number)].holds {
            Holds::Group(range) => {
                for &object in layout.group(range) {
                    let row = &objects[at(object)];
                    let len = data_len(layout.holes_of(object), 0..row.size);
                    let (data, behind) = rest.split_at(usize::try_from(len).unwrap_or(usize::MAX).min(rest.len()));
                    check_row(row, layout, object, data)?;
                    rest = behind;
                }
            }
            Holds::Piece => {
                let start = uses.partition_point(|(chunk, ..)| *chunk < number);
                for &(_, object, piece) in uses[start..].iter().take_while(|(chunk, ..)| *chunk == number) {
                    check_piece_at(layout, object, piece, bytes_of(delta, object, piece), rest)?;
                }
            }
        }
        Ok(())
    }

    /// Checks the next object or piece that no chunk brings. Returns how long it is, and nothing when there is none left.
    ///
    /// # Errors
    /// It is not what it is to be.
    pub fn check_bare(&mut self, delta: &Delta) -> Result<Option<u64>, ContentError> {
        let Some((object, piece)) = self.bare.pop() else { return Ok(None) };
        let row = &delta.difference.objects()[at(object)];
        match piece {
            None => check_row(row, &delta.layout, object, &[]).map(|()| Some(row.size)),
            Some(piece) => {
                let range = bytes_of(delta, object, piece);
                check_piece_at(&delta.layout, object, piece, range.clone(), &[])?;
                Ok(Some(range.end - range.start))
            }
        }
    }
}

/// The bytes of a carried object that are in one of its pieces.
fn bytes_of(delta: &Delta, object: u32, piece: u64) -> Range<u64> {
    let (size, piece_len) = (delta.difference.objects()[at(object)].size, delta.head.root().maxima.piece_len());
    let start = piece.saturating_mul(piece_len).min(size);
    start..size.min(start.saturating_add(piece_len))
}
