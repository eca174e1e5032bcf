//! Makes lost bytes of a bundle's body again, codeword by codeword.

use std::fs::File;
use std::num::NonZero;
use std::ops::Range;

use parking_lot::Mutex;
use reed_solomon_simd::rate::RateDecoder as _;
use rustix::fs::Advice;
use sealift_format::Geometry;
use sealift_format::num::{at, size, wide};
use sealift_store::threads::parallel::for_each_with;

use super::code::{self, Decoder};
use super::file::{Checksums, Digested, Front, RecoveryFile};
use super::readable;
use crate::{Error, Progress, RecoveryFault};

/// A part of a bundle's body that lies in a file of its own.
#[derive(Debug)]
pub(super) struct Slice {
    /// Its bytes in the bundle.
    pub(super) range: Range<u64>,
    /// The file, if there is one.
    pub(super) file: Option<File>,
    /// Where it begins in the file.
    pub(super) at: u64,
}

impl Slice {
    /// Returns what it has of a range of the bundle, and where that begins in the file.
    pub(super) fn part(&self, range: &Range<u64>) -> Option<(Range<u64>, u64)> {
        let part = range.start.max(self.range.start)..range.end.min(self.range.end);
        (!part.is_empty()).then(|| (part.clone(), self.at.saturating_add(part.start - self.range.start)))
    }
}

/// What is read of a bundle.
pub(super) struct Body<'a> {
    pub(super) files: &'a [RecoveryFile],
    pub(super) geometry: &'a Geometry,
    /// The parts of the body, in order.
    pub(super) slices: &'a [Slice],
    /// Damaged chunks, in ascending order, for shards without a checksum.
    pub(super) suspects: &'a [Range<u64>],
}

/// A part of what is read or made, for the caller to write.
pub(super) enum Part<'a> {
    /// What could be read in the run of a column. Where something is lost, zeros or wrong bytes are in its place.
    Run {
        column: usize,
        /// Where it begins in the bundle.
        offset: u64,
        bytes: &'a [u8],
        is_damaged: bool,
    },
    /// A lost shard that was made again, after its run.
    Made { offset: u64, bytes: &'a [u8] },
}

/// What was lost of a body.
#[derive(Debug, Default)]
pub(super) struct Lost {
    /// Bytes of lost shards, of each slice.
    pub(super) bytes: Vec<u64>,
    /// Those of them that the system could not read, or that are missing at the end of a file; the others had changed.
    pub(super) unreadable: Vec<u64>,
    /// Those that could not be made again.
    pub(super) gone: Vec<u64>,
    /// The first codeword of which too much is lost.
    pub(super) short: Option<Short>,
    /// The first ranges that the system could not read, in files that are there.
    pub(super) ranges: Vec<Range<u64>>,
    /// Shards that count as sound although no checksum of them is left, and neighbours joined.
    pub(super) unknown: Vec<Range<u64>>,
}

/// How many ranges are kept that could not be read.
const MOST_RANGES: usize = 1000;
/// How many runs without a checksum are kept before they are joined: 16 MiB of them.
const MOST_UNKNOWN: usize = 1 << 20;

/// A codeword of which too much is lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Short {
    /// How many of its shards are lost.
    lost: u64,
    /// How many more recovery shards are needed.
    needed: u64,
    /// Where the first of them begins in the bundle.
    offset: u64,
}

impl From<Short> for Error {
    fn from(Short { lost, needed, offset }: Short) -> Self {
        RecoveryFault::Unrepairable { lost, needed, offset }.into()
    }
}

impl Lost {
    fn new(slices: usize) -> Self {
        Self { bytes: vec![0; slices], unreadable: vec![0; slices], gone: vec![0; slices], ..Self::default() }
    }

    /// Returns the bytes of all slices.
    pub(super) fn all(bytes: &[u64]) -> u64 {
        bytes.iter().sum()
    }

