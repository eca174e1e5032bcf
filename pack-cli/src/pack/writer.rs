//! Writes chunks to the spool in order, from the threads that compress them.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Write as _;
use std::ops::Range;

use sealift_format::num;
use sealift_format::{BaseRange, Chunk, Codec, Holds, Object, Row, Table as _};

use super::Zone;
use super::sequence::PackedObject;
use crate::Error;
use crate::output::{Output, Spool};

/// A chunk with its stored bytes.
pub(super) struct StoredChunk {
    pub(super) codec: Codec,
    pub(super) len: u32,
    pub(super) digest: [u8; 32],
    pub(super) objects: Vec<Row<PackedObject>>,
    /// The job of the previous piece of its object.
    pub(super) after: Option<usize>,
    pub(super) prefix: Vec<BaseRange>,
    /// Whether it is in the hot set; such chunks arrive before all others.
    pub(super) is_hot: bool,
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
    /// Whether the pieces of an object must be in chunks that do not descend (ostree 7).
    in_order: bool,
    /// The stored bytes of the hot set, if it goes to the end.
    aside: Option<File>,
    /// Chunks of the hot set.
    hot: usize,
}

impl ChunkWriter {
    pub(super) fn new(output: &Output, in_order: bool, zone: Zone) -> Result<Self, Error> {
        let spool = Spool::create(output)?;
        let aside = match zone {
            Zone::Start => None,
            Zone::End => Some(spool.aside()?),
        };
        Ok(Self {
            spool,
            waiting: BTreeMap::new(),
            chunks: Vec::new(),
            ranges: Vec::new(),
            grouped: Vec::new(),
            chunk_of_job: Vec::new(),
            pieces: HashMap::new(),
            in_order,
            aside,
            hot: 0,
        })
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
        match &mut self.aside {
            Some(aside) if chunk.is_hot => aside.write_all(&chunk.stored).map_err(|error| self.spool.failed(error))?,
            _ => self.spool.write(&chunk.stored)?,
        }
        self.hot += usize::from(chunk.is_hot);
        let first_range = num::fit(self.ranges.len(), RANGES)?;
        self.ranges.extend(&chunk.prefix);
        let first = num::fit(self.grouped.len(), Object::COUNT)?;
        self.grouped.extend(&chunk.objects);
        let end = num::fit(self.grouped.len(), Object::COUNT)?;
        let stored_len = num::fit(chunk.stored.len(), "the stored length of a chunk")?;
        self.chunks.push(Chunk {
            codec: chunk.codec,
            offset: 0, // known when all are written
            stored_len,
            len: chunk.len,
            digest: chunk.digest,
            holds: if is_piece { Holds::Piece } else { Holds::Group(first..end) },
            prefix: first_range..num::fit(self.ranges.len(), RANGES)?,
        });
        Ok(())
    }

    /// Completes the chunks, and puts the hot set in its zone. Returns the numbers of its chunks.
    pub(super) fn close(&mut self) -> Result<Range<u32>, Error> {
        let mut start = 0;
        if let Some(mut aside) = self.aside.take() {
            self.spool.append(&mut aside)?;
            start = self.chunks.len() - self.hot;
            self.rotate()?;
        }
        let mut offset = 0;
        for chunk in &mut self.chunks {
            chunk.offset = offset;
            offset += u64::from(chunk.stored_len);
        }
        Ok(num::fit(start, Chunk::COUNT)?..num::fit(start + self.hot, Chunk::COUNT)?)
    }

    /// Moves the chunks of the hot set, which are the first, after all others, and their rows of the other tables likewise.
    fn rotate(&mut self) -> Result<(), Error> {
        let (hot, count) = (self.hot, self.chunks.len());
        self.chunks.rotate_left(hot);
        for chunk in &mut self.chunk_of_job {
            let before = chunk.at();
            *chunk = Row::after(if before < hot { before + count - hot } else { before - hot })?;
        }
        let (grouped, ranges) = (std::mem::take(&mut self.grouped), std::mem::take(&mut self.ranges));
        for chunk in &mut self.chunks {
            if let Holds::Group(range) = &mut chunk.holds {
                move_rows(&grouped, &mut self.grouped, range)?;
            }
            move_rows(&ranges, &mut self.ranges, &mut chunk.prefix)?;
        }
        Ok(())
    }
}

/// Appends a chunk's rows to those of the chunks before it, and sets `range` to where they are now.
fn move_rows<T: Copy>(from: &[T], to: &mut Vec<T>, range: &mut Range<u32>) -> Result<(), Error> {
    let start = num::fit(to.len(), Object::COUNT)?;
    to.extend(&from[num::at(range.start)..num::at(range.end)]);
    *range = start..num::fit(to.len(), Object::COUNT)?;
    Ok(())
}
