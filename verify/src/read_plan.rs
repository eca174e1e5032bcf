//! Which chunks to read for the wanted objects of a bundle, and which of them each chunk holds.

use crate::content::{Content, ContentError, ObjectRows, Portion, group_of_chunk};
use sealift_format::{Chunk, Object, Row, Rows};

/// The chunks to read, and the wanted objects and pieces in them.
#[derive(Clone, Debug, Default)]
pub struct ReadPlan {
    /// For each object, whether it is wanted.
    wanted: Vec<bool>,
    /// In ascending order.
    chunks: Vec<Row<Chunk>>,
    /// Their stored bytes.
    stored_bytes: u64,
    /// Chunk, object and piece, in this order.
    pieces: Vec<(Row<Chunk>, Row<Object>, u64)>,
}

impl ReadPlan {
    /// Returns the plan for all that lies in the chunks of a bundle, leaves included.
    #[must_use]
    pub fn all(objects: ObjectRows<'_>) -> Self {
        Self::new(objects, objects.stored(), &|_, _| false)
    }

    /// Returns the plan for the objects that are `wanted`, by their numbers. Pieces that are in place already are left out.
    #[must_use]
    pub fn new(objects: ObjectRows<'_>, wanted: Vec<bool>, is_done: &dyn Fn(Row<Object>, u64) -> bool) -> Self {
        let layout = objects.layout;
        let mut pieces = Vec::new();
        for large in
            layout.large.iter().filter(|large| wanted.get(large.object.at()).is_some_and(|is_wanted| *is_wanted))
        {
            for (piece, row) in (0..).zip(layout.pieces_of(large.object)) {
                let chunk = row.chunk.filter(|_| !is_done(large.object, piece));
                pieces.extend(chunk.map(|chunk| (chunk, large.object, piece)));
            }
        }
        pieces.sort_unstable();
        let mut plan = Self { wanted, chunks: Vec::new(), stored_bytes: 0, pieces };
        for (number, chunk) in Row::all(&layout.chunks) {
            let is_used = group_of_chunk(layout, number).iter().any(|object| plan.wants(*object))
                || !plan.pieces_in(number).is_empty();
            if is_used {
                plan.chunks.push(number);
                plan.stored_bytes = plan.stored_bytes.saturating_add(chunk.stored_len.into());
            }
        }
        plan
    }

    /// Returns the chunks to read, in ascending order.
    #[must_use]
    pub fn chunks(&self) -> &[Row<Chunk>] {
        &self.chunks
    }

    /// Returns the number of stored bytes in these chunks.
    #[must_use]
    pub fn stored_bytes(&self) -> u64 {
        self.stored_bytes
    }

    /// Returns whether an object is wanted.
    #[must_use]
    pub fn wants(&self, object: Row<Object>) -> bool {
        self.wanted.get(object.at()).is_some_and(|is_wanted| *is_wanted)
    }

    /// Returns the objects that are wanted, in ascending order.
    pub fn objects(&self) -> impl Iterator<Item = Row<Object>> {
        Rows::new(0..u32::MAX).zip(&self.wanted).filter(|(_, is_wanted)| **is_wanted).map(|(object, _)| object)
    }

    /// Returns the wanted pieces, each with its chunk, in the order of the chunks.
    pub fn pieces(&self) -> impl Iterator<Item = (Row<Chunk>, Portion)> {
        self.pieces.iter().map(|&(chunk, object, piece)| (chunk, Portion { object, piece: Some(piece) }))
    }

    /// Returns the portions of wanted objects that have no chunk, since they are empty or consist of holes.
    #[must_use]
    pub fn without_data(&self, objects: ObjectRows<'_>) -> Vec<Portion> {
        let mut bare = Vec::new();
        let recipes = &objects.layout.recipes;
        for object in self.objects().filter(|object| recipes.of(*object).is_none()) {
            let pieces = objects.layout.pieces_of(object);
            if pieces.is_empty() && objects.grouped_len(object) == 0 {
                bare.push(Portion { object, piece: None });
            }
            for (piece, row) in (0..).zip(pieces) {
                if row.chunk.is_none() {
                    bare.push(Portion { object, piece: Some(piece) });
                }
            }
        }
        bare
    }

    /// Checks the wanted objects and pieces that chunk `number` holds, one after the other, given the chunk's decoded bytes.
    pub fn contents<'a>(
        &'a self,
        objects: ObjectRows<'a>,
        number: Row<Chunk>,
        decoded: &'a [u8],
    ) -> impl Iterator<Item = Result<Content<'a>, ContentError>> {
        let group = objects.group(group_of_chunk(objects.layout, number), decoded);
        let whole = group.map(|(object, data)| (Portion { object, piece: None }, data));
        let pieces = self.pieces_in(number).iter();
        let pieces = pieces.map(move |&(_, object, piece)| (Portion { object, piece: Some(piece) }, decoded));
        whole
            .filter(|(portion, _)| self.wants(portion.object))
            .chain(pieces)
            .map(move |(portion, data)| Content::check(objects, portion, data))
    }

    pub(crate) fn pieces_in(&self, chunk: Row<Chunk>) -> &[(Row<Chunk>, Row<Object>, u64)] {
        let start = self.pieces.partition_point(|(at, ..)| *at < chunk);
        let len = self.pieces[start..].partition_point(|(at, ..)| *at == chunk);
        &self.pieces[start..start + len]
    }
}
