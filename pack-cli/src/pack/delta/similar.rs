//! Finds similar objects by content alone: files that were moved, renamed and changed.

use sealift_format::num;
use sealift_format::{BaseObject, Row};
use std::collections::HashMap;

use super::row;
use crate::pack::sequence::{PackedObject, Sequenced};
use crate::{Error, Progress};
use sealift_store::base::{BaseReader, Bases};
use sealift_store::source::{OpenCache, Source};
use sealift_store::threads::parallel::map_with;

/// Number of hashes in a sketch of a content.
const SKETCH: usize = 24;
/// The least number of hashes that similar contents share.
const COMMON: usize = 3;
/// The most base objects that are examined for one hash: what thousands share, such as a licence, says little.
const MOST_WITH: usize = 256;
/// Bytes of a content that are examined.
const LOOKED_AT: u64 = 8 << 20;
/// The smallest content that is examined.
const LEAST: u64 = 64;

/// The smallest hashes of all runs of eight bytes.
type Sketch = Vec<u64>;

/// Returns, for each of `objects`, the most similar one of the base objects `with`, if any is similar.
pub(super) fn find(
    sources: &[&Source],
    packed: &Sequenced,
    objects: &[Row<PackedObject>],
    bases: &Bases,
    with: &[Row<BaseObject>],
    jobs: usize,
    progress: &Progress,
) -> Result<Vec<Option<Row<BaseObject>>>, Error> {
    if objects.is_empty() || with.is_empty() {
        return Ok(vec![None; objects.len()]);
    }
    let start = || (BaseReader::new(bases), Vec::new());
    let of_bases = map_with(jobs.max(1), with, start, |(reader, buffer), &object| {
        progress.check()?;
        buffer.clear();
        let size = bases.object(object).map_or(0, |row| row.size);
        if size >= LEAST {
            reader.read(object, 0..size.min(LOOKED_AT), buffer)?;
        }
        Ok(sketch(buffer))
    })?;
    let start = || (OpenCache::default(), Vec::new());
    let of_objects = map_with(jobs.max(1), objects, start, |(cache, buffer), &object| {
        progress.check()?;
        let from = row(packed, object);
        let len = if from.size() >= LEAST { from.size().min(LOOKED_AT) } else { 0 };
        buffer.resize(num::size(len), 0);
        let content = sources[from.first.source].open(from.first.content, cache)?;
        content.read_at(buffer, 0)?;
        content.finish()?;
        Ok(sketch(buffer))
    })?;
    let mut known: Vec<(u64, usize)> = of_bases
        .into_iter()
        .enumerate()
        .flat_map(|(at, sketch)| sketch.into_iter().map(move |hash| (hash, at)))
        .collect();
    known.sort_unstable();
    let with_hash = |hash: u64| {
        let start = known.partition_point(|(other, _)| *other < hash);
        known[start..].iter().take_while(move |(other, _)| *other == hash).map(|(_, at)| *at).take(MOST_WITH)
    };
    let nearest = |sketch: &Sketch| {
        let mut common: HashMap<usize, usize> = HashMap::new();
        for at in sketch.iter().flat_map(|hash| with_hash(*hash)) {
            *common.entry(at).or_default() += 1;
        }
        let best = common.into_iter().max_by_key(|(at, count)| (*count, std::cmp::Reverse(*at)))?;
        (best.1 >= COMMON).then(|| with[best.0])
    };
    Ok(of_objects.iter().map(nearest).collect())
}

fn sketch(content: &[u8]) -> Sketch {
    let mut least: Sketch = Vec::with_capacity(SKETCH + 1);
    for window in content.windows(8) {
        let word = window.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        // Uniform data, such as zeros, says nothing about similarity.
        if word == word.rotate_left(8) {
            continue;
        }
        let hash = word.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        if least.len() == SKETCH && least.last().is_some_and(|last| hash >= *last) {
            continue;
        }
        if let Err(at) = least.binary_search(&hash) {
            least.insert(at, hash);
            least.truncate(SKETCH);
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_content_keeps_most_of_its_sketch() {
        let text: Vec<u8> =
            (0..4000_u32).flat_map(|line| format!("line {}\n", line * 7919 % 4001).into_bytes()).collect();
        let mut changed = text.clone();
        changed.splice(100..120, *b"something else");
        let other: Vec<u8> = (0..4000_u32).flat_map(|line| format!("word {}\n", line * 31).into_bytes()).collect();
        let common = |a: &Sketch, b: &Sketch| a.iter().filter(|hash| b.contains(hash)).count();
        assert!(common(&sketch(&text), &sketch(&changed)) >= COMMON * 3);
        assert!(common(&sketch(&text), &sketch(&other)) < COMMON);
        assert!(sketch(&[0; 5000]).is_empty() && sketch(b"short").is_empty());
    }
}
