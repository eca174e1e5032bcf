//! The content of a member while it is put together.

use super::anatomy::Part;

/// Approximate memory of a part, which whoever adds many counts ([`Reader::hold`](super::reader::Reader::hold)).
pub(super) const PART: u64 = 48;

/// Parts in order, of which neighbours that go on are one.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts {
    list: Vec<Part>,
    /// Where in the content each part begins.
    starts: Vec<u64>,
    len: u64,
}

impl Parts {
    /// Returns one stretch of the container.
    pub(super) fn stored(offset: u64, len: u64) -> Self {
        let mut parts = Self::default();
        parts.push(Part::Stored { offset, len });
        parts
    }

    pub(super) fn push(&mut self, part: Part) {
        if part.is_empty() {
            return;
        }
        let start = self.len;
        self.len = start.saturating_add(part.len());
        match (self.list.last_mut(), part) {
            (Some(Part::Stored { offset, len }), Part::Stored { offset: next, len: more })
                if offset.checked_add(*len) == Some(next) =>
            {
                *len = len.saturating_add(more);
            }
            (Some(Part::Hole { len }), Part::Hole { len: more }) => *len = len.saturating_add(more),
            _ => {
                self.list.push(part);
                self.starts.push(start);
            }
        }
    }

    /// Adds a hole up to this length, if it is not reached yet.
    pub(super) fn extend_to(&mut self, len: u64) {
        self.push(Part::Hole { len: len.saturating_sub(self.len) });
    }

    /// Adds a part of other parts.
    pub(super) fn push_range(&mut self, of: &Self, start: u64, len: u64) {
        let end = start.saturating_add(len);
        let first = of.starts.partition_point(|at| *at <= start).saturating_sub(1);
        for (part, at) in of.list.iter().zip(&of.starts).skip(first).take_while(|(_, at)| **at < end) {
            let (from, to) = (start.max(*at), end.min(at.saturating_add(part.len())));
            if from < to {
                self.push(cut(part, from - at, to - from));
            }
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Returns how many parts there are.
    pub(super) fn count(&self) -> usize {
        self.list.len()
    }

    pub(super) fn into_list(self) -> Vec<Part> {
        self.list
    }
}

/// Returns the bytes from `skip` on of a part.
fn cut(part: &Part, skip: u64, len: u64) -> Part {
    match *part {
        Part::Stored { offset, .. } => Part::Stored { offset: offset.saturating_add(skip), len },
        Part::Inflated { block, start, .. } => Part::Inflated { block, start: start.saturating_add(skip), len },
        Part::Hole { .. } => Part::Hole { len },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_joined_and_ranges_cut() {
        let mut parts = Parts::stored(10, 5);
        parts.push(Part::Stored { offset: 15, len: 5 });
        parts.push(Part::Hole { len: 0 });
        parts.push(Part::Hole { len: 2 });
        parts.extend_to(20);
        parts.extend_to(3);
        parts.push(Part::Inflated { block: 1, start: 7, len: 9 });
        let of = |range: &Parts| range.clone().into_list();
        let all = [
            Part::Stored { offset: 10, len: 10 },
            Part::Hole { len: 10 },
            Part::Inflated { block: 1, start: 7, len: 9 },
        ];
        assert_eq!((of(&parts), parts.len()), (all.to_vec(), 29));
        let mut range = Parts::default();
        range.push_range(&parts, 8, 15);
        let some = [
            Part::Stored { offset: 18, len: 2 },
            Part::Hole { len: 10 },
            Part::Inflated { block: 1, start: 7, len: 3 },
        ];
        assert_eq!(of(&range), some);
        range.push_range(&parts, 29, 1);
        assert_eq!(range.len(), 15);
    }
}
