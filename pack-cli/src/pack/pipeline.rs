//! The threads of packing: each reads and hashes, or compresses, whichever is next.

use sealift_format::num;
use std::collections::{BTreeMap, HashSet, VecDeque};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::buffers::Buffers;
use super::compress::Compressor;
use super::image_wish::ImageWish;
use super::scan::{Scanned, scan};
use super::sequence::{ChunkJob, Sequenced, Sequencer};
use super::writer::{ChunkWriter, StoredChunk};
use crate::{Error, Progress};
use sealift_store::contents::tasks::{Plan, Task};
use sealift_store::source::{OpenCache, Source};
use sealift_store::threads::panic_guard::OnPanic;
use sealift_store::threads::team::team;

/// Reads, hashes, groups, compresses and writes everything in a plan.
pub(super) struct Pipeline<'a> {
    sources: &'a [&'a Source],
    buffers: Buffers,
    piece_len: u64,
    level: i32,
    wish: ImageWish,
    /// Bytes that may wait between reading and writing.
    budget: u64,
    progress: &'a Progress,
    state: Mutex<State>,
    changed: Condvar,
    writer: Mutex<Option<ChunkWriter>>,
}

struct State {
    plan: Plan,
    /// Numbers of tasks that were assigned, and of results that the sequencer has accepted.
    given: usize,
    taken: usize,
    scanned: BTreeMap<usize, (Scanned, bool)>,
    sequencer: Sequencer,
    flushed: bool,
    jobs: VecDeque<ChunkJob>,
    /// Threads that read or compress.
    active: usize,
    /// Bytes of results not yet accepted by the sequencer, and of jobs not yet written.
    held: u64,
    failed: Option<Error>,
    /// A thread panicked, which ends the run: the others stop waiting for it.
    is_over: bool,
}

enum Step {
    Scan { number: usize, task: Task, at_hot_end: bool },
    Compress(ChunkJob),
}

