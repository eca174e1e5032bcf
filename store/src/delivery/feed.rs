//! Hands chunks to threads in the file's order.

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use sealift_format::num;
use sealift_format::{Chunk, Error as FormatError, Head, Row};

use crate::input::Input;
use crate::origin::Origin;
use crate::threads::panic_guard::OnPanic;
use crate::threads::team::team;
use crate::{Error, Progress};

/// The wanted chunks of a bundle.
pub struct ChunkScheduler<'a> {
    head: &'a Head,
    chunks: &'a [Chunk],
    wanted: &'a [Row<Chunk>],
    progress: &'a Progress,
    /// The input unless it is a pipe: each thread reads it directly.
    origin: Option<Arc<Origin>>,
    path: PathBuf,
    /// Called when a thread fails.
    stop: Option<&'a (dyn Fn() + Sync)>,
    /// The wanted chunks of the hot set that are not done, if their completion is to be reported.
    hot: Option<Hot>,
    /// Held while a pipe is read, and briefly for a file.
    state: Mutex<FeedState<'a>>,
}

/// Chunks of the hot set.
#[derive(Debug)]
struct Hot {
    chunks: Range<u32>,
    left: AtomicUsize,
}

#[derive(Debug)]
struct FeedState<'a> {
    input: &'a mut Input,
    next: usize,
    failed: Option<(usize, Error)>,
}

/// Returns how many requests it takes to read these chunks from a bundle at an address, with those that were sent already; `None` if it is in a file or
/// comes through a pipe.
pub(crate) fn requests(input: &Input, head: &Head, chunks: &[Chunk], wanted: &[Row<Chunk>]) -> Option<u64> {
    let origin = input.origin()?;
    origin.expect(ranges(head, chunks, wanted));
    origin.requests()
}

/// Returns where chunks lie in the file.
fn ranges<'c>(
    head: &Head,
    chunks: &'c [Chunk],
    wanted: &'c [Row<Chunk>],
) -> impl Iterator<Item = Range<u64>> + use<'c> {
    let start = head.chunks_at();
    wanted.iter().filter_map(|row| chunks.get(row.at())).map(move |chunk| {
        let start = start.saturating_add(chunk.offset);
        start..start.saturating_add(chunk.stored_len.into())
    })
}

impl<'a> ChunkScheduler<'a> {
    /// `wanted` are rows of `chunks`, in ascending order if the input is a pipe.
    pub fn new(
        head: &'a Head,
        chunks: &'a [Chunk],
        wanted: &'a [Row<Chunk>],
        input: &'a mut Input,
        progress: &'a Progress,
    ) -> Self {
        let (path, origin) = (input.path().to_owned(), input.origin().cloned());
        if let Some(origin) = &origin {
            origin.expect(ranges(head, chunks, wanted));
        }
        let state = Mutex::new(FeedState { input, next: 0, failed: None });
        Self { head, chunks, wanted, progress, origin, path, stop: None, hot: None, state }
    }

    /// Calls `stop` when a thread fails, so that no other thread waits for its work.
    pub fn stopping(self, stop: &'a (dyn Fn() + Sync)) -> Self {
        Self { stop: Some(stop), ..self }
    }

    /// Notes in the progress when the contents of these chunks are written.
    pub fn telling(self, hot: Option<Range<u32>>) -> Self {
        let hot = hot.map(|chunks| {
            let left = self.wanted.iter().filter(|chunk| chunks.contains(&chunk.number())).count();
            if left == 0 {
                // The target has it already.
                self.progress.first_is_written();
            }
            Hot { chunks, left: left.into() }
        });
        Self { hot, ..self }
    }

    /// Runs `work` on the stored bytes of each wanted chunk, on `jobs` threads. Each has its own state, made by `start`.
    pub fn run<S>(
        self,
        jobs: usize,
        start: impl Fn() -> S + Sync,
        work: impl Fn(&mut S, Row<Chunk>, &[u8]) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        team(jobs.min(self.wanted.len()), || self.work(&start, &work));
        let state = self.state.into_inner();
        state.failed.map_or(Ok(()), |(_, error)| Err(error))
    }