    /// Adds a shard of which nothing tells whether it is sound.
    fn add_unknown(&mut self, bytes: &Range<u64>) {
        match self.unknown.last_mut() {
            Some(last) if last.end == bytes.start => last.end = bytes.end,
            _ => self.unknown.push(bytes.clone()),
        }
    }

    fn add(&mut self, other: Self) {
        let pairs =
            [(&mut self.bytes, other.bytes), (&mut self.unreadable, other.unreadable), (&mut self.gone, other.gone)];
        for (own, other) in pairs {
            own.iter_mut().zip(other).for_each(|(own, other)| *own += other);
        }
        self.short = self.short.or(other.short);
        self.unknown.extend(other.unknown);
        if self.unknown.len() > MOST_UNKNOWN {
            self.join_unknown();
        }
        self.ranges.extend(other.ranges.into_iter().take(MOST_RANGES.saturating_sub(self.ranges.len())));
    }
}

impl Lost {
    /// Joins runs that follow each other. If they are still many, all between the first and the last counts as unknown: more is checked then than
    /// needs to be.
    fn join_unknown(&mut self) {
        self.unknown.sort_unstable_by_key(|range| range.start);
        let mut joined: Vec<Range<u64>> = Vec::new();
        for range in self.unknown.drain(..) {
            match joined.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => joined.push(range),
            }
        }
        if joined.len() > MOST_UNKNOWN / 2 {
            let ends = joined.first().zip(joined.last()).map(|(first, last)| first.start..last.end);
            joined = ends.into_iter().collect();
        }
        self.unknown = joined;
    }
}

