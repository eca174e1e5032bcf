//! Makes the bytes that recipes and views state (recipes 3 and 4).

#[cfg(feature = "recipes")]
mod bzip2;
mod decode;
#[cfg_attr(not(feature = "recipes"), path = "no_encoders.rs")]
mod encoders;
#[cfg(feature = "recipes")]
mod lz4;
#[cfg(feature = "recipes")]
mod xz;
#[cfg(feature = "recipes")]
mod zlib;
#[cfg(feature = "recipes")]
mod zstd;

use std::ops::Range;

use sealift_format::num::{size, wide};
use sealift_format::{Encoder, PartOf, RecipeSums, Recipes, Segment, SegmentKind};
use sealift_verify::content::ContentError;

use crate::Error;
use crate::threads::parallel::map;
pub use decode::decode;
pub use encoders::encode;

/// The bytes of input and output that are encoded or decoded together, on all threads, unless a single segment has more.
const BATCH_LEN: u64 = 8 << 20;
/// Coded segments that stay in memory: files in an image share blocks, and what is read next often begins in the middle of one.
const KEPT: usize = 16;
/// The limit for their bytes, unless a single one is larger.
const KEPT_LEN: usize = 8 << 20;

/// Appends the bytes of a range of an object or view to a buffer.
pub(crate) type ReadPart<'a> = dyn FnMut(PartOf, Range<u64>, &mut Vec<u8>) -> Result<(), Error> + 'a;

/// Makes segments, and keeps those that took work.
#[derive(Debug, Default)]
pub(crate) struct Maker {
    /// Threads that encode; 0 counts as 1.
    jobs: usize,
    /// By row, the most recent last.
    kept: Vec<(u32, Vec<u8>)>,
}

impl Maker {
    /// Returns a maker that encodes on so many threads.
    pub(crate) fn new(jobs: usize) -> Self {
        Self { jobs, kept: Vec::new() }
    }

    /// Appends the bytes `range` of what the segments `of` make to `out`. `read` gives what the segments use.
    ///
    /// # Errors
    /// Returns an error if `read` fails, or if an encoder or decoder does not give what a segment states.
    pub(crate) fn read(
        &mut self,
        recipes: &Recipes,
        of: &Range<u32>,
        range: Range<u64>,
        out: &mut Vec<u8>,
        read: &mut ReadPart<'_>,
    ) -> Result<(), Error> {
        let segments = recipes.segments(of);
        let first = segments.partition_point(|segment| segment.offset + segment.len <= range.start);
        let mut rows =
            (of.start..).zip(segments).skip(first).take_while(|(_, segment)| segment.offset < range.end).peekable();
        while rows.peek().is_some() {
            let (mut batch, mut coded, mut taken) = (Vec::new(), Vec::new(), 0);
            while let Some((row, segment)) = rows.next_if(|_| taken < BATCH_LEN) {
                batch.push((row, segment));
                if is_coded(segment) && !self.kept.iter().any(|(kept, _)| *kept == row) {
                    let mut bytes = Vec::new();
                    for part in recipes.ranges(segment) {
                        read(part.of, part.offset..part.offset + part.len, &mut bytes)?;
                    }
                    taken += wide(bytes.len()) + segment.len;
                    coded.push((row, segment, bytes));
                }
            }
            let made = map(self.jobs.max(1), &coded, |(row, segment, bytes)| {
                Ok((*row, code(recipes, *row, segment, bytes)?))
            })?;
            drop(coded);
            self.kept.extend(made);
            for (row, segment) in batch {
                let from = range.start.saturating_sub(segment.offset);
                let to = segment.len.min(range.end - segment.offset);
                match &segment.kind {
                    SegmentKind::Zeros => out.resize(out.len() + size(to - from), 0),
                    SegmentKind::Copied(_) => {
                        for part in recipes.ranges(segment) {
                            read(part.of, part.offset + from..part.offset + to, out)?;
                        }
                    }
                    SegmentKind::Encoded { .. } | SegmentKind::Decoded { .. } => {
                        let known = self.kept.iter().find(|(kept, _)| *kept == row);
                        let bytes = known.and_then(|(_, bytes)| bytes.get(size(from)..size(to)));
                        out.extend(bytes.ok_or(ContentError::Recipe { segment: row })?);
                    }
                }
            }
            self.forget();
        }
        Ok(())
    }

    /// Frees the segments that were made longest ago.
    fn forget(&mut self) {
        let mut len = 0;
        let kept = self.kept.iter().rev().take(KEPT).take_while(|(_, bytes)| {
            len += bytes.len();
            len <= KEPT_LEN
        });
        let kept = kept.count().max(1);
        self.kept.drain(..self.kept.len().saturating_sub(kept));
    }
}

/// Refuses a bundle that needs an encoder which this program lacks, before anything is made.
///
/// # Errors
/// Returns an error that names it.
pub(crate) fn require_encoders(declared: Option<&RecipeSums>) -> Result<(), Error> {
    missing(declared, encoders::has).map_or(Ok(()), |encoder| {
        Err(Error::Usage(format!(
            "this program has no encoder {encoder}, with which the bundle's objects are made: use one that was built with the feature `recipes` for a \
             64-bit machine, or a bundle that was packed without --recipes"
        )))
    })
}

fn missing(declared: Option<&RecipeSums>, has: impl Fn(Encoder) -> bool) -> Option<Encoder> {
    declared?.encoders.iter().map(|(encoder, _)| *encoder).find(|encoder| !has(*encoder))
}

fn is_coded(segment: &Segment) -> bool {
    matches!(segment.kind, SegmentKind::Encoded { .. } | SegmentKind::Decoded { .. })
}

/// Encodes or decodes what a segment uses.
fn code(recipes: &Recipes, row: u32, segment: &Segment, bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let len = size(segment.len);
    let made = match &segment.kind {
        SegmentKind::Encoded { coder, .. } => match recipes.coders.get(usize::from(*coder)) {
            Some(coder) => encode(coder, bytes, len)?,
            None => None,
        },
        SegmentKind::Decoded { codec, .. } => decode(*codec, bytes, len),
        SegmentKind::Zeros | SegmentKind::Copied(_) => None,
    };
    made.filter(|made| made.len() == len).ok_or_else(|| ContentError::Recipe { segment: row }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoder_that_is_missing_is_named() {
        let mut sums = RecipeSums::default();
        sums.encoders = vec![(Encoder::Zlib, 1), (Encoder::Lz4, 1)];
        assert_eq!(missing(None, |_| false), None);
        assert_eq!(missing(Some(&sums), |_| true), None);
        assert_eq!(missing(Some(&sums), |encoder| encoder == Encoder::Zlib), Some(Encoder::Lz4));
        assert_eq!(require_encoders(Some(&sums)).is_ok(), cfg!(feature = "recipes"));
    }
}
