//! Writes chunks to the spool in order, from the threads that compress them.

use std::collections::{BTreeMap, HashMap};

use sealift_format::num;
use sealift_format::{BaseRange, Chunk, Codec, Holds, Object, Row, Table as _};

use super::sequence::PackedObject;
use super::spool::Spool;
use crate::Error;

/// A chunk with its stored bytes.
pub(super) struct StoredChunk {
    pub(super) codec: Codec,
    pub(super) len: u32,
    pub(super) digest: [u8; 32],
    pub(super) objects: Vec<Row<PackedObject>>,
    /// The job of the previous piece of its object.
    pub(super) after: Option<usize>,
    pub(super) prefix: Vec<BaseRange>,
    pub(super) stored: Vec<u8>,
}

const RANGES: &str = "the number of ranges of prefixes";

/// Writes chunks in the order of their numbers, whatever the order of arrival.
pub(super) struct ChunkWriter {
    pub(super) spool: Spool,
    waiting: BTreeMap<usize, StoredChunk>,
    pub(super) chunks: Vec<Chunk>,
    /// The ranges of all prefixes, chunk after chunk.
    pub(super) ranges: Vec<BaseRange>,
    /// The packed objects in groups, group after group.
    pub(super) grouped: Vec<Row<PackedObject>>,
    /// The chunk that holds each job's bytes.
    pub(super) chunk_of_job: Vec<Row<Chunk>>,
    /// The chunks of equal pieces.
    pieces: HashMap<([u8; 32], u32), Vec<Row<Chunk>>>,
    /// Whether the pieces of an object must be in chunks that do not descend (core 7.3).
    in_order: bool,
    offset: u64,
}

impl ChunkWriter {
    pub(super) fn new(spool: Spool, in_order: bool) -> Self {
        Self {
            spool,
            waiting: BTreeMap::new(),
            chunks: Vec::new(),
            ranges: Vec::new(),
            grouped: Vec::new(),
            chunk_of_job: Vec::new(),
            pieces: HashMap::new(),
            in_order,
            offset: 0,
        }
    }

    /// Accepts the chunk of job `number`, and writes all chunks that are next in order.
    pub(super) fn take(&mut self, number: usize, chunk: StoredChunk) -> Result<(), Error> {
        self.waiting.insert(number, chunk);
        while let Some(chunk) = self.waiting.remove(&self.chunk_of_job.len()) {
            self.write(chunk)?;
        }
        Ok(())
    }

    fn write(&mut self, chunk: StoredChunk) -> Result<(), Error> {
        let number = Row::after(self.chunks.len())?;
        let is_piece = chunk.objects.is_empty();
        if is_piece && chunk.prefix.is_empty() {
            // Equal pieces compress to equal bytes, and are stored once. With `in_order`, one is stored again if it would precede the previous piece.
            let after = chunk.after.filter(|_| self.in_order);
            let least = after.and_then(|job| self.chunk_of_job.get(job)).copied().unwrap_or(Row::FIRST);
            let known = self.pieces.entry((chunk.digest, chunk.len)).or_default();
            if let Some(fits) = known.get(known.partition_point(|known| *known < least)) {
                self.chunk_of_job.push(*fits);
                return Ok(());
            }
            known.push(number);
            self.chunk_of_job.push(number);
        } else {
            self.chunk_of_job.push(number);
        }
        self.spool.write(&chunk.stored)?;
        let first_range = num::fit(self.ranges.len(), RANGES)?;
        self.ranges.extend(&chunk.prefix);
        let first = num::fit(self.grouped.len(), Object::COUNT)?;
        self.grouped.extend(&chunk.objects);
        let end = num::fit(self.grouped.len(), Object::COUNT)?;
        let stored_len = num::fit(chunk.stored.len(), "the stored length of a chunk")?;
        self.chunks.push(Chunk {
            codec: chunk.codec,
            offset: self.offset,
            stored_len,
            len: chunk.len,
            digest: chunk.digest,
            holds: if is_piece { Holds::Piece } else { Holds::Group(first..end) },
            prefix: first_range..num::fit(self.ranges.len(), RANGES)?,
        });
        self.offset += u64::from(stored_len);
        Ok(())
    }
}
