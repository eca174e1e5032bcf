//! What was read of an image: ranges without overlaps, each with the number of the first read there.

use std::collections::BTreeMap;
use std::ops::Range;

use sealift_store::kept_order::UsedRanges;

/// Ranges by their start: where each ends, and the number of its read.
#[derive(Default)]
pub(in crate::order::import) struct Reads {
    ranges: BTreeMap<u64, (u64, usize)>,
    count: usize,
}

impl Reads {
    /// Adds a read that is later than those before.
    pub(in crate::order::import) fn add(&mut self, range: Range<u64>) {
        let new = self.gaps(&range);
        if new.is_empty() {
            return;
        }
        for gap in new {
            self.ranges.insert(gap.start, (gap.end, self.count));
        }
        self.count += 1;
    }

    /// Returns how many reads were of something new.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Returns the parts of a range that were read, each with the number of its first read.
    pub(super) fn within(&self, place: &Range<u64>) -> impl Iterator<Item = (Range<u64>, usize)> {
        let Range { start, end } = *place;
        let before = self.ranges.range(..start).next_back();
        let parts = before.into_iter().chain(self.ranges.range(start..end.max(start)));
        let parts = parts.map(move |(from, (to, number))| ((*from).max(start)..(*to).min(end), *number));
        parts.filter(|(part, _)| part.start < part.end)
    }

    /// Returns all ranges, in the order of their first reads.
    pub(in crate::order::import) fn into_ranges(self) -> Vec<Range<u64>> {
        let mut ranges = UsedRanges::default();
        for (start, (end, number)) in self.ranges {
            ranges.add(start..end, number);
        }
        ranges.in_order()
    }

    fn gaps(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let mut gaps = Vec::new();
        let mut at = range.start;
        for (part, _) in self.within(range) {
            gaps.push(at..part.start);
            at = part.end;
        }
        gaps.push(at..range.end);
        gaps.retain(|gap| gap.start < gap.end);
        gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_read_of_each_place_counts() {
        let mut reads = Reads::default();
        for range in [10..20, 30..40, 0..50, 12..14, 60..60, 45..55] {
            reads.add(range);
        }
        assert_eq!(reads.count(), 4);
        let parts = |range: Range<u64>| reads.within(&range).collect::<Vec<_>>();
        assert_eq!(parts(0..100), [(0..10, 2), (10..20, 0), (20..30, 2), (30..40, 1), (40..50, 2), (50..55, 3)]);
        assert_eq!(parts(15..32), [(15..20, 0), (20..30, 2), (30..32, 1)]);
        assert_eq!((parts(55..60), parts(7..7)), (vec![], vec![]));
    }
}
