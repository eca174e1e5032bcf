//! The threads that encode a delta bundle's chunks.

use std::collections::HashMap;

use parking_lot::Mutex;
use sealift_format::num;
use sealift_format::{Codec, Row, pieces};

use super::over_prefix::compress;
use super::plan::{Limits, Planned};
use super::{byte_difference, row};
use crate::pack::PackOptions;
use crate::pack::scan::close_up;
use crate::pack::sequence::{PackedObject, Sequenced};
use crate::pack::writer::{ChunkWriter, StoredChunk};
use crate::{Error, Progress};
use sealift_store::base::{BaseReader, Bases};
use sealift_store::source::{OpenCache, Source};
use sealift_store::threads::parallel::map_with;

/// The shared state of all threads.
pub(super) struct Encoder<'a> {
    pub(super) sources: &'a [&'a Source],
    pub(super) packed: &'a Sequenced,
    pub(super) bases: &'a Bases,
    pub(super) limits: &'a Limits,
    pub(super) options: &'a PackOptions,
    pub(super) progress: &'a Progress,
}

/// The result for a piece.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoredPiece {
    /// The job that stores it, if it has data.
    pub(super) job: Option<usize>,
    pub(super) chaining_value: [u8; 32],
}

/// The place of a chunk among the stored ones.
#[derive(Clone, Copy, Debug)]
struct Job {
    number: usize,
    /// The job of the previous piece of its object.
    after: Option<usize>,
}

/// Numbers the chunks. Pieces without data have no job.
fn number(planned: &[Planned]) -> Vec<Option<Job>> {
    let mut next = 0;
    let mut last: HashMap<Row<PackedObject>, usize> = HashMap::new();
    let mut jobs = Vec::with_capacity(planned.len());
    for chunk in planned {
        let object = chunk.piece.map(|(object, _)| object);
        let after = object.and_then(|object| last.get(&object)).copied();
        let job = (chunk.len > 0).then_some(Job { number: next, after });
        if let Some(job) = job {
            next += 1;
            last.extend(object.map(|object| (object, job.number)));
        }
        jobs.push(job);
    }
    jobs
}

/// The state of one thread.
struct WorkerState<'a> {
    cache: OpenCache,
    reader: BaseReader<'a>,
    data: Vec<u8>,
    prefix: Vec<u8>,
}

impl Encoder<'_> {
    /// Encodes all chunks into `writer`. Returns the result for each chunk that is a piece.
    pub(super) fn run(&self, planned: &[Planned], writer: &mut ChunkWriter) -> Result<Vec<Option<StoredPiece>>, Error> {
        let jobs = number(planned);
        let tasks: Vec<usize> = (0..planned.len()).collect();
        let writer = Mutex::new(writer);
        let start = || WorkerState {
            cache: OpenCache::default(),
            reader: BaseReader::new(self.bases),
            data: Vec::new(),
            prefix: Vec::new(),
        };
        map_with(self.options.jobs.max(1), &tasks, start, |hand, &at| {
            self.progress.check()?;
            let chunk = &planned[at];
            let chaining_value = self.read(hand, chunk)?;
            let place = chaining_value
                .map(|chaining_value| StoredPiece { job: jobs[at].map(|job| job.number), chaining_value });
            let Some(Job { number: job, after }) = jobs[at] else { return Ok(place) };
            let stored = StoredChunk { after, ..self.encode(hand, chunk)? };
            writer.lock().take(job, stored)?;
            self.progress.add(chunk.len, 0);
            Ok(place)
        })
    }

    /// Reads the data of a chunk. Compares the objects of a group with the first reading; for a piece, returns the chaining value, which is compared
    /// when the layout is parsed.
    fn read(&self, hand: &mut WorkerState<'_>, chunk: &Planned) -> Result<Option<[u8; 32]>, Error> {
        hand.data.clear();
        if let Some((object, number)) = chunk.piece {
            let from = row(self.packed, object);
            let start = number * self.limits.piece_len();
            let end = from.size().min(start + self.limits.piece_len());
            self.append(hand, object, start, end)?;
            let chaining_value = pieces::chaining_value(start, std::iter::once(&hand.data[..]));
            let kept = close_up(&mut hand.data, start, from.holes());
            hand.data.truncate(kept);
            return Ok(Some(chaining_value));
        }
        for object in &chunk.objects {
            let from = row(self.packed, *object);
            let start = hand.data.len();
            self.append(hand, *object, 0, from.size())?;
            if blake3::hash(&hand.data[start..]).as_bytes() != &from.id {
                return Err(Error::Usage("a file changed while it was packed".into()));
            }
            let kept = close_up(&mut hand.data[start..], 0, from.holes());
            hand.data.truncate(start + kept);
        }
        Ok(None)
    }

    fn append(&self, hand: &mut WorkerState<'_>, object: Row<PackedObject>, start: u64, end: u64) -> Result<(), Error> {
        let item = row(self.packed, object).first;
        let content = self.sources[item.source].open(item.content, &mut hand.cache)?;
        let at = hand.data.len();
        hand.data.resize(at + num::size(end - start), 0);
        content.read_at(&mut hand.data[at..], start)?;
        content.finish()
    }

    fn encode(&self, hand: &mut WorkerState<'_>, chunk: &Planned) -> Result<StoredChunk, Error> {
        hand.reader.prefix(&chunk.prefix, &mut hand.prefix)?;
        let (data, prefix) = (&hand.data, &hand.prefix);
        let level = self.options.level;
        let mut best = (Codec::Raw, data.clone());
        let mut take = |codec: Codec, stored: Vec<u8>| {
            if stored.len() < best.1.len() {
                best = (codec, stored);
            }
        };
        if !prefix.is_empty() {
            let stored = compress(level, data, prefix).map_err(Error::Usage)?;
            // Where a prefix helps that much, encoding without one would not be smaller.
            let is_enough = stored.len() < data.len() / 8;
            take(Codec::ZstdPrefix, stored);
            if chunk.has_addresses && byte_difference::fits(prefix, data, self.limits.memory) {
                take(Codec::ByteDifference, byte_difference::encode(level, prefix, data).map_err(Error::Usage)?);
            }
            if !is_enough {
                take(Codec::Zstd, compress(level, data, &[]).map_err(Error::Usage)?);
            }
        } else {
            take(Codec::Zstd, compress(level, data, &[]).map_err(Error::Usage)?);
        }
        let (codec, stored) = best;
        Ok(StoredChunk {
            codec,
            len: num::fit(data.len(), "the length of a chunk")?,
            digest: *blake3::hash(&stored).as_bytes(),
            objects: chunk.objects.clone(),
            after: None,
            is_hot: chunk.is_hot,
            prefix: if codec.has_prefix() { chunk.prefix.clone() } else { Vec::new() },
            stored,
        })
    }
}
