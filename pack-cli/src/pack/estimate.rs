//! Estimates the result of packing from a sample of the contents.

use std::time::{Duration, Instant};

use super::buffers::Buffers;
use super::compress::Compressor;
use super::image_wish::ImageWish;
use super::scan::scan;
use super::{AccessOrder, Ordered, PackOptions, PackRef};
use crate::Phase;
use crate::{Error, Progress};
use parking_lot::Mutex;
use sealift_format::num::wide;
use sealift_store::contents::tasks::{Part, Plan, Task};
use sealift_store::source::OpenCache;
use sealift_store::threads::parallel::for_each_with;
use serde::Serialize;

/// An estimate of packing.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Estimate {
    /// Files of the sources, counting hard links once.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Chunks, if no two files are equal and none has holes.
    pub chunks: u64,
    /// Size of the bundle in bytes.
    pub file_bytes: u64,
    /// Expected duration.
    pub time: Duration,
    /// Bytes that were compressed for the estimate.
    pub sampled_bytes: u64,
    /// For a delta bundle: what it would carry. Only the chunks of that are counted.
    pub delta: Option<DeltaEstimate>,
}

/// What a delta bundle would carry. Determining it reads all of the sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DeltaEstimate {
    /// Objects that no base has.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Returns the number of sampled parts: enough to cover different folders, and fewer at levels where each takes long.
fn part_count(level: i32) -> usize {
    if level < 10 { 48 } else { 16 }
}

/// Stored bytes of index and layout per file, as in bundles of Debian and of source trees.
const FRONT_BYTES: u64 = 40;

/// Samples the contents of `refs`, and estimates the result of packing all of them.
///
/// # Errors
/// Returns an error as [`super::pack`] does, except for errors of writing.
pub fn estimate(refs: &[PackRef<'_>], options: &PackOptions, progress: &Progress) -> Result<Estimate, Error> {
    let ordered = Ordered::new(refs, options, None)?;
    let (files, bytes) = ordered.size();
    let Ordered { sources, order: AccessOrder { parts, hot_end, .. }, .. } = ordered;
    let chunks = chunk_count(&parts, options.chunk_len);
    let parts = tasks_by_chunk(Plan::new(parts, hot_end, options.chunk_len), options.chunk_len);
    let sample: Vec<&Vec<Task>> = spread(&parts, part_count(options.level)).collect();
    let sampled_bytes = sample.iter().flat_map(|part| part.iter()).map(|task| task.len(options.chunk_len)).sum();
    progress.enter(Phase::Packing, sampled_bytes, 0);

    let buffers = Buffers::default();
    let measured: Mutex<(u64, Duration)> = Mutex::default();
    let start = || (OpenCache::default(), None);
    for_each_with(options.jobs.max(1), &sample, start, |(cache, compressor), part| {
        progress.check()?;
        let begin = Instant::now();
        let compressor = match compressor {
            Some(compressor) => compressor,
            None => compressor.insert(Compressor::new(options.level)?),
        };
        let mut joined = Vec::new();
        for task in *part {
            joined.extend(scan(&sources, task, options.chunk_len, ImageWish::default(), cache, &buffers)?.data());
            progress.add(task.len(options.chunk_len), 0);
        }
        let stored = wide(compressor.chunk(&joined)?.1.len());
        let mut measured = measured.lock();
        *measured = (measured.0 + stored, measured.1 + begin.elapsed());
        Ok(())
    })?;
    let (stored, spent) = measured.into_inner();
    let threads = wide(options.jobs.clamp(1, parts.len().max(1)));
    let whole = |part: u64| scaled(part, bytes, sampled_bytes);
    Ok(Estimate {
        files,
        bytes,
        chunks,
        file_bytes: whole(stored) + files * FRONT_BYTES + u64::from(options.signature_room),
        time: Duration::from_nanos(whole(nanos(spent)) / threads),
        sampled_bytes,
        delta: None,
    })
}

/// Returns the number of chunks if all contents differ: small ones are grouped, others cut into pieces.
fn chunk_count(parts: &[Part], chunk_len: u64) -> u64 {
    let (small, large): (Vec<&Part>, Vec<&Part>) = parts.iter().partition(|part| part.item.len <= chunk_len);
    let pieces: u64 = large.iter().map(|part| part.pieces.end - part.pieces.start).sum();
    small.iter().map(|part| part.item.len).sum::<u64>().div_ceil(chunk_len) + pieces
}

/// Splits the tasks of a plan into parts of about a chunk each. A piece is a chunk of its own.
fn tasks_by_chunk(mut plan: Plan, chunk_len: u64) -> Vec<Vec<Task>> {
    let mut parts: Vec<Vec<Task>> = Vec::new();
    // Size of the last part, while small contents may still be added to it.
    let mut open = None;
    while let Some((task, at_hot_end)) = plan.next_task() {
        let is_small = matches!(task, Task::Batch(_));
        let before = open.filter(|len| is_small && !at_hot_end && *len < chunk_len);
        let len = before.unwrap_or(0) + task.len(chunk_len);
        match parts.last_mut().filter(|_| before.is_some()) {
            Some(last) => last.push(task),
            None => parts.push(vec![task]),
        }
        open = is_small.then_some(len);
    }
    parts
}

/// Returns at most `most` elements of `all`, evenly spread.
pub(super) fn spread<T>(all: &[T], most: usize) -> impl Iterator<Item = &T> {
    let count = all.len().min(most);
    (0..count).map(move |at| &all[at * all.len() / count])
}

/// Scales `part` of `sampled` up to `all`; 0 if nothing was sampled.
pub(super) fn scaled(part: u64, all: u64, sampled: u64) -> u64 {
    let scaled = (u128::from(part) * u128::from(all)).checked_div(sampled.into());
    u64::try_from(scaled.unwrap_or(0)).unwrap_or(u64::MAX) // a larger estimate is cut off
}

/// Returns a time in nanoseconds; the type has room for 500 years.
pub(super) fn nanos(time: Duration) -> u64 {
    time.as_secs().saturating_mul(1_000_000_000).saturating_add(time.subsec_nanos().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_spread_over_all() {
        let all: Vec<u32> = (0..1000).collect();
        assert_eq!(spread(&all, 4).copied().collect::<Vec<_>>(), [0, 250, 500, 750]);
        assert_eq!(spread(&all[..3], 4).copied().collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(spread(&all[..0], 4).count(), 0);
        assert_eq!(scaled(u64::MAX, 10, 5), u64::MAX);
        assert_eq!(scaled(7, 100, 0), 0);
    }
}
