//! What waits to be written to a slot: units, which several threads fill in any order, and holes.
//!
//! Each unit has a buffer at an aligned address, from which it is written at once. There are few buffers, and each is used again and again: whoever needs
//! one waits until one is free.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::Error;

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// Bytes of data, including zeros.
    pub(crate) bytes: u64,
    /// Bytes of holes, which the device was told to discard.
    pub(crate) discarded: u64,
    /// Whether the device kept data in a hole although it reported that it had discarded it.
    pub(crate) lied: bool,
}

/// What waits, behind a lock.
#[derive(Default)]
pub(super) struct Queue {
    /// By where they begin.
    units: BTreeMap<u64, Unit>,
    holes: BTreeMap<u64, u64>,
    free: Vec<Vec<u8>>,
    /// Buffers that were made.
    made: usize,
    /// Buffers that may be made.
    buffers: usize,
    /// Threads that wait for a buffer.
    pub(super) blocked: usize,
    /// Counts what was put.
    puts: u64,
    pub(super) is_over: bool,
    /// Whether what waits is given up.
    pub(super) is_stopped: bool,
    pub(super) failed: Option<Error>,
    pub(super) head: Vec<u8>,
    pub(super) written: Written,
}

/// A unit of which not everything was written.
struct Unit {
    start: u64,
    end: u64,
    /// `None` while a thread copies to it.
    buffer: Option<Vec<u8>>,
    /// What it has: starts and ends in the slot, without gaps between neighbours.
    filled: BTreeMap<u64, u64>,
    /// When something was put to it last.
    last_put: u64,
}

/// What one thread writes at once.
pub(super) enum Work {
    /// Ranges of the slot, whose bytes are in the buffer, in which the unit begins at `start`.
    Data { start: u64, buffer: Vec<u8>, ranges: Vec<Range<u64>> },
    /// Where a hole is.
    Hole(Range<u64>),
}

impl Queue {
    /// Returns an empty one with the head of an image, and at most this many buffers.
    pub(super) fn new(head: Vec<u8>, buffers: usize) -> Self {
        Self { head, buffers, ..Self::default() }
    }

    /// Gives up what waits.
    pub(super) fn stop(&mut self) {
        (self.units, self.holes) = Default::default();
        self.is_stopped = true;
    }

    /// Takes the buffer of a unit, to copy to it; `None` if another thread has it, or if there is none. A buffer that was never used is empty.
    pub(super) fn take(&mut self, unit: &Range<u64>) -> Option<Vec<u8>> {
        if let Some(unit) = self.units.get_mut(&unit.start) {
            return unit.buffer.take();
        }
        let buffer = self.free.pop().or_else(|| (self.made < self.buffers).then(Vec::new))?;
        self.made += usize::from(buffer.is_empty());
        let filled = BTreeMap::new();
        self.units
            .insert(unit.start, Unit { start: unit.start, end: unit.end, buffer: None, filled, last_put: self.puts });
        Some(buffer)
    }

    /// Returns a buffer to its unit, which now has this range.
    pub(super) fn put(&mut self, unit: u64, buffer: Vec<u8>, range: Range<u64>) {
        self.puts += 1;
        match self.units.get_mut(&unit) {
            Some(unit) => {
                unit.buffer = Some(buffer);
                unit.last_put = self.puts;
                unit.fill(range);
            }
            // All was given up.
            None => self.free.push(buffer),
        }
    }

    /// Takes a hole.
    pub(super) fn put_hole(&mut self, range: Range<u64>) {
        if !self.is_stopped {
            self.holes.insert(range.start, range.end);
        }
    }

    /// Makes a buffer that was written available.
    pub(super) fn release(&mut self, buffer: Vec<u8>) {
        self.free.push(buffer);
    }

    /// Returns whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.units.is_empty() && self.holes.is_empty()
    }

    /// Returns what is to be written now: whole units as far as possible in the order of the slot, and others only if their buffers are needed, or at
    /// the end.
    pub(super) fn next(&mut self) -> Option<Work> {
        let is_short = self.blocked > 0 || self.units.len() * 2 > self.buffers;
        let whole = self.units.iter().find(|(_, unit)| unit.is_whole());
        let is_first = |start: &u64| self.units.first_key_value().is_some_and(|(first, _)| first == start);
        let whole = whole.map(|(start, _)| *start).filter(|start| is_short || is_first(start));
        if let Some(start) = whole.filter(|_| !self.is_over) {
            return self.remove(start);
        }
        let first = self.units.first_key_value().map_or(u64::MAX, |(start, _)| *start);
        let hole = self.holes.first_key_value().map(|(start, end)| *start..*end);
        if let Some(hole) = hole.filter(|hole| !self.is_over || hole.start < first) {
            self.holes.remove(&hole.start);
            return Some(Work::Hole(hole));
        }
        let at_rest = self.units.iter().filter(|(_, unit)| unit.buffer.is_some());
        let part = match self.is_over {
            true => at_rest.map(|(start, _)| *start).next(),
            // What nobody has put to for the longest time is the least likely to be completed soon.
            false => at_rest.min_by_key(|(_, unit)| unit.last_put).map(|(start, _)| *start),
        };
        self.remove(part.filter(|_| self.is_over || self.blocked > 0)?)
    }

    fn remove(&mut self, start: u64) -> Option<Work> {
        let unit = self.units.remove(&start)?;
        let ranges = unit.filled.into_iter().map(|(start, end)| start..end).collect();
        Some(Work::Data { start, buffer: unit.buffer?, ranges })
    }
}

