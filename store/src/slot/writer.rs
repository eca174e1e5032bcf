//! Writes an image to a slot: in order, in large aligned units, past the page cache where that is possible.
//!
//! Several threads put contents, each to its place in a buffer; one thread writes what is complete ([`Queue`]). The image's first [`HEAD_LEN`] bytes are
//! only collected: until the caller writes them, last of all, the slot begins with zeros, and nothing mounts or boots it.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::thread::Builder;

use parking_lot::{Condvar, Mutex};
use rustix::fs::{FallocateFlags, OFlags, fallocate, fdatasync, ftruncate};
use rustix::io::Errno;
use sealift_format::num::{size, up_to, wide};

use super::direct::{ALIGN, aligned, read_parts};
use super::queue::{Queue, Work, Written};
use super::{Fingerprint, Fingerprints, Geometry, Slot};
use crate::threads::panic_guard::OnPanic;
use crate::{Error, Progress};

/// Bytes at the start that are written last.
pub(crate) const HEAD_LEN: u64 = 1 << 20;
/// Bytes at the start that are written at the very end.
pub(crate) const BLOCK_LEN: usize = ALIGN;
/// Bytes that are read at once.
const READ_LEN: usize = 4 << 20;
/// Bytes of the buffers from which an image is written, or several at once.
const BUFFERS_LEN: usize = 24 << 20;
/// Buffers that a writer has at least: one that is written, and one for each of two threads.
const BUFFERS_MIN: usize = 3;