impl Body<'_> {
    /// Returns where the body ends in the bundle.
    fn end(&self) -> u64 {
        self.slices.last().map_or(0, |slice| slice.range.end)
    }

    /// Reads all codewords, on `jobs` threads, makes again what is lost, and passes everything to `write`. Codewords of which too much is lost are
    /// counted.
    ///
    /// # Errors
    /// Returns an error if a codeword takes too much memory, or those of `write`.
    pub(super) fn repair(
        &self,
        jobs: usize,
        progress: &Progress,
        write: &(impl Fn(Part<'_>) -> Result<(), Error> + Sync),
    ) -> Result<Lost, Error> {
        let shares = code::shares(self.geometry.codewords(self.end()));
        let total = Mutex::new(Lost::new(self.slices.len()));
        for_each_with(
            code::jobs(self.geometry, jobs)?,
            &shares,
            || None,
            |worker, share| {
                let worker = match worker {
                    Some(worker) => worker,
                    None => worker.insert(Worker::new(self.geometry)?),
                };
                for codeword in share.clone() {
                    progress.check()?;
                    let (lost, read) = worker.repair(self, codeword, write)?;
                    total.lock().add(lost);
                    progress.add(read, 0);
                }
                Ok(())
            },
        )?;
        Ok(total.into_inner())
    }

    /// Adds bytes of a range to those of the slices that have them.
    fn count(&self, counts: &mut [u64], range: &Range<u64>) {
        let after = self.slices.partition_point(|slice| slice.range.end <= range.start);
        for (count, slice) in counts.iter_mut().zip(self.slices).skip(after) {
            let Some((part, _)) = slice.part(range) else { break };
            *count += part.end - part.start;
        }
    }
}

/// Fills `buffer` from `offset` of the bundle on. Returns the ranges of the buffer that cannot be read; they are zeros.
pub(super) fn read(slices: &[Slice], buffer: &mut [u8], offset: u64) -> Vec<Range<usize>> {
    let range = offset..offset.saturating_add(wide(buffer.len()));
    let after = slices.partition_point(|slice| slice.range.end <= offset);
    let mut unread = Vec::new();
    for slice in slices.iter().skip(after) {
        let Some((part, place)) = slice.part(&range) else { break };
        let start = size(part.start - offset);
        let Some(own) = buffer.get_mut(start..size(part.end - offset)) else { break };
        match &slice.file {
            Some(file) => {
                let lost = readable::read(file, own, place);
                unread.extend(lost.into_iter().map(|lost| lost.start + start..lost.end + start));
            }
            None => {
                own.fill(0);
                unread.push(start..start + own.len());
            }
        }
    }
    unread
}

/// Bytes that a medium is asked for at once, since each codeword takes a little from many places.
const WINDOW: u64 = 4 << 20;

/// Has the system read on where a range reaches the next window, so that media are read in long runs.
fn ahead(slices: &[Slice], range: &Range<u64>) {
    let after = slices.partition_point(|slice| slice.range.end <= range.start);
    let Some((slice, (part, at))) = slices.get(after).and_then(|slice| Some((slice, slice.part(range)?))) else {
        return;
    };
    let (Some(file), end) = (&slice.file, at.saturating_add(part.end - part.start)) else { return };
    if at / WINDOW != end / WINDOW || part.start == slice.range.start {
        // A hint: if it fails, reading is only slower.
        let _ = rustix::fs::fadvise(file, end, NonZero::new(WINDOW), Advice::WillNeed);
    }
}

/// Returns the damaged chunks, and the index if it is damaged, in ascending order.
///
/// # Errors
/// Returns an error if the layout does not conform to core 7.
pub(super) fn suspects(slices: &[Slice], front: &Front, progress: &Progress) -> Result<Vec<Range<u64>>, Error> {
    let mut suspects = Vec::new();
    let mut stored = Vec::new();
    for Digested { range, digest } in front.digests()? {
        progress.check()?;
        stored.resize(size(range.end - range.start), 0);
        read(slices, &mut stored, range.start);
        if *blake3::hash(&stored).as_bytes() != digest {
            suspects.push(range);
        }
    }
    Ok(suspects)
}

/// A data shard that was lost.
struct LostShard {
    /// Its number in the codeword.
    number: usize,
    /// Its bytes in the bundle, and how many zeros come before them.
    range: Range<u64>,
    zeros: usize,
}

/// What a thread needs to repair codewords.
struct Worker {
    decoder: Decoder,
    run: Vec<u8>,
}

impl Worker {
    fn new(geometry: &Geometry) -> Result<Self, Error> {
        let run = vec![0; at(geometry.run) * at(geometry.shard_len)];
        Ok(Self { decoder: code::decoder(geometry)?, run })
    }

    /// Passes the bytes of a codeword to `write`, and makes them again where they are lost. Returns what was lost, and how many bytes it has.
    fn repair(
        &mut self,
        body: &Body<'_>,
        codeword: u64,
        write: &(impl Fn(Part<'_>) -> Result<(), Error> + Sync),
    ) -> Result<(Lost, u64), Error> {
        code::begin_again(&mut self.decoder, body.geometry)?;
        let checksums: Vec<_> = body.files.iter().map(|file| file.checksums(codeword)).collect();
        let mut total = Lost::new(body.slices.len());
        let mut lost = Vec::new();
        let mut read = 0;
        for column in 0..body.geometry.starts.len() {
            let (range, zeros) = body.geometry.run_of(codeword, column, body.end());
            let before = lost.len();
            self.read_run(body, (codeword, column), &checksums, &mut lost, &mut total)?;
            let bytes = self.run.get(size(zeros)..size(zeros + (range.end - range.start))).unwrap_or_default();
            let is_damaged = lost.len() > before;
            write(Part::Run { column, offset: range.start, bytes, is_damaged })?;
            read += range.end - range.start;
        }
        if lost.is_empty() {
            return Ok((total, read));
        }
        let mut needed = lost.len();
        // Shards of which nothing tells whether they are sound come last.
        for is_checked in [true, false] {
            for (file, checksums) in body.files.iter().zip(&checksums) {
                let Some(checksums) = checksums.as_ref().filter(|_| needed > 0) else { continue };
                file.shards(codeword, checksums, is_checked, |number, shard| {
                    self.decoder.add_recovery_shard(number, shard).map_err(code::failed)?;
                    needed -= 1;
                    Ok(needed > 0)
                })?;
            }
        }
        if needed > 0 {
            let offset = lost.first().map_or(0, |shard| shard.range.start);
            total.short = Some(Short { lost: wide(lost.len()), needed: wide(needed), offset });
            lost.iter().for_each(|shard| body.count(&mut total.gone, &shard.range));
            return Ok((total, read));
        }
        let made = self.decoder.decode().map_err(code::failed)?;
        for LostShard { number, range, zeros } in &lost {
            let shard = made.restored_original(*number).unwrap_or_default();
            let bytes = shard.get(*zeros..zeros + size(range.end - range.start)).unwrap_or_default();
            write(Part::Made { offset: range.start, bytes })?;
        }
        Ok((total, read))
    }

    /// Reads the run of a column, gives its sound shards to the decoder, and adds the others to `lost`.
    fn read_run(
        &mut self,
        body: &Body<'_>,
        (codeword, column): (u64, usize),
        checksums: &[Option<Checksums<'_>>],
        lost: &mut Vec<LostShard>,
        total: &mut Lost,
    ) -> Result<(), Error> {
        let (geometry, shard_len) = (body.geometry, at(body.geometry.shard_len));
        let (range, zeros) = geometry.run_of(codeword, column, body.end());
        let (zeros, len) = (size(zeros), size(range.end - range.start));
        self.run.fill(0);
        ahead(body.slices, &range);
        let unread = read(body.slices, self.run.get_mut(zeros..zeros + len).unwrap_or_default(), range.start);
        for unread in &unread {
            let bytes = range.start + wide(unread.start)..range.start + wide(unread.end);
            let after = body.slices.partition_point(|slice| slice.range.end <= bytes.start);
            if body.slices.get(after).is_some_and(|slice| slice.file.is_some()) {
                total.ranges.push(bytes);
            }
        }
        let checksums: Vec<_> =
            checksums.iter().flatten().filter_map(|own| Some((own, own.place_of(column)?))).collect();
        for (place, shard) in self.run.chunks_exact(shard_len).enumerate() {
            let number = column * at(geometry.run) + place;
            // Its bytes, counted from where those of the run begin.
            let (start, end) = (place * shard_len, (place + 1) * shard_len);
            let own = start.max(zeros).min(zeros + len) - zeros..end.max(zeros).min(zeros + len) - zeros;
            let bytes = range.start + wide(own.start)..range.start + wide(own.end);
            let is_unread = unread.iter().any(|unread| unread.start < own.end && own.start < unread.end);
            let is_suspect = || {
                let after = body.suspects.partition_point(|suspect| suspect.end <= bytes.start);
                body.suspects.get(after).is_some_and(|suspect| suspect.start < bytes.end)
            };
            let known = || checksums.iter().filter_map(|(own, first)| Some((own.at(first + place)?, own.have_changed)));
            let is_sound = || {
                let checksum = code::checksum(shard);
                known().any(|(known, _)| known == checksum)
            };
            let mut is_lost = is_unread;
            if !own.is_empty() && !is_unread && !is_sound() {
                // Where checksums have changed, one that the shard does not match says nothing.
                is_lost = known().any(|(_, have_changed)| !have_changed) || {
                    total.add_unknown(&bytes);
                    is_suspect()
                };
            }
            if !own.is_empty() && is_lost {
                body.count(&mut total.bytes, &bytes);
                if is_unread {
                    body.count(&mut total.unreadable, &bytes);
                }
                lost.push(LostShard { number, range: bytes, zeros: zeros.saturating_sub(start) });
            } else {
                self.decoder.add_original_shard(number, shard).map_err(code::failed)?;
            }
        }
        Ok(())
    }
}