impl Unit {
    fn is_whole(&self) -> bool {
        self.buffer.is_some() && self.filled.get(&self.start) == Some(&self.end)
    }

    /// Adds a range, and joins it with its neighbours.
    fn fill(&mut self, range: Range<u64>) {
        let (mut start, mut end) = (range.start, range.end);
        if let Some((before, until)) = self.filled.range(..=start).next_back().map(|(before, until)| (*before, *until))
            && until >= start
        {
            (start, end) = (before, end.max(until));
        }
        while let Some((next, until)) = self.filled.range(start..=end).next().map(|(next, until)| (*next, *until)) {
            self.filled.remove(&next);
            end = end.max(until);
        }
        self.filled.insert(start, end);
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "they are ranges")]
mod tests {
    use super::*;

    const UNIT: u64 = 100;

    /// Puts a range of a unit; `false` if there is no buffer.
    fn put(queue: &mut Queue, range: Range<u64>) -> bool {
        let unit = range.start / UNIT * UNIT;
        let Some(mut buffer) = queue.take(&(unit..unit + UNIT)) else { return false };
        buffer.resize(1, 0);
        queue.put(unit, buffer, range);
        true
    }

    /// Returns the ranges of what is to be written next, or the hole.
    fn next(queue: &mut Queue) -> Vec<Range<u64>> {
        match queue.next() {
            Some(Work::Data { buffer, ranges, .. }) => {
                queue.release(buffer);
                ranges
            }
            Some(Work::Hole(range)) => vec![range],
            None => Vec::new(),
        }
    }

    #[test]
    fn whole_units_are_written_in_order_and_others_when_their_buffers_are_needed() {
        let mut queue = Queue::new(Vec::new(), 4);
        assert!(put(&mut queue, 50..100) && put(&mut queue, 100..200));
        assert_eq!(next(&mut queue), [], "the first one is not complete");
        assert!(put(&mut queue, 0..50));
        assert_eq!((next(&mut queue), next(&mut queue)), (vec![0..100], vec![100..200]));
        assert!([210..220, 300..330, 410..420, 500..600].into_iter().all(|range| put(&mut queue, range)));
        assert!(!put(&mut queue, 600..610), "there are four buffers");
        assert_eq!(next(&mut queue), [500..600], "it is complete, and buffers are short");
        assert!(put(&mut queue, 600..610) && put(&mut queue, 230..240));
        assert_eq!(next(&mut queue), []);
        queue.blocked = 1;
        assert_eq!(next(&mut queue), [300..330], "nothing was put to it for the longest time");
        queue.put_hole(250..300);
        queue.blocked = 0;
        assert_eq!(next(&mut queue), [250..300]);
        queue.is_over = true;
        queue.put_hole(420..500);
        assert_eq!(next(&mut queue), [210..220, 230..240]);
        assert_eq!([next(&mut queue), next(&mut queue), next(&mut queue)], [[410..420], [420..500], [600..610]]);
        assert!(queue.is_empty() && queue.made == 4);
    }

    #[test]
    fn a_unit_that_another_thread_fills_is_neither_taken_nor_written() {
        let mut queue = Queue::new(Vec::new(), 2);
        let buffer = queue.take(&(0..UNIT)).expect("it is new");
        queue.blocked = 1;
        assert!(queue.take(&(0..UNIT)).is_none() && queue.next().is_none());
        queue.put(0, buffer, 0..UNIT);
        assert_eq!(next(&mut queue), [0..UNIT]);
        // After an error, whatever comes back is kept for nobody.
        let buffer = queue.take(&(0..UNIT)).expect("it is free");
        queue.stop();
        queue.put(0, buffer, 0..UNIT);
        queue.put_hole(100..200);
        assert!(queue.is_empty());
    }

    #[test]
    fn ranges_that_touch_are_one() {
        let mut queue = Queue::new(Vec::new(), 1);
        for range in [40..50, 10..20, 30..35, 20..30, 45..60, 0..5] {
            assert!(put(&mut queue, range));
        }
        queue.is_over = true;
        assert_eq!(next(&mut queue), [0..5, 10..35, 40..60]);
    }
}