/// Writes one image.
pub(crate) struct SlotWriter<'a> {
    slot: &'a Slot,
    len: u64,
    /// Write only blocks that differ from what is there.
    compares: bool,
    units: Geometry,
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl<'a> SlotWriter<'a> {
    /// Prepares to write an image of `len` bytes; with `compares`, only the blocks of 4 KiB that differ from what is there. It is one of `writers`,
    /// which share the memory.
    pub(crate) fn new(slot: &'a Slot, len: u64, compares: bool, writers: usize) -> Self {
        let own_len = BUFFERS_LEN / writers.max(1);
        let units = slot.geometry().at_most(own_len / BUFFERS_MIN);
        let buffers = (own_len / units.unit()).max(BUFFERS_MIN);
        let queue = Queue::new(vec![0; size(len.min(HEAD_LEN))], buffers);
        Self { slot, len, compares, units, queue: Mutex::new(queue), changed: Condvar::new() }
    }

    /// Overwrites the start of the slot with zeros, durably: from then on nothing mounts it. A file gets the image's length.
    ///
    /// # Errors
    /// Returns an error if the slot cannot be written.
    pub(crate) fn begin(&self) -> Result<(), Error> {
        // A shorter image must not leave the start of what was there.
        let len = if self.slot.is_device() { self.slot.size() } else { self.len };
        overwrite_head(self.slot, len)?;
        if !self.slot.is_device() {
            ftruncate(self.slot.fd(), self.len).map_err(|error| self.failed("write", error))?;
        }
        Ok(())
    }

    /// Runs `work`, which puts the image's contents, and writes them meanwhile. Returns what was written once all of it is durable, but for the
    /// head.
    ///
    /// # Errors
    /// Returns the error of `work`, or the first one of writing.
    pub(crate) fn run(&self, work: impl FnOnce() -> Result<(), Error>) -> Result<Written, Error> {
        let result = std::thread::scope(|scope| {
            let writing = Builder::new().spawn_scoped(scope, || self.write());
            let writing = writing.map_err(|error| Error::io("start a thread to write", self.slot.shown(), error))?;
            let result = {
                let _guard = OnPanic(|| self.end());
                work()
            };
            if result.is_err() {
                self.queue.lock().stop();
            }
            self.end();
            if let Err(panic) = writing.join() {
                std::panic::resume_unwind(panic);
            }
            result
        });
        let mut queue = self.queue.lock();
        // What the device says matters more than that it was noticed elsewhere.
        if let Some(error) = queue.failed.take() {
            return Err(error);
        }
        result?;
        let written = queue.written;
        drop(queue);
        self.sync()?;
        Ok(written)
    }

    /// Puts bytes of the image.
    ///
    /// # Errors
    /// Returns [`Error::Cancelled`] if writing has failed; [`Self::run`] returns the cause.
    pub(crate) fn put(&self, data: &[u8], offset: u64) -> Result<(), Error> {
        let (head, rest) = data.split_at(size(HEAD_LEN.saturating_sub(offset).min(wide(data.len()))));
        if !head.is_empty() {
            self.queue.lock().head[size(offset)..][..head.len()].copy_from_slice(head);
        }
        if rest.is_empty() {
            return Ok(());
        }
        let (mut rest, mut at) = (rest, offset + wide(head.len()));
        while !rest.is_empty() {
            let unit = self.unit_of(at);
            let (part, more) = rest.split_at(up_to(unit.end.saturating_sub(at), rest.len()).max(1));
            let mut buffer = self.take(&unit)?;
            place_in(&mut buffer, self.units, at - unit.start..at - unit.start + wide(part.len()))
                .copy_from_slice(part);
            self.queue.lock().put(unit.start, buffer, at..at + wide(part.len()));
            self.changed.notify_all();
            (rest, at) = (more, at + wide(part.len()));
        }
        Ok(())
    }

    /// Returns the unit with the byte at an offset, without what lies in the head, or behind the image.
    fn unit_of(&self, at: u64) -> Range<u64> {
        let end = at + wide(self.units.until_end(at));
        end.saturating_sub(wide(self.units.unit())).max(HEAD_LEN)..end.min(self.len)
    }

    /// Waits for the buffer of a unit.
    fn take(&self, unit: &Range<u64>) -> Result<Vec<u8>, Error> {
        let mut queue = self.queue.lock();
        let mut taken = queue.take(unit);
        if taken.is_none() {
            queue.blocked += 1;
            self.changed.notify_all();
            while taken.is_none() && queue.failed.is_none() {
                self.changed.wait(&mut queue);
                taken = queue.take(unit);
            }
            queue.blocked -= 1;
        }
        taken.filter(|_| queue.failed.is_none()).ok_or(Error::Cancelled)
    }

    /// Puts a hole of the image, which may be empty.
    pub(crate) fn put_hole(&self, range: Range<u64>) {
        if range.start < range.end.min(HEAD_LEN) {
            self.queue.lock().head[size(range.start)..size(range.end.min(HEAD_LEN))].fill(0);
        }
        let start = range.start.max(HEAD_LEN);
        if start < range.end {
            self.queue.lock().put_hole(start..range.end);
            self.changed.notify_all();
        }
    }

    /// Takes bytes of the head that are in the slot already, and need not be put.
    pub(crate) fn keep_head(&self, bytes: &[u8]) {
        self.queue.lock().head[..bytes.len()].copy_from_slice(bytes);
    }

    /// Returns the head that was put.
    pub(crate) fn head(&self) -> Vec<u8> {
        self.queue.lock().head.clone()
    }

    /// Writes the head, durably: at the very end its first block, without which nothing recognizes a file system or a partition table. Returns how many
    /// bytes that were.
    ///
    /// # Errors
    /// Returns an error if the slot cannot be written.
    pub(crate) fn end_with_head(&self) -> Result<u64, Error> {
        let head = self.head();
        let (first, rest) = head.split_at(head.len().min(BLOCK_LEN));
        for (part, at) in [(rest, wide(first.len())), (first, 0)] {
            self.slot.file().write_all_at(part, at).map_err(|error| self.failed("write", error))?;
            self.sync()?;
        }
        Ok(wide(head.len()))
    }

    /// Reads the slot again, from the device if that is possible, with the head as it will be written.
    ///
    /// # Errors
    /// Returns an error if it cannot be read.
    pub(crate) fn fingerprint(&self, piece_len: u64, progress: &Progress) -> Result<Fingerprint, Error> {
        // Only what is read past the page cache is what the device has.
        let direct = self.slot.open_direct(OFlags::RDONLY);
        let mut sums = Fingerprints::new(piece_len);
        sums.take(&self.head());
        let mut at = self.len.min(HEAD_LEN);
        while at < self.len {
            progress.check()?;
            let len = (self.len - at).min(wide(READ_LEN));
            let read = read_parts(self.slot.file(), direct.as_ref(), at, len, |part| sums.take(part));
            read.map_err(|error| self.failed("read", error))?;
            progress.add(len, 0);
            at += len;
        }
        Ok(sums.finish())
    }

    fn sync(&self) -> Result<(), Error> {
        fdatasync(self.slot.fd()).map_err(|error| self.failed("write", error))
    }

    fn failed(&self, doing: &'static str, error: impl Into<io::Error>) -> Error {
        Error::io(doing, self.slot.shown(), error)
    }

    fn end(&self) {
        self.queue.lock().is_over = true;
        self.changed.notify_all();
    }

    /// Writes what comes, until the end or an error.
    fn write(&self) {
        let _guard = OnPanic(|| self.fail(Error::Cancelled));
        let mut means = Means { direct: self.slot.open_direct(OFlags::WRONLY), there: Vec::new() };
        while let Some(work) = self.next() {
            let written = match work {
                Work::Data { start, mut buffer, ranges } => {
                    let mut ranges = ranges.into_iter();
                    let written = ranges.try_for_each(|range| {
                        let data = place_in(&mut buffer, self.units, range.start - start..range.end - start);
                        self.write_data(range.start, data, &mut means)
                    });
                    self.queue.lock().release(buffer);
                    self.changed.notify_all();
                    written
                }
                Work::Hole(range) => self.write_hole(range.start, range.end - range.start, &mut means),
            };
            if let Err(error) = written {
                return self.fail(error);
            }
        }
    }

    fn fail(&self, error: Error) {
        let mut queue = self.queue.lock();
        queue.failed.get_or_insert(error);
        queue.stop();
        drop(queue);
        self.changed.notify_all();
    }

    /// Waits for work; `None` at the end.
    fn next(&self) -> Option<Work> {
        let mut queue = self.queue.lock();
        loop {
            match queue.next() {
                Some(work) => return Some(work),
                None if queue.is_over && queue.is_empty() => return None,
                None => self.changed.wait(&mut queue),
            }
        }
    }

    fn write_data(&self, offset: u64, data: &[u8], means: &mut Means) -> Result<(), Error> {
        if !self.compares {
            return self.write_at(offset, data, means);
        }
        let mut there = std::mem::take(&mut means.there);
        there.resize(data.len(), 0);
        let read =
            read_as_far_as_possible(self.slot, &mut there, offset).map_err(|error| self.failed("read", error))?;
        let differs = |block: usize| {
            let range = block * ALIGN..data.len().min((block + 1) * ALIGN);
            range.end > read || there[range.clone()] != data[range]
        };
        let (blocks, mut at) = (data.len().div_ceil(ALIGN), 0);
        while at < blocks {
            let Some(start) = (at..blocks).find(|block| differs(*block)) else { break };
            let end = (start..blocks).find(|block| !differs(*block)).unwrap_or(blocks);
            let range = start * ALIGN..data.len().min(end * ALIGN);
            self.write_at(offset + wide(range.start), &data[range], means)?;
            at = end;
        }
        means.there = there;
        Ok(())
    }

    /// Writes data. What O_DIRECT cannot write, such as a part of a sector, goes through the page cache.
    fn write_at(&self, offset: u64, data: &[u8], means: &mut Means) -> Result<(), Error> {
        let is_direct = means.direct.is_some() && offset.is_multiple_of(wide(ALIGN));
        let (first, rest) = data.split_at(if is_direct { data.len() / ALIGN * ALIGN } else { 0 });
        let unit = self.slot.geometry().unit();
        for (part, at) in first.chunks(unit).zip((offset..).step_by(unit)) {
            self.write_direct(at, part, means)?;
        }
        let written = self.slot.file().write_all_at(rest, offset + wide(first.len()));
        written.map_err(|error| self.failed("write", error))?;
        self.queue.lock().written.bytes += wide(data.len());
        Ok(())
    }

    /// Writes at most one unit, which begins at an aligned address. A file system that refuses to write past the page cache gets it through the cache.
    fn write_direct(&self, at: u64, part: &[u8], means: &mut Means) -> Result<(), Error> {
        let refused = Some(Errno::INVAL.raw_os_error());
        let written = match &means.direct {
            Some(file) => match file.write_all_at(part, at) {
                Err(error) if error.raw_os_error() == refused => {
                    means.direct = None;
                    self.slot.file().write_all_at(part, at)
                }
                written => written,
            },
            None => self.slot.file().write_all_at(part, at),
        };
        written.map_err(|error| self.failed("write", error))
    }

    /// Returns whether a range is zeros already.
    fn is_zeros(&self, offset: u64, len: u64, means: &mut Means) -> Result<bool, Error> {
        let (mut at, end) = (offset, offset + len);
        means.there.resize(READ_LEN, 0);
        while at < end && !self.queue.lock().is_stopped {
            let part = &mut means.there[..size((end - at).min(wide(READ_LEN)))];
            let read = read_as_far_as_possible(self.slot, part, at).map_err(|error| self.failed("read", error))?;
            if read < part.len() || part.iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
            at += wide(read);
        }
        Ok(true)
    }

    /// Makes a range read as zeros: as a hole if the device can, and else by writing zeros.
    fn write_hole(&self, offset: u64, len: u64, means: &mut Means) -> Result<(), Error> {
        if self.compares && self.is_zeros(offset, len, means)? {
            return Ok(());
        }
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let is_aligned = offset.is_multiple_of(wide(ALIGN)) && len.is_multiple_of(wide(ALIGN));
        // The kernel refuses what the device cannot do so that zeros are read afterwards.
        if is_aligned && !self.queue.lock().written.lied && fallocate(self.slot.fd(), flags, offset, len).is_ok() {
            if self.reads_as_zeros(offset, len)? {
                self.queue.lock().written.discarded += len;
                return Ok(());
            }
            self.queue.lock().written.lied = true;
        }
        let (mut at, end) = (offset, offset + len);
        let mut zeros = vec![0; READ_LEN + ALIGN];
        let zeros = aligned(&mut zeros, READ_LEN);
        while at < end && !self.queue.lock().is_stopped {
            let part = size((end - at).min(wide(READ_LEN)));
            self.write_data(at, &zeros[..part], means)?;
            at += wide(part);
        }
        Ok(())
    }

    /// Returns whether the first and the last block of a hole are zeros.
    fn reads_as_zeros(&self, offset: u64, len: u64) -> Result<bool, Error> {
        let mut block = [0; ALIGN];
        for at in [offset, offset + len - wide(ALIGN).min(len)] {
            let read =
                read_as_far_as_possible(self.slot, &mut block, at).map_err(|error| self.failed("read", error))?;
            if block[..read].iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Overwrites the start of a slot with zeros, durably, up to `len` bytes.
///
/// # Errors
/// Returns an error if the slot cannot be written.
pub(crate) fn overwrite_head(slot: &Slot, len: u64) -> Result<(), Error> {
    let zeros = vec![0; size(len.min(HEAD_LEN))];
    let written = slot.file().write_all_at(&zeros, 0).and_then(|()| Ok(fdatasync(slot.fd())?));
    written.map_err(|error| Error::io("write", slot.shown(), error))
}

/// What the writing thread works with.
struct Means {
    /// The slot, opened so that writes go past the page cache.
    direct: Option<File>,
    /// What the slot has.
    there: Vec<u8>,
}

/// Returns a range of the unit in a buffer, which begins at an aligned address. The buffer gets its length when it is used for the first time.
fn place_in(buffer: &mut Vec<u8>, units: Geometry, range: Range<u64>) -> &mut [u8] {
    if buffer.is_empty() {
        *buffer = vec![0; units.unit() + ALIGN];
    }
    &mut aligned(buffer, units.unit())[size(range.start)..size(range.end)]
}

/// Reads until the buffer is full or the slot ends. Returns how many bytes were read.
fn read_as_far_as_possible(slot: &Slot, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut read = 0;
    while read < buffer.len() {
        match slot.file().read_at(&mut buffer[read..], offset + wide(read)) {
            Ok(0) => break,
            Ok(len) => read += len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}
