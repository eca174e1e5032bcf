//! Checks the objects that a delta bundle carries, over its bases or without them: each is compared with its id in the difference. The objects that
//! it does not carry are checked with the bases.

use sealift_format::{BaseRange, Chunk, Delta, Row};

use crate::content::{ChunkDecoder, Content, ContentError, Portion, check_shape, check_stored};
use crate::read_plan::ReadPlan;

/// Checks chunks of one delta bundle, in any order; keeps its buffers from one to the next.
#[derive(Debug)]
pub struct CarriedChecker {
    decoder: ChunkDecoder,
    plan: ReadPlan,
    /// The portions without a chunk, in reverse order.
    bare: Vec<Portion>,
}

/// Returns the ranges of base objects that make a chunk's prefix (delta 6).
#[must_use]
pub fn prefix_of(delta: &Delta, chunk: Row<Chunk>) -> &[BaseRange] {
    chunk.get(&delta.layout.chunks).map_or(&[], |chunk| delta.layout.prefix_of(chunk))
}

impl CarriedChecker {
    /// Returns a checker that has seen no chunk.
    #[must_use]
    pub fn new(delta: &Delta) -> Self {
        let plan = ReadPlan::all(delta.into());
        let mut bare = plan.without_data(delta.into());
        bare.reverse();
        Self { decoder: ChunkDecoder::default(), plan, bare }
    }

    /// Checks the stored bytes of chunk `number` and all that it holds. `prefix` are the bytes of its prefix.
    ///
    /// # Errors
    /// Returns an error if one of them does not match.
    pub fn check(
        &mut self,
        delta: &Delta,
        number: Row<Chunk>,
        stored: &[u8],
        prefix: &[u8],
    ) -> Result<(), ContentError> {
        let decoded = self.decoder.decode_of(&delta.head, &delta.layout, number, stored, prefix)?;
        self.plan.contents(delta.into(), number, decoded).try_for_each(|content| content.map(drop))
    }

    /// Checks chunk `number` as far as possible without the bases: all that it holds if it has no prefix, and otherwise its digest and form (core 8).
    ///
    /// # Errors
    /// Returns an error if one of them does not match.
    pub fn check_alone(&mut self, delta: &Delta, number: Row<Chunk>, stored: &[u8]) -> Result<(), ContentError> {
        match number.get(&delta.layout.chunks) {
            Some(chunk) if !chunk.prefix.is_empty() => {
                check_stored(number, chunk, stored)?;
                check_shape(&delta.head, &delta.layout, number, stored)
            }
            _ => self.check(delta, number, stored, &[]),
        }
    }

    /// Checks the next object or piece without a chunk. Returns its length in bytes, or `None` if none is left.
    ///
    /// # Errors
    /// Returns an error if it does not match.
    pub fn check_bare(&mut self, delta: &Delta) -> Result<Option<u64>, ContentError> {
        let Some(portion) = self.bare.pop() else { return Ok(None) };
        let content = Content::check(delta.into(), portion, &[])?;
        Ok(Some(content.range.end - content.range.start))
    }
}
