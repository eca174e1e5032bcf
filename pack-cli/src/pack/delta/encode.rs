//! The threads that encode a delta bundle's chunks.

use std::sync::{Mutex, PoisonError};

use sealift_format::{Codec, pieces};
use zstd_safe::{CCtx, CParameter};

use super::plan::{Limits, Planned};
use super::{row, suffix};
use crate::pack::PackOptions;
use crate::pack::compress::{self, frame_parameters};
use crate::pack::scan::close_up;
use crate::pack::sequence::Sequenced;
use crate::pack::writer::{ChunkWriter, StoredChunk};
use crate::{Error, Progress};
use sealift_store::base::{BaseReader, Bases};
use sealift_store::source::{OpenCache, Source};
use sealift_store::threads::parallel::for_each;

/// What all threads share.
pub(super) struct Encoder<'a> {
    pub(super) sources: &'a [&'a Source],
    pub(super) packed: &'a Sequenced,
    pub(super) bases: &'a Bases,
    pub(super) limits: &'a Limits,
    pub(super) options: &'a PackOptions,
    pub(super) progress: &'a Progress,
}

/// What came of a piece.
#[derive(Clone, Copy, Debug)]
pub(super) struct PiecePlace {
    /// The job that stores it, if it has data.
    pub(super) job: Option<u32>,
    pub(super) chaining_value: [u8; 32],
}

/// The place of a chunk among those that are stored.
#[derive(Clone, Copy, Debug)]
struct Job {
    number: u32,
    /// The one of the piece before it in its object.
    after: Option<u32>,
}

/// Numbers the chunks. Pieces without data have no job.
fn number(planned: &[Planned]) -> Vec<Option<Job>> {
    let (mut next, mut before) = (0, None);
    let mut jobs = Vec::with_capacity(planned.len());
    for chunk in planned {
        let object = chunk.piece.map(|(object, _)| object);
        let after = before.filter(|(known, _)| object == Some(*known)).map(|(_, job)| job);
        let job = (chunk.len > 0).then_some(Job { number: next, after });
        if let Some(job) = job {
            next += 1;
            before = object.map(|object| (object, job.number));
        }
        jobs.push(job);
    }
    jobs
}

/// What one thread keeps.
struct Hand<'a> {
    cache: OpenCache,
    reader: BaseReader<'a>,
    data: Vec<u8>,
    prefix: Vec<u8>,
}

impl Encoder<'_> {
    /// Encodes all chunks into `writer`. Returns what came of each that is a piece.
    pub(super) fn run(&self, planned: &[Planned], writer: &mut ChunkWriter) -> Result<Vec<Option<PiecePlace>>, Error> {
        let jobs = number(planned);
        let tasks: Vec<usize> = (0..planned.len()).collect();
        let places = Mutex::new(vec![None; planned.len()]);
        let writer = Mutex::new(writer);
        let start = || Hand {
            cache: OpenCache::default(),
            reader: BaseReader::new(self.bases),
            data: Vec::new(),
            prefix: Vec::new(),
        };
        for_each(self.options.jobs.max(1), &tasks, start, |hand, &at| {
            self.progress.check()?;
            let chunk = &planned[at];
            let chaining_value = self.read(hand, chunk)?;
            if let Some(chaining_value) = chaining_value {
                let place = PiecePlace { job: jobs[at].map(|job| job.number), chaining_value };
                places.lock().unwrap_or_else(PoisonError::into_inner)[at] = Some(place);
            }
            let Some(Job { number: job, after }) = jobs[at] else { return Ok(()) };
            let stored = StoredChunk { after, ..self.encode(hand, chunk)? };
            writer.lock().unwrap_or_else(PoisonError::into_inner).take(job, stored)?;
            self.progress.add(chunk.len, 0);
            Ok(())
        })?;
        Ok(places.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the data of a chunk, and compares them with what was read before. Of a piece, returns the chaining value.
    fn read(&self, hand: &mut Hand<'_>, chunk: &Planned) -> Result<Option<[u8; 32]>, Error> {
        hand.data.clear();
        if let Some((object, number)) = chunk.piece {
            let from = row(self.packed, object);
            let start = number * self.limits.piece_len();
            let end = from.size.min(start + self.limits.piece_len());
            self.append(hand, object, start, end)?;
            let chaining_value = pieces::chaining_value(start, std::iter::once(&hand.data[..]));
            let kept = close_up(&mut hand.data, start, &from.holes);
            hand.data.truncate(kept);
            return Ok(Some(chaining_value));
        }
        for object in &chunk.objects {
            let from = row(self.packed, *object);
            let start = hand.data.len();
            self.append(hand, *object, 0, from.size)?;
            if blake3::hash(&hand.data[start..]).as_bytes() != &from.id {
                return Err(Error::Usage("a file changed while it was packed: repeat the command".into()));
            }
            let kept = close_up(&mut hand.data[start..], 0, &from.holes);
            hand.data.truncate(start + kept);
        }
        Ok(None)
    }

    fn append(&self, hand: &mut Hand<'_>, object: u32, start: u64, end: u64) -> Result<(), Error> {
        let item = row(self.packed, object).first;
        let content = self.sources[item.source].open(item.content, &mut hand.cache)?;
        let at = hand.data.len();
        hand.data.resize(at + usize::try_from(end - start).unwrap_or(0), 0);
        content.read_at(&mut hand.data[at..], start)?;
        content.finish()
    }

    fn encode(&self, hand: &mut Hand<'_>, chunk: &Planned) -> Result<StoredChunk, Error> {
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
            // Where a prefix helps that much, nothing is smaller without one.
            let is_enough = stored.len() < data.len() / 8;
            take(Codec::ZstdPrefix, stored);
            if chunk.is_code && suffix::fits(prefix, data, self.limits.memory) {
                take(Codec::Suffix, suffix::encode(level, prefix, data).map_err(Error::Usage)?);
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
            len: u32::try_from(data.len()).unwrap_or(u32::MAX),
            digest: *blake3::hash(&stored).as_bytes(),
            objects: chunk.objects.clone(),
            after: None,
            prefix: if codec.has_prefix() { chunk.prefix.clone() } else { Vec::new() },
            stored,
        })
    }
}

