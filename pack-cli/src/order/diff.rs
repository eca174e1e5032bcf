//! Compares two profiles.

use std::collections::HashMap;

use super::profile::OrderProfile;

/// A path that differs between two profiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderDifference<'a> {
    /// How it differs.
    pub kind: DifferenceKind,
    /// The path.
    pub path: &'a [u8],
    /// Its position in the old profile, from 1.
    pub old: Option<usize>,
    /// Its position in the new profile, from 1.
    pub new: Option<usize>,
}

/// How a path differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DifferenceKind {
    /// Only the new profile has it.
    Added,
    /// Only the old profile has it.
    Removed,
    /// Its place among the other paths has changed. Its ranges may differ as well.
    Moved,
    /// Only its ranges differ.
    Ranges,
}

/// Compares two profiles. Returns the removed paths in the old order, then the others in the new one. As few paths as possible count as moved:
/// adding or removing a path does not move the others.
#[must_use]
pub fn diff<'a>(old: &'a OrderProfile, new: &'a OrderProfile) -> Vec<OrderDifference<'a>> {
    let positions = |profile: &'a OrderProfile| -> HashMap<&'a [u8], usize> {
        profile.entries().iter().enumerate().map(|(at, entry)| (&entry.path[..], at)).collect()
    };
    let (in_old, in_new) = (positions(old), positions(new));
    let removed = old.entries().iter().enumerate().filter(|(_, entry)| !in_new.contains_key(&entry.path[..]));
    let mut differences: Vec<OrderDifference<'_>> = removed
        .map(|(at, entry)| OrderDifference {
            kind: DifferenceKind::Removed,
            path: &entry.path,
            old: Some(at + 1),
            new: None,
        })
        .collect();
    let common: Vec<usize> = new.entries().iter().filter_map(|entry| in_old.get(&entry.path[..]).copied()).collect();
    let mut stays = longest_ascending(&common).into_iter();
    for (at, entry) in new.entries().iter().enumerate() {
        let before = in_old.get(&entry.path[..]).copied();
        let kind = match before {
            None => DifferenceKind::Added,
            Some(_) if stays.next() == Some(false) => DifferenceKind::Moved,
            Some(before) if old.entries()[before].ranges != entry.ranges => DifferenceKind::Ranges,
            Some(_) => continue,
        };
        differences.push(OrderDifference { kind, path: &entry.path, old: before.map(|at| at + 1), new: Some(at + 1) });
    }
    differences
}

/// Returns for each of some different numbers whether it belongs to the longest ascending part of them.
fn longest_ascending(numbers: &[usize]) -> Vec<bool> {
    // The index of the smallest number that ends an ascending part of each length, and for each index the one before it in such a part.
    let mut ends: Vec<usize> = Vec::new();
    let mut before = vec![None; numbers.len()];
    for (at, number) in numbers.iter().enumerate() {
        let len = ends.partition_point(|end| numbers[*end] < *number);
        before[at] = len.checked_sub(1).map(|last| ends[last]);
        match ends.get_mut(len) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut belongs = vec![false; numbers.len()];
    let mut next = ends.last().copied();
    while let Some(at) = next {
        belongs[at] = true;
        next = before[at];
    }
    belongs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_few_as_possible_move() {
        let moved = |numbers: &[usize]| longest_ascending(numbers).into_iter().filter(|stays| !stays).count();
        assert_eq!(longest_ascending(&[5, 0, 1, 2]), [false, true, true, true]);
        assert_eq!(longest_ascending(&[1, 2, 3, 0]), [true, true, true, false]);
        assert_eq!((moved(&[]), moved(&[0, 1, 2]), moved(&[2, 1, 0]), moved(&[3, 1, 4, 0, 5, 2])), (0, 0, 2, 3));
    }
}
