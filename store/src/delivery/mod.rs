//! Delivers a bundle's content to a target: reads chunks, compares them with their digests, decodes them, and compares what they hold with
//! index and layout, all in this one place. A target receives nothing else, and gives a file its name only when all of its content is there.

pub mod feed;

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::ftruncate;
use rustix::io::{Errno, pwrite};
use sealift_format::num;
use sealift_format::{BaseObject, Bundle, Object, Row};
use sealift_verify::content::{ChunkDecoder, Content, Portion};
use sealift_verify::read_plan::ReadPlan;

use crate::base::{BaseReader, Bases, number_of};
use crate::input::Input;
use crate::threads::parallel::{for_each_with, map_with};
use crate::{Error, Progress};
use feed::ChunkScheduler;

/// A plan to deliver, and how to deliver it.
#[derive(Clone, Copy)]
pub struct Delivery<'a> {
    bundle: &'a Bundle,
    bases: &'a Bases,
    plan: &'a ReadPlan,
    jobs: usize,
    progress: &'a Progress,
    stop: &'a (dyn Fn() + Sync),
    is_written: bool,
}

impl<'a> Delivery<'a> {
    /// Delivers the contents of a plan on `jobs` threads. `bases` are those of a delta bundle.
    pub fn new(bundle: &'a Bundle, bases: &'a Bases, plan: &'a ReadPlan, jobs: usize, progress: &'a Progress) -> Self {
        Self { bundle, bases, plan, jobs, progress, stop: &|| (), is_written: false }
    }

    /// Calls `stop` when a thread that reads chunks fails, so that no other thread waits for its work.
    pub fn stopping(self, stop: &'a (dyn Fn() + Sync)) -> Self {
        Self { stop, ..self }
    }

    /// Notes in the progress when the hot set is written, if the target `has_rest`: whatever of the hot set the bundle does not carry.
    pub fn telling(self, has_rest: bool) -> Self {
        Self { is_written: has_rest, ..self }
    }

    /// Passes each wanted object or piece to `take`, on several threads: first those in chunks, in file order, and then those without data. When all
    /// pieces of a large object have been taken, `finish` is called for it. Each thread has its own state, made by `start`.
    ///
    /// # Errors
    /// Returns the first error: the input or a base cannot be read, a content is not as expected, or `take` or `finish` fails.
    pub fn run<S>(
        self,
        input: &mut Input,
        start: impl Fn() -> S + Sync,
        take: impl Fn(&mut S, &Content<'_>) -> Result<(), Error> + Sync,
        finish: impl Fn(&mut S, Row<Object>) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        let Self { bundle, bases, plan, jobs, progress, stop, is_written } = self;
        let hot = bundle.layout.landmark.clone().filter(|_| is_written);
        let bare = plan.without_data(bundle.into());
        let missing = missing(plan, &bare);
        let take = |own: &mut S, content: &Content<'_>| {
            take(own, content)?;
            let missing = content.portion.piece.and_then(|_| missing.get(&content.portion.object));
            let was_last = missing.is_some_and(|missing| missing.fetch_sub(1, Ordering::AcqRel) == 1);
            if was_last { finish(own, content.portion.object) } else { Ok(()) }
        };
        // The chunks of the hot set come first, even if they lie at the end of the file.
        let mut wanted = plan.chunks().to_vec();
        if let Some(hot) = hot.as_ref().filter(|_| input.origin().is_some()) {
            wanted.sort_by_key(|chunk| !hot.contains(&chunk.number()));
        }
        let chunks = ChunkScheduler::new(&bundle.head, &bundle.layout.chunks, &wanted, input, progress);
        chunks.stopping(stop).telling(hot).run(
            jobs,
            || (start(), ChunkDecoder::default(), BaseReader::new(bases), Vec::new()),
            |(own, decoder, reader, prefix), number, stored| {
                let chunk = &bundle.layout.chunks[number.at()];
                reader.prefix(bundle.layout.prefix_of(chunk), prefix)?;
                let decoded = decoder.decode(bundle, number, stored, prefix)?;
                plan.contents(bundle.into(), number, decoded).try_for_each(|content| take(own, &content?))
            },
        )?;
        for_each_with(jobs, &bare, &start, |own, portion| {
            progress.check()?;
            take(own, &Content::check(bundle.into(), *portion, &[])?)
        })
    }
}

/// Passes each of these objects, which only a base has, to `copy`, with a reader of the bases and the object's number there, on `jobs` threads.
/// Returns the results in the order of the objects.
///
/// # Errors
/// Returns the first error: no base has an object, or `copy` fails.
pub fn from_bases<'a, R: Send>(
    bundle: &Bundle,
    bases: &'a Bases,
    objects: &[Row<Object>],
    jobs: usize,
    copy: impl Fn(&mut BaseReader<'a>, Row<Object>, Row<BaseObject>) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, Error> {
    let (by_id, start) = (bases.by_id(), || BaseReader::new(bases));
    map_with(jobs, objects, start, |reader, &object| {
        copy(reader, object, number_of(&by_id, bundle.index.object(object))?)
    })
}

/// Returns, for each large object, the number of its missing pieces.
fn missing(plan: &ReadPlan, bare: &[Portion]) -> BTreeMap<Row<Object>, AtomicU64> {
    let mut missing: BTreeMap<Row<Object>, AtomicU64> = BTreeMap::new();
    let brought = plan.pieces().map(|(_, portion)| portion);
    for portion in brought.chain(bare.iter().copied()).filter(|portion| portion.piece.is_some()) {
        *missing.entry(portion.object).or_default().get_mut() += 1;
    }
    missing
}

/// Writes the data of a content to its place in the object's file, and leaves out the holes. The file of a whole object gets its full length.
pub fn write_content(file: impl AsFd, content: &Content<'_>) -> Result<(), Errno> {
    let mut end = content.range.start;
    for (at, data) in content.extents() {
        write_all_at(&file, data, at)?;
        end = at + num::wide(data.len());
    }
    if content.portion.piece.is_none() && end < content.range.end {
        ftruncate(&file, content.range.end)?;
    }
    Ok(())
}

/// The length of a part that becomes a hole if it is all zeros.
pub(crate) const HOLE_LEN: usize = 64 << 10;

/// Writes data in parts of [`HOLE_LEN`], and leaves out those that are all zeros. The caller sets the file's length.
pub(crate) fn write_sparse(file: impl AsFd, data: &[u8], offset: u64) -> Result<(), Errno> {
    let mut at = offset;
    for part in data.chunks(HOLE_LEN) {
        if part.len() < HOLE_LEN || part.iter().any(|byte| *byte != 0) {
            write_all_at(&file, part, at)?;
        }
        at += num::wide(part.len());
    }
    Ok(())
}

/// Writes all of `data`.
pub(crate) fn write_all_at(file: impl AsFd, mut data: &[u8], mut offset: u64) -> Result<(), Errno> {
    while !data.is_empty() {
        match pwrite(&file, data, offset) {
            Ok(0) => return Err(Errno::IO),
            Ok(len) => {
                data = &data[len..];
                offset += num::wide(len);
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
