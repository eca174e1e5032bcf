//! The threads that produce the full bundle's chunks, each copied from a base or encoded, and write them in order.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use sealift_format::num::at;
use sealift_format::{Codec, Holds, Layout, pieces};

use super::objects::{ObjectReader, Objects};
use crate::pack::Spool;
use crate::pack::compress::Compressor;
use crate::pack::scan::close_up;
use crate::{Error, Progress};
use sealift_store::base::BundleFile;
use sealift_store::base::chunks::{self, Held, PieceOf, SameChunks, first_rows, piece_rows};
use sealift_store::threads::in_turn::OrderedSlots;
use sealift_store::threads::panic_guard::OnPanic;
use sealift_store::threads::parallel::for_each;

/// The shared state of all threads.
pub(super) struct Joiner<'a> {
    pub(super) objects: &'a Objects<'a>,
    /// The layout, without what follows from the chunks.
    pub(super) layout: &'a Layout,
    pub(super) piece_len: u64,
    pub(super) level: i32,
    pub(super) progress: &'a Progress,
}

/// The result.
pub(super) struct Made {
    pub(super) layout: Layout,
    pub(super) spool: Spool,
    pub(super) copied_chunks: u64,
    pub(super) copied_bytes: u64,
    pub(super) encoded_chunks: u64,
    pub(super) encoded_bytes: u64,
}

/// A unit of work.
enum Task {
    /// A chunk, and the row of the piece in it.
    Chunk { number: u32, row: Option<usize> },
    /// The chaining value of a piece without a chunk, or whose chunk belongs to an earlier one.
    Value { row: usize },
}

/// The state of one thread.
struct WorkerState<'a> {
    reader: ObjectReader<'a>,
    compressor: Option<Compressor>,
    data: Vec<u8>,
}

/// The stored bytes of a chunk.
struct Stored {
    codec: Codec,
    bytes: Vec<u8>,
    is_copied: bool,
}

/// Writes chunks in the order of their numbers.
struct Writer {
    made: Made,
    next: u32,
    waiting: BTreeMap<u32, Stored>,
}

/// Finished chunks that may wait, per thread. A thread that is further ahead waits for the others.
const AHEAD: u32 = 4;

