//! Changes of times that many files share (delta 5.5).

use alloc::vec::Vec;

/// Seconds since 1970-01-01 UTC, and nanoseconds.
pub(super) type Time = (i64, u32);

/// A change of the time of every kept file that has the old time and whose edit states no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeChange {
    /// The time in the base.
    pub from: (i64, u32),
    /// The time in the wanted index.
    pub to: (i64, u32),
}

pub(super) fn new_time(times: &[TimeChange], old: Time) -> Time {
    match times.binary_search_by_key(&old, |change| change.from) {
        Ok(at) => times[at].to,
        Err(_) => old,
    }
}

/// Returns for each old time the new one of most files. A time that only one file has is left to its edit.
pub(super) fn usual_changes(mut pairs: Vec<(Time, Time)>) -> Vec<TimeChange> {
    pairs.sort_unstable();
    let mut changes = Vec::new();
    for same_from in pairs.chunk_by(|a, b| a.0 == b.0) {
        let mut best = (0, 0, same_from[0].0);
        for same in same_from.chunk_by(|a, b| a.1 == b.1) {
            let (from, to) = same[0];
            // Of two that are equally frequent, an unchanged time is preferred: it takes fewer bytes.
            let rank = (same.len(), usize::from(from == to), to);
            if (rank.0, rank.1) > (best.0, best.1) {
                best = rank;
            }
        }
        let (from, to) = (same_from[0].0, best.2);
        if best.0 > 1 && from != to {
            changes.push(TimeChange { from, to });
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn the_most_frequent_change_is_the_usual_one() {
        let at = |seconds| (seconds, 0);
        let pairs = vec![
            (at(1), at(5)),
            (at(2), at(5)),
            (at(1), at(6)),
            (at(1), at(5)),
            (at(3), at(3)),
            (at(3), at(3)),
            (at(3), at(4)),
            (at(3), at(4)),
        ];
        let changes = usual_changes(pairs);
        assert_eq!(changes, [TimeChange { from: at(1), to: at(5) }]);
        assert_eq!([1, 2, 3].map(|old| new_time(&changes, at(old))), [at(5), at(2), at(3)]);
    }
}
