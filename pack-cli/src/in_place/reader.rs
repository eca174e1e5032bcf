//! Reads the contents of a bundle's files: threads make the blocks that are waited for, and then those that will probably be read next.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use sealift_format::{Bundle, Object, Row, num};
use sealift_store::OpenBundle;
use sealift_store::kernel::give_back_memory;
use sealift_store::threads::panic_guard::OnPanic;

use super::blocks::{Block, BlockPart, Blocks, Key, Maker, Span};
use super::cache::{Cache, Lookup};
use super::faults::{Fault, Faults};
use crate::Error;

/// How long a thread waits for work before it frees its buffers.
const IDLE: Duration = Duration::from_secs(2);
/// Blocks whose use is remembered, to recognise sequential reads.
const RECENT: usize = 64;
/// How many preceding blocks are considered: the more of them were used, the more sequential the reads are. Even when a tree is read in order, some
/// lie elsewhere.
const NEAR: usize = 3;

/// Reads files of a bundle, from any thread.
#[derive(Debug)]
pub struct Reader {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    blocks: Blocks,
    cache: Cache<Key, Block, Waiter>,
    faults: Faults,
    queue: Mutex<Queue>,
    changed: Condvar,
    /// The blocks that were used most recently.
    recent: Mutex<VecDeque<Key>>,
    jobs: usize,
    /// The most bytes that are read ahead.
    ahead: u64,
}

#[derive(Debug, Default)]
struct Queue {
    /// The blocks that reads wait for.
    wanted: VecDeque<Key>,
    ahead: VecDeque<Key>,
    is_closed: bool,
}

/// What waits for a block.
#[derive(Debug)]
enum Waiter {
    /// A read.
    Read(Pending),
    /// A thread, which needs it for another block.
    Maker(SyncSender<Option<Arc<Block>>>),
}

/// Takes the bytes that were read, or none if they cannot be read.
type Done = Box<dyn FnOnce(&Bundle, Option<Bytes>) + Send>;

/// A read that has not been answered yet.
struct Pending {
    object: Row<Object>,
    range: Range<u64>,
    /// Its first bytes, from the blocks before the one that it waits for.
    read: Vec<u8>,
    done: Done,
}

/// Bytes of a file.
#[derive(Debug)]
pub struct Bytes(Held);

#[derive(Debug)]
enum Held {
    Shared(Arc<Block>, Range<usize>),
    Owned(Vec<u8>),
}

impl Bytes {
    /// Returns the bytes, without a copy if they are contiguous.
    #[must_use]
    pub fn get(&self) -> Cow<'_, [u8]> {
        match &self.0 {
            Held::Shared(block, range) => block.data(range.clone()),
            Held::Owned(bytes) => Cow::Borrowed(bytes),
        }
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("object", &self.object).field("range", &self.range).finish_non_exhaustive()
    }
}

impl Pending {
    /// Returns the offset of the first byte that it lacks.
    fn place(&self) -> u64 {
        self.range.start + num::wide(self.read.len())
    }
}

impl Reader {
    /// Starts `jobs` threads. Decoded blocks take `cache_bytes` of memory.
    pub(super) fn start(blocks: Blocks, faults: Faults, jobs: usize, cache_bytes: u64) -> std::io::Result<Self> {
        let (jobs, ahead) = (jobs.max(1), cache_bytes / 2);
        let (cache, queue, changed, recent) =
            (Cache::new(cache_bytes), Mutex::default(), Condvar::new(), Mutex::default());
        let shared = Arc::new(Shared { blocks, cache, faults, queue, changed, recent, jobs, ahead });
        let mut reader = Self { shared, threads: Vec::new() };
        for _ in 0..jobs {
            let shared = Arc::clone(&reader.shared);
            let thread = std::thread::Builder::new().name("sealift-blocks".into());
            reader.threads.push(thread.spawn(move || shared.work())?);
        }
        Ok(reader)
    }

    /// Returns the bundle.
    #[must_use]
    pub fn bundle(&self) -> &Bundle {
        &self.shared.blocks.own().bundle
    }

    /// Reads a range within an object. Returns `None` if it cannot be read, after reporting why.
    #[must_use]
    pub fn read(&self, object: Row<Object>, range: Range<u64>) -> Option<Bytes> {
        let (sender, receiver) = sync_channel(1);
        self.read_then(object, range, move |_, bytes| {
            // The receiver waits below.
            let _ = sender.send(bytes);
        });
        receiver.recv().ok().flatten()
    }

    /// Does the same without waiting, and passes the bundle and the bytes to `done`: at once if the bytes are in memory, and otherwise on the thread
    /// that decodes them, which `done` should not keep for long.
    pub fn read_then(
        &self,
        object: Row<Object>,
        range: Range<u64>,
        done: impl FnOnce(&Bundle, Option<Bytes>) + Send + 'static,
    ) {
        if range.is_empty() {
            return done(self.bundle(), Some(Bytes(Held::Owned(Vec::new()))));
        }
        self.shared.go_on(Pending { object, range, read: Vec::new(), done: Box::new(done) });
    }