/// The least level that looks at many places for a match.
const THOROUGH: i32 = 10;
/// The highest level that looks for matches in lists. Those above keep trees, into which a prefix takes ten times as long to enter.
const LISTS: i32 = 12;
/// Where lists leave less than this part of the data, a tree would not save enough for its time (spec/rationale.md, "A prefix is what the base has").
const LITTLE: usize = 320;
/// log2 of the largest window of which a tree of usual size holds every place.
const TREE_WINDOW: u32 = 23;

/// Compresses `data` into one frame, with what stands in `prefix` before it.
pub(super) fn compress(level: i32, data: &[u8], prefix: &[u8]) -> Result<Vec<u8>, String> {
    let frame = compress_once(if prefix.is_empty() { level } else { level.min(LISTS) }, data, prefix)?;
    let is_worth_a_tree = frame.len() > data.len() / LITTLE && window_log(prefix.len() + data.len()) <= TREE_WINDOW;
    if prefix.is_empty() || level <= LISTS || !is_worth_a_tree {
        return Ok(frame);
    }
    let other = compress_once(level, data, prefix)?;
    Ok(if other.len() < frame.len() { other } else { frame })
}

fn compress_once(level: i32, data: &[u8], prefix: &[u8]) -> Result<Vec<u8>, String> {
    // A context keeps what it refers to for as long as it lives: this one lives for one frame.
    let mut context = CCtx::create();
    frame_parameters(&mut context, level)?;
    if !prefix.is_empty() {
        prefix_parameters(&mut context, level, prefix.len() + data.len())?;
        context.ref_prefix(prefix).map_err(|code| zstd_safe::get_error_name(code).to_owned())?;
    }
    compress::compress(&mut context, data)
}

/// log2 of the least window over so many bytes.
fn window_log(len: usize) -> u32 {
    len.next_power_of_two().trailing_zeros().clamp(10, 30)
}

/// Sets what lets a compressor find its matches in a prefix: a window over all of it, and tables that hold it.
fn prefix_parameters(context: &mut CCtx<'_>, level: i32, len: usize) -> Result<(), String> {
    let window_log = window_log(len);
    let mut parameters = vec![CParameter::WindowLog(window_log)];
    let is_quick = level < THOROUGH;
    if level <= LISTS {
        // A quick look needs no place of each byte: what is long is found by its own table, and small tables are soon emptied. A thorough
        // one knows the last 2^26 places of the largest windows.
        let table_log = window_log.min(if is_quick { 20 } else { 26 });
        parameters.extend([CParameter::HashLog(table_log), CParameter::ChainLog(table_log)]);
    }
    if window_log > if is_quick { 20 } else { TREE_WINDOW } {
        parameters.push(CParameter::EnableLongDistanceMatching(true));
    }
    for parameter in parameters {
        let set = context.set_parameter(parameter);
        set.map_err(|code| format!("zstd level {level}: {}", zstd_safe::get_error_name(code)))?;
    }
    Ok(())
}