    fn work<S>(&self, start: &impl Fn() -> S, work: &impl Fn(&mut S, Row<Chunk>, &[u8]) -> Result<(), Error>) {
        // When this thread panics, no other thread may wait for its work, nor continue with the rest.
        let _guard = OnPanic(|| {
            self.state.lock().next = usize::MAX;
            self.stop.iter().for_each(|stop| stop());
        });
        let mut own = start();
        let (mut stored, mut taken) = (Vec::new(), 0);
        loop {
            let result = self.next(&mut stored, &mut taken).and_then(|next| match next {
                Some((number, copy)) => {
                    self.progress.check()?;
                    match work(&mut own, number, &stored) {
                        Err(_) if self.read_again(number, &mut stored, (copy, &Ok(()))) => {
                            work(&mut own, number, &stored)?;
                        }
                        done => done?,
                    }
                    self.progress.add(num::wide(stored.len()), 0);
                    let is_hot = |hot: &&Hot| hot.chunks.contains(&number.number());
                    if let Some(hot) = self.hot.as_ref().filter(is_hot)
                        && hot.left.fetch_sub(1, Ordering::AcqRel) == 1
                    {
                        self.progress.first_is_written();
                    }
                    Ok(true)
                }
                None => Ok(false),
            });
            match result {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    let mut state = self.state.lock();
                    // Of what threads find in no particular order, the first in the bundle is told; those that are stopped find nothing.
                    let is_told = |(at, _): &(usize, Error)| *at <= taken || self.stop.is_some();
                    if !state.failed.as_ref().is_some_and(is_told) {
                        state.failed = Some((taken, error));
                    }
                    drop(state);
                    if let Some(stop) = self.stop {
                        stop();
                    }
                    return;
                }
            }
        }
    }

    /// Reads the next chunk, the one at `taken` of those that are wanted. Returns its number too, and that of the copy that it comes from.
    fn next(&self, stored: &mut Vec<u8>, taken: &mut usize) -> Result<Option<(Row<Chunk>, usize)>, Error> {
        let mut state = self.state.lock();
        let Some(&number) = self.wanted.get(state.next).filter(|_| state.failed.is_none()) else {
            return Ok(None);
        };
        *taken = state.next;
        state.next += 1;
        let chunk = &self.chunks[number.at()];
        let Some(origin) = &self.origin else {
            state.input.read_chunk(self.head, chunk, stored)?;
            return Ok(Some((number, 0)));
        };
        drop(state);
        stored.resize(num::at(chunk.stored_len), 0);
        let at = self.head.chunks_at() + chunk.offset;
        let (copy, read) = origin.read_chunk(stored, at);
        if read.is_err() && self.read_again(number, stored, (copy, &read)) {
            return Ok(Some((number, copy)));
        }
        read.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                FormatError::Truncated { len: at, expected: Some(self.head.file_len()) }.into()
            }
            _ => Error::io("read", &self.path, error),
        })?;
        Ok(Some((number, copy)))
    }

    /// Reads a chunk from another copy, if what this one gave is not the chunk. Returns whether there is one that has it.
    fn read_again(&self, number: Row<Chunk>, stored: &mut [u8], failed: (usize, &io::Result<()>)) -> bool {
        let (Some(origin), Some(chunk)) = (&self.origin, number.get(self.chunks)) else { return false };
        origin.read_again(stored, self.head.chunks_at() + chunk.offset, &chunk.digest, failed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use sealift_format::{Codec, Contents, Holds, Identity, Maxima, Root};

    use super::*;
    use crate::threads::in_turn::OrderedSlots;
    use crate::threads::panic_guard::assert_panics;

    fn head() -> Head {
        let identity = Identity { name: "os".into(), version: 1, created: 0, expires: None, compatible: Vec::new() };
        let none = [0; 32];
        let contents = Contents {
            index_digest: none,
            index_len: 0,
            index_stored: 0,
            index_blake3: none,
            layout_len: 0,
            layout_stored: 0,
            layout_blake3: none,
        };
        let maxima = Maxima { piece_log2: 12, window_log: 10, ..Maxima::default() };
        let (annotations, bases, images) = Default::default();
        let root = Root { identity, contents, maxima, annotations, bases, images, recipes: None };
        Head::new(root, Vec::new(), 64).expect("it is sound")
    }

    #[test]
    fn nobody_waits_for_a_chunk_whose_thread_panicked() {
        assert_panics(|| {
            let head = head();
            let chunk = |offset| Chunk {
                codec: Codec::Raw,
                offset,
                stored_len: 1,
                len: 1,
                digest: [0; 32],
                holds: Holds::Piece,
                prefix: 0..0,
            };
            let chunks = [chunk(0), chunk(1)];
            let wanted: Vec<_> = Row::all(&chunks).map(|(row, _)| row).collect();
            let mut input = Input::pipe("pipe", Box::new(io::repeat(0)));
            let progress = Progress::default();
            let turns = OrderedSlots::new(BTreeMap::from([(0, 0)]));
            let stop = || turns.give_up();
            let feed = ChunkScheduler::new(&head, &chunks, &wanted, &mut input, &progress).stopping(&stop);
            let work = |(): &mut (), number: Row<Chunk>, _: &[u8]| {
                assert!(number > Row::FIRST, "as the test wants");
                turns.act(0, |turn| *turn == 1, |turn| *turn += 1);
                Ok(())
            };
            let _ = feed.run(2, || (), work);
        });
    }
}
