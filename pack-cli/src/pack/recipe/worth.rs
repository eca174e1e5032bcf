//! Whether a container takes less space in a bundle as its leaves than as it is.

use std::collections::{HashMap, HashSet};
use std::io;

use sealift_container::ReadAt;
use sealift_format::num::{up_to, wide};
use sealift_store::contents::tasks::Item;
use sealift_store::source::{LeafSource, OpenCache, Source};
use sealift_store::threads::parallel::map_with;

use super::{Contained, failed, hash};
use crate::pack::compress::Compressor;
use crate::{Error, Progress};

/// The shortest leaf that is looked for among the files, in bytes.
const SHARED_MIN: u64 = 4096;
/// The length of a sample in bytes.
const SAMPLE_LEN: usize = 1 << 18;
/// Of what is at most so many bytes long, everything is a sample.
const SHORT: u64 = 4 << 20;
/// Of what is at most so many bytes long, a quarter; of what is longer, a sixteenth.
const LONG: u64 = 64 << 20;
/// What a segment of a recipe takes in the layout, in bytes, approximately.
const SEGMENT_LEN: u64 = 8;

/// Compares sizes, which are estimated from samples, with what bundles of this level have.
pub(super) struct Worth<'a> {
    sources: &'a [&'a Source],
    level: i32,
    jobs: usize,
    progress: &'a Progress,
    /// The contents of the sources, by their length.
    by_len: HashMap<u64, Vec<Item>>,
    /// The ids of those that were compared with a leaf.
    ids: HashMap<(usize, u32), [u8; 32]>,
}

/// Fills a buffer with bytes from a place on.
type Read<'a> = dyn Fn(&mut [u8], u64) -> Result<(), Error> + Sync + 'a;

impl<'a> Worth<'a> {
    pub(super) fn new(sources: &'a [&'a Source], level: i32, jobs: usize, progress: &'a Progress) -> Self {
        let mut by_len: HashMap<u64, Vec<Item>> = HashMap::new();
        for (source, from) in sources.iter().enumerate() {
            let all = from.contents().map(|content| Item { source, content, len: from.content_len(content) });
            all.filter(|item| item.len >= SHARED_MIN).for_each(|item| by_len.entry(item.len).or_default().push(item));
        }
        Self { sources, level, jobs, progress, by_len, ids: HashMap::new() }
    }

    /// Returns whether a container is smaller as these leaves, which no other has and no recipe makes, with a recipe of so many segments.
    ///
    /// # Errors
    /// Returns an error if something cannot be read.
    pub(super) fn is_less(
        &mut self,
        container: &dyn ReadAt,
        path: &[u8],
        (leaves, own): (&LeafSource, &[(u32, [u8; 32])]),
        segments: usize,
    ) -> Result<bool, Error> {
        let mut kept = Vec::with_capacity(own.len());
        for (leaf, id) in own {
            if !self.has(leaves.len_of(*leaf), id)? {
                kept.push(*leaf);
            }
        }
        let starts: Vec<u64> =
            kept.iter().scan(0, |end, leaf| Some(std::mem::replace(end, *end + leaves.len_of(*leaf)))).collect();
        let len = kept.last().zip(starts.last()).map_or(0, |(leaf, start)| start + leaves.len_of(*leaf));
        let read = |buffer: &mut [u8], mut place: u64| {
            let mut done = 0;
            let first = starts.partition_point(|start| *start <= place).saturating_sub(1);
            for (leaf, start) in kept.iter().zip(&starts).skip(first) {
                let Some(left) = buffer.get_mut(done..).filter(|left| !left.is_empty()) else { break };
                let within = place - start;
                let len = up_to(leaves.len_of(*leaf).saturating_sub(within), left.len());
                leaves.read_at(*leaf, left.get_mut(..len).unwrap_or_default(), within)?;
                (done, place) = (done + len, place + wide(len));
            }
            Ok(())
        };
        let made = self.estimate(len, &read)?.saturating_add(SEGMENT_LEN * wide(segments));
        let len = container.byte_len().map_err(|error| failed(path, error))?;
        let read =
            |buffer: &mut [u8], place| container.read_exact_at(buffer, place).map_err(|error| failed(path, error));
        let whole = self.estimate(len, &read)?;
        tracing::debug!(path = %String::from_utf8_lossy(path), made, whole, "bytes in the bundle, as a recipe and as it is");
        Ok(made <= whole)
    }

    /// Returns whether a file has this content.
    fn has(&mut self, len: u64, id: &[u8; 32]) -> Result<bool, Error> {
        for item in self.by_len.get(&len).into_iter().flatten() {
            let known = match self.ids.get(&(item.source, item.content)) {
                Some(known) => *known,
                None => {
                    let content = self.sources[item.source].open(item.content, &mut OpenCache::default())?;
                    let content = Contained { content, len };
                    let id = hash(&content).map_err(|error: io::Error| failed(b"a file", error))?;
                    content.content.finish()?;
                    self.ids.insert((item.source, item.content), id);
                    id
                }
            };
            if known == *id {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns how many bytes the chunks of these bytes have, approximately.
    fn estimate(&self, len: u64, read: &Read<'_>) -> Result<u64, Error> {
        let every = if len <= SHORT {
            1
        } else if len <= LONG {
            4
        } else {
            16
        };
        let places: Vec<u64> = (0..len).step_by(every * SAMPLE_LEN).collect();
        let start = || (Compressor::new(self.level), Vec::new());
        let sizes = map_with(
            self.jobs,
            &places,
            start,
            |(compressor, buffer): &mut (Result<Compressor, Error>, Vec<u8>), place| {
                self.progress.check()?;
                buffer.clear();
                buffer.resize(up_to(len - place, SAMPLE_LEN), 0);
                read(buffer, *place)?;
                let Ok(compressor) = compressor else {
                    return Err(Error::Usage(format!("zstd has no level {}", self.level)));
                };
                Ok((wide(buffer.len()), wide(compressor.compress(buffer)?.len().min(buffer.len()))))
            },
        )?;
        let (read, stored) =
            sizes.into_iter().fold((0_u64, 0_u64), |(read, stored), size| (read + size.0, stored + size.1));
        let all = u128::from(len) * u128::from(stored) / u128::from(read.max(1));
        Ok(u64::try_from(all).unwrap_or(u64::MAX))
    }
}

/// Returns the leaves from `from` on that a recipe does not make and whose content no other leaf before has, with their ids. `first` has the first leaf of
/// each content.
pub(super) fn stored(
    ids: &[[u8; 32]],
    from: usize,
    first: &HashMap<[u8; 32], usize>,
    made: &[(u32, usize)],
) -> Vec<(u32, [u8; 32])> {
    let made: HashSet<u32> = made.iter().map(|(leaf, _)| *leaf).collect();
    let own = (0_u32..).zip(ids).enumerate().skip(from);
    let own = own.filter(|(number, (leaf, id))| first.get(*id) == Some(number) && !made.contains(leaf));
    own.map(|(_, (leaf, id))| (leaf, *id)).collect()
}