impl<'a> Pipeline<'a> {
    /// Without a `writer`, contents are only read and hashed; so are those that are `made`, by source and number.
    pub(super) fn new(
        sources: &'a [&'a Source],
        plan: Plan,
        writer: Option<ChunkWriter>,
        made: HashSet<(usize, u32)>,
        options: &super::PackOptions,
        progress: &'a Progress,
    ) -> Self {
        let piece_len = options.chunk_len;
        let mut sequencer =
            Sequencer::new(piece_len, writer.is_some(), made, sources.iter().map(|source| source.content_count()));
        if plan.has_hot_set() {
            sequencer.begin_hot(options.hot_chunk_len);
        }
        let jobs = num::wide(options.jobs);
        Self {
            sources,
            buffers: Buffers::default(),
            piece_len,
            level: options.level,
            wish: ImageWish::of(options),
            budget: super::held_budget(jobs, piece_len),
            progress,
            state: Mutex::new(State {
                plan,
                given: 0,
                taken: 0,
                scanned: BTreeMap::new(),
                sequencer,
                flushed: false,
                jobs: VecDeque::new(),
                active: 0,
                held: 0,
                failed: None,
                is_over: false,
            }),
            changed: Condvar::new(),
            writer: Mutex::new(writer),
        }
    }

    /// Runs on `jobs` threads, including the caller's.
    pub(super) fn run(self, jobs: usize) -> Result<(Sequenced, Option<ChunkWriter>), Error> {
        team(jobs, || self.work());
        let state = self.state.into_inner();
        let writer = self.writer.into_inner();
        match state.failed {
            Some(error) => Err(error),
            None => Ok((state.sequencer.finish()?, writer)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn work(&self) {
        let _guard = self.ending_on_panic();
        let mut cache = OpenCache::default();
        let mut hand = None;
        while let Some(step) = self.next_step() {
            let result = match step {
                Step::Scan { number, task, at_hot_end } => self.scan(number, &task, at_hot_end, &mut cache),
                Step::Compress(job) => self.compress(job, &mut hand),
            };
            let mut state = self.lock();
            state.active -= 1;
            if let Err(error) = result.and_then(|()| self.progress.check()) {
                state.failed.get_or_insert(error);
            }
            self.changed.notify_all();
        }
    }

    fn ending_on_panic(&self) -> OnPanic<impl FnMut()> {
        OnPanic(|| {
            self.lock().is_over = true;
            self.changed.notify_all();
        })
    }

    /// Waits for the next step; returns `None` when everything is done or has failed.
    fn next_step(&self) -> Option<Step> {
        let mut state = self.lock();
        loop {
            if state.is_over || state.failed.is_some() {
                return None;
            }
            if let Some(job) = state.jobs.pop_front() {
                state.active += 1;
                return Some(Step::Compress(job));
            }
            // With all threads idle and nothing to compress, only reading can make progress.
            if (state.held < self.budget || state.active == 0)
                && let Some((task, at_hot_end)) = state.plan.next_task()
            {
                let number = state.given;
                state.given += 1;
                state.active += 1;
                state.held += task.len(self.piece_len);
                return Some(Step::Scan { number, task, at_hot_end });
            }
            if state.active == 0 && state.taken == state.given {
                if state.flushed {
                    return None;
                }
                state.flushed = true;
                self.push_jobs(&mut state, Sequencer::flush);
                self.changed.notify_all();
                continue;
            }
            self.changed.wait(&mut state);
        }
    }

    fn scan(&self, number: usize, task: &Task, at_hot_end: bool, cache: &mut OpenCache) -> Result<(), Error> {
        let scanned = scan(self.sources, task, self.piece_len, self.wish, cache, &self.buffers)?;
        let files = match task {
            Task::Batch(items) => num::wide(items.len()),
            Task::Piece { number, .. } => u64::from(*number == 0),
        };
        self.progress.add(task.len(self.piece_len), files);
        let mut state = self.lock();
        state.scanned.insert(number, (scanned, at_hot_end));
        while let Some((scanned, at_hot_end)) = {
            let next = state.taken;
            state.scanned.remove(&next)
        } {
            state.taken += 1;
            state.held -= scanned.read_len();
            if at_hot_end {
                self.push_jobs(&mut state, |sequencer, jobs| {
                    sequencer.flush(jobs);
                    sequencer.end_hot();
                });
            }
            self.push_jobs(&mut state, |sequencer, jobs| sequencer.take(scanned, jobs))?;
        }
        Ok(())
    }

    /// Runs `act` on the sequencer, and accounts for the bytes that it now holds.
    fn push_jobs<R>(&self, state: &mut State, act: impl FnOnce(&mut Sequencer, &mut Vec<ChunkJob>) -> R) -> R {
        let mut jobs = Vec::new();
        let before = state.sequencer.pending_len();
        let done = act(&mut state.sequencer, &mut jobs);
        let after = state.sequencer.pending_len();
        let wide = |len: usize| num::wide(len);
        state.held += wide(after) + jobs.iter().map(|job| wide(job.len)).sum::<u64>();
        state.held -= wide(before);
        state.jobs.extend(jobs);
        done
    }

    fn compress(&self, job: ChunkJob, hand: &mut Option<WorkerState>) -> Result<(), Error> {
        let (number, len) = (job.number, num::wide(job.len));
        let chunk = match hand {
            Some(hand) => hand,
            None => hand.insert(WorkerState::new(self.level)?),
        }
        .run(job)?;
        let mut writer = self.writer.lock();
        let written = writer.as_mut().map_or(Ok(()), |writer| writer.take(number, chunk));
        drop(writer);
        self.lock().held -= len;
        written
    }
}

/// A thread's compressor, and the buffer in which it joins a group's objects.
struct WorkerState {
    compressor: Compressor,
    joined: Vec<u8>,
}

impl WorkerState {
    fn new(level: i32) -> Result<Self, Error> {
        Ok(Self { compressor: Compressor::new(level)?, joined: Vec::new() })
    }

    fn run(&mut self, job: ChunkJob) -> Result<StoredChunk, Error> {
        self.joined.clear();
        for (data, range) in job.parts {
            self.joined.extend(&data[range]);
        }
        let (codec, stored) = self.compressor.chunk(&self.joined)?;
        Ok(StoredChunk {
            codec,
            len: num::fit(self.joined.len(), "the length of a chunk")?,
            digest: *blake3::hash(&stored).as_bytes(),
            objects: job.objects,
            after: job.after,
            prefix: Vec::new(),
            is_hot: job.is_hot,
            stored,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{RecvTimeoutError, channel};
    use std::time::Duration;

    use sealift_store::contents::tasks::{Item, Part};

    use super::*;
    use crate::{Identity, pack::PackOptions};

    #[test]
    fn nobody_waits_for_a_thread_that_panicked() {
        let (running, ended) = channel::<()>();
        let run = std::thread::spawn(move || {
            let _running = running;
            let identity =
                Identity { name: "os".into(), version: 1, created: 0, expires: None, compatible: Vec::new() };
            let options = PackOptions::new(identity);
            // There is no such source.
            let plan = Plan::new(vec![Part::whole(Item { source: 7, content: 0, len: 1 }, 1)], 0, options.chunk_len);
            let progress = Progress::default();
            let _ = Pipeline::new(&[], plan, None, HashSet::new(), &options, &progress).run(3);
        });
        assert_eq!(ended.recv_timeout(Duration::from_secs(60)), Err(RecvTimeoutError::Disconnected), "it waits");
        assert!(run.join().is_err(), "the panic is handed on");
    }
}
