//! Ranges of a file that are requested.

use std::collections::HashSet;

/// The largest request of what is known to be wanted.
pub(super) const SEGMENT: u64 = 4 << 20;
/// Bytes between two wanted ranges that are read with them rather than by another request.
const GAP: u64 = 32 << 10;
/// With more requests than this, larger gaps are read, too, the smallest first,
const FEW: usize = 32;
/// as long as they add less than this part of what is wanted.
const MORE: u64 = 8;
/// A range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) start: u64,
    pub(super) end: u64,
}

impl Segment {
    pub(super) fn contains(self, offset: u64) -> bool {
        (self.start..self.end).contains(&offset)
    }

    pub(super) fn len(self) -> u64 {
        self.end - self.start
    }
}

/// Merges ascending ranges into those that are requested.
pub(super) fn merged(ranges: Vec<Segment>) -> Vec<Segment> {
    let few = joined(ranges, |_, gap| gap <= GAP);
    let starts = few.iter().skip(1).map(|segment| segment.start);
    let gaps = few.iter().zip(starts).map(|(segment, next)| (next.saturating_sub(segment.end), next));
    let mut gaps: Vec<(u64, u64)> = gaps.filter(|(gap, _)| *gap > GAP).collect();
    gaps.sort_unstable();
    let mut room = few.iter().map(|segment| segment.len()).sum::<u64>() / MORE;
    let number = gaps.iter().take(few.len().saturating_sub(FEW)).take_while(|(gap, _)| {
        let rest = room.checked_sub(*gap);
        room = rest.unwrap_or(0);
        rest.is_some()
    });
    let number = number.count();
    gaps.truncate(number);
    let behind: HashSet<u64> = gaps.into_iter().map(|(_, next)| next).collect();
    joined(few, |next, _| behind.contains(&next))
}

/// Joins ascending ranges that are not too large together, where `joins` says so of the start of the later one, and of the bytes between both.
fn joined(ranges: Vec<Segment>, joins: impl Fn(u64, u64) -> bool) -> Vec<Segment> {
    let mut joined: Vec<Segment> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last)
                if joins(range.start, range.start.saturating_sub(last.end))
                    && range.end.saturating_sub(last.start) <= SEGMENT =>
            {
                last.end = last.end.max(range.end);
            }
            _ => joined.push(range),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how many requests there are for ranges of 1 KiB with these gaps, and the bytes between ranges that they read.
    fn cost(gap: u64, number: u64) -> (usize, u64) {
        let ranges = (0..number).map(|at| Segment { start: at * (1024 + gap), end: at * (1024 + gap) + 1024 });
        let requests = merged(ranges.collect());
        (requests.len(), requests.iter().map(|segment| segment.len()).sum::<u64>() - number * 1024)
    }

    #[test]
    fn small_gaps_are_read() {
        assert_eq!(cost(0, 1000), (1, 0));
        assert_eq!(cost(GAP, 3), (1, 2 * GAP));
        assert_eq!(cost(GAP + 1, 3), (3, 0));
        // No request is larger than a segment.
        assert_eq!(cost(0, 5 * SEGMENT / 1024), (5, 0));
    }

    #[test]
    fn of_many_requests_the_closest_are_merged() {
        let far = |at: u64| {
            let start = at * (SEGMENT + at * 4096);
            Segment { start, end: start + (1 << 20) }
        };
        let near = |at: u64| Segment { start: at * ((1 << 20) + 2 * GAP), end: at * ((1 << 20) + 2 * GAP) + (1 << 20) };
        // Too far from each other.
        assert_eq!(merged((0..100).map(far).collect()).len(), 100);
        // Of 68 gaps that may be read, those that would make a segment too large stay.
        let few = merged((0..100).map(near).collect());
        assert_eq!(few.len(), 54);
        assert!(few.iter().all(|segment| segment.len() <= SEGMENT));
        let bytes: u64 = few.iter().map(|segment| segment.len()).sum();
        assert!(bytes < (100 << 20) * (MORE + 1) / MORE, "{bytes}");
        // One gap would be more than there may be, or all are as large.
        let small = |at: u64| Segment { start: at << 19, end: (at << 19) + 4096 };
        let few = merged((0..1000).map(small).collect());
        assert!(few.len() >= 999, "{}", few.len());
        // Few requests stay as they are.
        assert_eq!(merged((0..20).map(near).collect()).len(), 20);
    }
}