    /// Tells the threads to end, and waits for none of them: one may wait for a medium that does not answer.
    pub fn abandon(&mut self) {
        self.shared.close();
        self.threads.clear();
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.shared.close();
        for thread in self.threads.drain(..) {
            // If it panicked, that was printed.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Goes on with a read until it is answered, or has to wait for a block.
    fn go_on(&self, mut pending: Pending) {
        loop {
            let key = self.blocks.span(pending.object, pending.place()).key;
            // The next blocks are requested before waiting, so that other threads already work on them.
            let (block, waiter) = match self.cache.find(key, Waiter::Read(pending)) {
                Lookup::Ready(block, waiter) => {
                    self.read_on(key);
                    (block, waiter)
                }
                Lookup::Coming => {
                    self.hurry(key);
                    return self.read_on(key);
                }
                Lookup::Missing => {
                    self.submit(key, |queue| &mut queue.wanted);
                    return self.read_on(key);
                }
            };
            match self.answer(waiter, Some(block)) {
                Some(rest) => pending = rest,
                None => return,
            }
        }
    }

    /// Gives a block to what waits for it, or none if it could not be made. Returns a read that needs more.
    fn answer(&self, waiter: Waiter, block: Option<Arc<Block>>) -> Option<Pending> {
        match waiter {
            Waiter::Read(pending) => self.add(pending, block),
            Waiter::Maker(sender) => {
                // It waits for one block.
                let _ = sender.send(block);
                None
            }
        }
    }

    /// Adds its next block to a read, or none if that could not be made. Returns the read if it needs more, and otherwise answers it.
    fn add(&self, mut pending: Pending, block: Option<Arc<Block>>) -> Option<Pending> {
        let bundle = &self.blocks.own().bundle;
        let Some(block) = block else {
            (pending.done)(bundle, None);
            return None;
        };
        let span = self.blocks.span(pending.object, pending.place());
        let wanted = pending.place()..pending.range.end.min(span.within.end);
        let Some(bytes) = self.find(block, &span, wanted.clone()) else {
            (pending.done)(bundle, None);
            return None;
        };
        if wanted == pending.range {
            (pending.done)(bundle, Some(bytes));
            return None;
        }
        pending.read.extend_from_slice(&bytes.get());
        if wanted.end < pending.range.end {
            return Some(pending);
        }
        (pending.done)(bundle, Some(Bytes(Held::Owned(pending.read))));
        None
    }

    /// Keeps a block, and goes on with the reads that wait for it.
    fn finish(&self, key: Key, made: Option<(Block, u64)>) {
        let (block, waiting) = self.cache.finish(key, made);
        for waiter in waiting {
            if let Some(rest) = self.answer(waiter, block.clone()) {
                self.go_on(rest);
            }
        }
    }

    /// Requests the blocks that follow this one, if the reads are sequential.
    fn read_on(&self, key: Key) {
        let mut recent = self.recent.lock();
        if recent.contains(&key) {
            return;
        }
        let is_near = |used: &&Key| match (**used, key) {
            (Key::Chunk(of, used), Key::Chunk(source, now)) => {
                of == source && (1..=NEAR).contains(&now.at().wrapping_sub(used.at()))
            }
            (Key::Base(of, used), Key::Base(object, part)) => {
                of == object && (1..=NEAR).contains(&num::size(part.wrapping_sub(used)))
            }
            _ => false,
        };
        let near = recent.iter().filter(is_near).count();
        if recent.len() == RECENT {
            recent.pop_front();
        }
        recent.push_back(key);
        drop(recent);
        let following = std::iter::successors(self.blocks.next(key), |key| self.blocks.next(*key));
        // A single preceding block may be chance. The more of them were used, the more of the following ones are requested.
        let ahead = self.jobs * near.saturating_sub(1) / (NEAR - 1);
        let mut left = self.ahead;
        for next in following.take(ahead) {
            let Some(rest) = left.checked_sub(self.blocks.len(next)) else { return };
            left = rest;
            if self.cache.begin(next) {
                self.submit(next, |queue| &mut queue.ahead);
            }
        }
    }

    /// Queues a block for the threads.
    fn submit(&self, key: Key, which: impl FnOnce(&mut Queue) -> &mut VecDeque<Key>) {
        let mut queue = self.queue.lock();
        if queue.is_closed {
            drop(queue);
            return self.finish(key, None);
        }
        which(&mut queue).push_back(key);
        drop(queue);
        self.changed.notify_one();
    }

    /// Moves a block from those to read ahead to those that are waited for.
    fn hurry(&self, key: Key) {
        let mut queue = self.queue.lock();
        if let Some(at) = queue.ahead.iter().position(|ahead| *ahead == key) {
            queue.ahead.remove(at);
            queue.wanted.push_back(key);
        }
    }

    /// Makes blocks until the queue is closed.
    fn work(&self) {
        // No read may wait for a thread that has panicked.
        let _guard = OnPanic(|| self.close());
        loop {
            let Some(first) = self.next(None) else { return };
            let mut maker = Maker::new(&self.blocks);
            self.make_queued(&mut maker, first);
            while let Some(key) = self.next(Some(IDLE)) {
                self.make_queued(&mut maker, key);
            }
            give_back_memory(|| {
                drop(maker);
                self.cache.drop_large();
                self.blocks.rest();
            });
            self.faults.rest();
        }
    }

    /// Waits for work, for at most `limit`.
    fn next(&self, limit: Option<Duration>) -> Option<Key> {
        let mut queue = self.queue.lock();
        loop {
            if queue.is_closed {
                return None;
            }
            if let Some(key) = queue.wanted.pop_front().or_else(|| queue.ahead.pop_front()) {
                return Some(key);
            }
            match limit {
                None => self.changed.wait(&mut queue),
                Some(limit) if self.changed.wait_for(&mut queue, limit).timed_out() => return None,
                Some(_) => {}
            }
        }
    }

    /// Makes a block that was queued, unless another thread needed it earlier.
    fn make_queued(&self, maker: &mut Maker<'_>, key: Key) {
        if self.cache.claim(key) {
            self.make(maker, key);
        }
    }

    /// Makes a block that this thread has claimed.
    fn make(&self, maker: &mut Maker<'_>, key: Key) {
        let _guard = OnPanic(|| self.finish(key, None));
        let mut prefix = std::mem::take(&mut maker.prefix);
        let made = self.read_prefix(maker, key, &mut prefix).and_then(|()| {
            let made = maker.make(key, &prefix);
            made.map_err(|error| self.report(key, error)).ok()
        });
        maker.prefix = prefix;
        if made.is_some() {
            self.faults.read(key);
        }
        let made = made.map(|block| {
            let cost = block.cost();
            (block, cost)
        });
        self.finish(key, made);
    }

    /// Fills `prefix` with the prefix of a chunk. Returns `None` if it cannot be read, after reporting why.
    fn read_prefix(&self, maker: &mut Maker<'_>, key: Key, prefix: &mut Vec<u8>) -> Option<()> {
        prefix.clear();
        for range in self.blocks.prefix_of(key) {
            let (mut place, end) = (range.offset, range.offset.saturating_add(range.len));
            while place < end {
                let Some(span) = self.blocks.span_of_base(range.object, place) else {
                    let read = maker.read_base(range.object, place..end, prefix);
                    read.map_err(|error| self.report(key, error)).ok()?;
                    break;
                };
                let wanted = place..end.min(span.within.end);
                place = wanted.end;
                let block = self.base_block(maker, span.key)?;
                prefix.extend_from_slice(&self.find(block, &span, wanted)?.get());
            }
        }
        Some(())
    }

    /// Returns a block of a base for another one that this thread makes. It waits only for a thread that makes this block, which waits for no other:
    /// chunks of a base have no prefix.
    fn base_block(&self, maker: &mut Maker<'_>, key: Key) -> Option<Arc<Block>> {
        let (sender, receiver) = sync_channel(1);
        match self.cache.find(key, Waiter::Maker(sender)) {
            Lookup::Ready(block, _) => Some(block),
            Lookup::Coming | Lookup::Missing => {
                self.make_queued(maker, key);
                receiver.recv().ok().flatten()
            }
        }
    }

    /// Returns the bytes `wanted` of an object from the block of a span of it. Returns `None` if they are damaged, after reporting that.
    fn find(&self, block: Arc<Block>, span: &Span, wanted: Range<u64>) -> Option<Bytes> {
        match self.blocks.find(&block, span, wanted) {
            Ok(BlockPart::Data(at)) => Some(Bytes(Held::Shared(block, at))),
            Ok(BlockPart::Filled(bytes)) => Some(Bytes(Held::Owned(bytes))),
            Err(error) => {
                self.report(span.key, error.into());
                None
            }
        }
    }

    fn report(&self, key: Key, error: Error) {
        let of = key.source().map(|source| self.blocks.source(source));
        let base = of.filter(|_| key.is_of_base()).map(|of| of.medium.path().to_owned());
        let chunk = match (key, of) {
            (Key::Chunk(_, number), Some(OpenBundle { medium, bundle, .. })) => {
                number.get(&bundle.layout.chunks).map(|chunk| (number, medium.place(chunk)))
            }
            _ => None,
        };
        self.faults.add(key, Fault { base, chunk, error });
    }

    /// Ends the threads, and wakes the reads that still wait.
    fn close(&self) {
        let mut queue = self.queue.lock();
        queue.is_closed = true;
        let left: Vec<Key> = queue.wanted.drain(..).collect();
        let ahead: Vec<Key> = queue.ahead.drain(..).collect();
        drop(queue);
        self.changed.notify_all();
        left.into_iter().chain(ahead).for_each(|key| self.finish(key, None));
    }
}