impl<'a> Joiner<'a> {
    /// Produces all chunks and writes them to `spool`. `layouts` are those of 4.7, which tell from which base a chunk may be copied.
    pub(super) fn run(&self, layouts: &[Option<[u8; 32]>], spool: Spool, jobs: usize) -> Result<Made, Error> {
        let fits = |base: usize, file: &BundleFile| {
            layouts.get(base) == Some(&Some(file.bundle.head.root().contents.layout_blake3))
        };
        let same = SameChunks::new(self.objects.bases, fits);
        let rows: Vec<PieceOf> = piece_rows(self.layout).collect();
        let known = self.known_values();
        let tasks = self.tasks(&known);
        let values = Mutex::new(known.clone());
        let writer = OrderedSlots::new(BTreeMap::from([(0, Writer::new(self.layout.clone(), spool))]));
        let ahead = u32::try_from(jobs).unwrap_or(u32::MAX).saturating_mul(AHEAD);
        let start = || WorkerState { reader: self.objects.reader(), compressor: None, data: Vec::new() };
        let work = |hand: &mut WorkerState<'_>, task: &Task| {
            self.progress.check()?;
            let (number, stored) = match task {
                Task::Chunk { number, row: None } => (*number, self.make_group(hand, *number, &same)?),
                Task::Chunk { number, row: Some(row) } => {
                    let (value, stored) = self.make_piece(hand, *number, (rows[*row], known[*row]), &same)?;
                    values.lock().unwrap_or_else(PoisonError::into_inner)[*row] = Some(value);
                    (*number, stored)
                }
                Task::Value { row } => {
                    let value = self.read_piece(hand, rows[*row])?;
                    values.lock().unwrap_or_else(PoisonError::into_inner)[*row] = Some(value);
                    return Ok(());
                }
            };
            let mut written = Ok(());
            // Chunks are assigned in order, so the thread with the next one does not wait.
            let is_turn = |writer: &Writer| number.saturating_sub(writer.next) < ahead;
            writer.act(0, is_turn, |writer| written = writer.take(number, stored));
            self.progress.add(self.layout.chunks[at(number)].len.into(), 0);
            written
        };
        for_each(jobs, &tasks, start, |hand, task| {
            let _guard = OnPanic(|| writer.give_up());
            work(hand, task).inspect_err(|_| writer.give_up())
        })?;
        let mut made = match writer.into_things().next() {
            Some(writer) => writer.made,
            None => return Err(Error::Usage("nothing was written".into())), // it returns what was passed to it
        };
        let values = values.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (piece, value) in made.layout.pieces.iter_mut().zip(values) {
            piece.chaining_value = value.unwrap_or_default();
        }
        Ok(made)
    }

    /// Returns the chaining values known from the bases, by the rows of the pieces.
    fn known_values(&self) -> Vec<Option<[u8; 32]>> {
        let mut values = vec![None; self.layout.pieces.len()];
        for large in &self.layout.large {
            let Some(number) = self.objects.in_bases(large.object) else { continue };
            let pieces = self.objects.bases.pieces_of(number, self.piece_len);
            for (value, piece) in values[at(large.first_piece)..].iter_mut().zip(pieces) {
                *value = Some(piece.chaining_value);
            }
        }
        values
    }

    fn tasks(&self, known: &[Option<[u8; 32]>]) -> Vec<Task> {
        let mut rows = first_rows(self.layout);
        let mut tasks: Vec<Task> = (0..).zip(&rows).map(|(number, row)| Task::Chunk { number, row: *row }).collect();
        rows.sort_unstable();
        let is_left = |row: &usize| known[*row].is_none() && rows.binary_search(&Some(*row)).is_err();
        tasks.extend((0..known.len()).filter(is_left).map(|row| Task::Value { row }));
        tasks
    }

    fn make_group(&self, hand: &mut WorkerState<'_>, number: u32, same: &SameChunks) -> Result<Stored, Error> {
        let (index, chunk) = (self.objects.index(), &self.layout.chunks[at(number)]);
        let objects = match &chunk.holds {
            Holds::Group(range) => self.layout.group(range),
            Holds::Piece => &[],
        };
        if let Some(copied) = self.copy(&chunks::group(index, objects, chunk.len), same)? {
            return Ok(copied);
        }
        hand.data.clear();
        for object in objects {
            let start = hand.data.len();
            hand.reader.read(*object, 0..index.object(*object).size, &mut hand.data)?;
            let kept = close_up(&mut hand.data[start..], 0, self.objects.holes_of(*object));
            hand.data.truncate(start + kept);
        }
        self.encode(hand)
    }

    /// Produces the chunk of a piece whose chaining value may be known. Returns that value too.
    fn make_piece(
        &self,
        hand: &mut WorkerState<'_>,
        chunk: u32,
        (piece, known): (PieceOf, Option<[u8; 32]>),
        same: &SameChunks,
    ) -> Result<([u8; 32], Stored), Error> {
        let len = self.layout.chunks[at(chunk)].len;
        let copy = |value| self.copy(&chunks::piece(&value, (piece.1, self.piece_len), len), same);
        if let Some(value) = known
            && let Some(copied) = copy(value)?
        {
            return Ok((value, copied));
        }
        let value = self.read_piece(hand, piece)?;
        match copy(value)? {
            Some(copied) => Ok((value, copied)),
            None => Ok((value, self.encode(hand)?)),
        }
    }

    /// Returns the stored bytes of a base's chunk with this content, if there is one.
    fn copy(&self, held: &Held, same: &SameChunks) -> Result<Option<Stored>, Error> {
        let Some((base, number)) = same.find(held).next() else { return Ok(None) };
        let Some(file) = self.objects.bases.files().nth(base).flatten() else { return Ok(None) };
        let mut bytes = Vec::new();
        file.read_checked(number, &mut bytes)?;
        Ok(Some(Stored { codec: file.bundle.layout.chunks[at(number)].codec, bytes, is_copied: true }))
    }

    /// Reads the data of a piece. Returns the chaining value.
    fn read_piece(&self, hand: &mut WorkerState<'_>, (object, number): PieceOf) -> Result<[u8; 32], Error> {
        hand.data.clear();
        let start = number.saturating_mul(self.piece_len);
        let end = self.objects.index().object(object).size.min(start.saturating_add(self.piece_len));
        hand.reader.read(object, start..end, &mut hand.data)?;
        let value = pieces::chaining_value(start, std::iter::once(&hand.data[..]));
        let kept = close_up(&mut hand.data, start, self.objects.holes_of(object));
        hand.data.truncate(kept);
        Ok(value)
    }

    fn encode(&self, hand: &mut WorkerState<'_>) -> Result<Stored, Error> {
        let compressor = match &mut hand.compressor {
            Some(compressor) => compressor,
            none => none.insert(Compressor::new(self.level)?),
        };
        let (codec, bytes) = compressor.chunk(&hand.data)?;
        Ok(Stored { codec, bytes, is_copied: false })
    }
}

impl Writer {
    fn new(layout: Layout, spool: Spool) -> Self {
        let made = Made { layout, spool, copied_chunks: 0, copied_bytes: 0, encoded_chunks: 0, encoded_bytes: 0 };
        Self { made, next: 0, waiting: BTreeMap::new() }
    }

    /// Accepts chunk `number`, and writes all chunks that are next in order.
    fn take(&mut self, number: u32, stored: Stored) -> Result<(), Error> {
        self.waiting.insert(number, stored);
        while let Some(stored) = self.waiting.remove(&self.next) {
            let made = &mut self.made;
            made.spool.write(&stored.bytes)?;
            let chunk = &mut made.layout.chunks[at(self.next)];
            chunk.codec = stored.codec;
            chunk.stored_len = u32::try_from(stored.bytes.len()).unwrap_or(u32::MAX);
            chunk.digest = *blake3::hash(&stored.bytes).as_bytes();
            let (chunks, bytes) = if stored.is_copied {
                (&mut made.copied_chunks, &mut made.copied_bytes)
            } else {
                (&mut made.encoded_chunks, &mut made.encoded_bytes)
            };
            *chunks += 1;
            *bytes += u64::from(chunk.stored_len);
            self.next += 1;
        }
        Ok(())
    }
}
