//! The way of least bytes from what a target holds to a version: nothing, a full bundle, a delta, or several bundles one after the other.

use std::collections::HashMap;

/// A bundle as a step of a way.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_structs, reason = "callers fill it in")]
pub struct Edge<'a> {
    /// The digests of its bases; none for a full bundle.
    pub bases: &'a [[u8; 32]],
    /// The digest of what it installs.
    pub result: [u8; 32],
    /// Bytes of the file.
    pub len: u64,
}

/// How a content is reached.
#[derive(Clone, Copy, Debug)]
struct Reached {
    bytes: u64,
    /// The bundle, and the content that it is over, unless that is held or none.
    by: Option<(usize, Option<[u8; 32]>)>,
    is_final: bool,
}

/// Returns the numbers of the bundles that lead to `goal`, one after the other, with the smallest sum of bytes, and of equal sums the one with the
/// fewest bundles; none if the target holds `goal`. `None` if no way leads there. `held` are the contents that the target holds.
#[must_use]
pub fn cheapest(edges: &[Edge<'_>], held: &[[u8; 32]], goal: [u8; 32]) -> Option<Vec<usize>> {
    let mut reached: HashMap<[u8; 32], Reached> = HashMap::new();
    for digest in held {
        reached.insert(*digest, Reached { bytes: 0, by: None, is_final: false });
    }
    // What each content is a base of; full bundles, and deltas over what is held, begin a way.
    let mut over: HashMap<[u8; 32], Vec<usize>> = HashMap::new();
    for (number, edge) in edges.iter().enumerate() {
        if edge.bases.is_empty() {
            improve(&mut reached, edge, number, 0, None);
        }
        edge.bases.iter().for_each(|base| over.entry(*base).or_default().push(number));
    }
    // Dijkstra's algorithm; a channel has few contents.
    loop {
        let open = reached.iter().filter(|(_, own)| !own.is_final);
        let (digest, bytes) =
            open.map(|(digest, own)| (*digest, own.bytes)).min_by_key(|(digest, bytes)| (*bytes, *digest))?;
        if let Some(own) = reached.get_mut(&digest) {
            own.is_final = true;
        }
        if digest == goal {
            return Some(steps(&reached, goal));
        }
        for number in over.get(&digest).into_iter().flatten() {
            let Some(edge) = edges.get(*number) else { continue };
            let others = edge.bases.iter().filter(|base| **base != digest);
            if others.into_iter().all(|base| held.contains(base)) {
                improve(&mut reached, edge, *number, bytes, Some(digest));
            }
        }
    }
}

/// Takes a bundle if it leads to its result with fewer bytes.
fn improve(
    reached: &mut HashMap<[u8; 32], Reached>,
    edge: &Edge<'_>,
    number: usize,
    before: u64,
    over: Option<[u8; 32]>,
) {
    // A step has a cost of its own, so that of ways of equal length the shorter one wins.
    let bytes = before.saturating_add(edge.len).saturating_add(1);
    let found = reached.entry(edge.result).or_insert(Reached { bytes: u64::MAX, by: None, is_final: false });
    if !found.is_final && bytes < found.bytes {
        *found = Reached { bytes, by: Some((number, over)), is_final: false };
    }
}

fn steps(reached: &HashMap<[u8; 32], Reached>, goal: [u8; 32]) -> Vec<usize> {
    let (mut way, mut at) = (Vec::new(), Some(goal));
    while let Some((number, before)) = at.and_then(|digest| reached.get(&digest)).and_then(|own| own.by) {
        way.push(number);
        at = before;
    }
    way.reverse();
    way
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(number: u8) -> [u8; 32] {
        [number; 32]
    }

    /// Each edge is its bases, its result and its length.
    fn way(edges: &[(&[u8], u8, u64)], held: &[u8], goal: u8) -> Option<Vec<usize>> {
        let digests = |numbers: &[u8]| numbers.iter().map(|number| digest(*number)).collect::<Vec<_>>();
        let bases: Vec<Vec<[u8; 32]>> = edges.iter().map(|(bases, ..)| digests(bases)).collect();
        let edges = edges.iter().zip(&bases);
        let edges: Vec<Edge<'_>> =
            edges.map(|((_, result, len), bases)| Edge { bases, result: digest(*result), len: *len }).collect();
        cheapest(&edges, &digests(held), digest(goal))
    }

    #[test]
    fn the_fewest_bytes_win() {
        let edges = [(&[][..], 1, 100), (&[1], 2, 10), (&[2], 3, 10), (&[1], 3, 25), (&[], 3, 100)];
        assert_eq!(way(&edges, &[3], 3), Some(vec![]));
        assert_eq!(way(&edges, &[2], 3), Some(vec![2]));
        assert_eq!(way(&edges, &[1], 3), Some(vec![1, 2]));
        assert_eq!(way(&edges, &[], 3), Some(vec![4]));
        assert_eq!(way(&edges, &[9], 3), Some(vec![4]));
        assert_eq!(way(&edges[..3], &[], 3), Some(vec![0, 1, 2]));
        assert_eq!(way(&edges[1..3], &[], 3), None);
    }

    #[test]
    fn of_equal_bytes_fewer_bundles_win() {
        assert_eq!(way(&[(&[1], 2, 10), (&[2], 3, 10), (&[1], 3, 20)], &[1], 3), Some(vec![2]));
    }

    #[test]
    fn cycles_and_huge_lengths_end() {
        let edges = [(&[1][..], 2, u64::MAX), (&[2], 1, 0), (&[2], 3, u64::MAX), (&[3], 2, 1), (&[4], 4, 1)];
        assert_eq!(way(&edges[1..], &[1], 3), None);
        assert_eq!(way(&[(&[1], 2, 5), (&[2], 1, 0), (&[2], 3, 7)], &[1], 3), Some(vec![0, 2]));
    }

    #[test]
    fn a_delta_of_two_bases_needs_both() {
        let edges = [(&[1, 2][..], 3, 10)];
        assert_eq!(way(&edges, &[1], 3), None);
        assert_eq!(way(&edges, &[1, 2], 3), Some(vec![0]));
        let edges = [(&[1][..], 2, 10), (&[2, 9], 3, 10)];
        assert_eq!(way(&edges, &[1, 9], 3), Some(vec![0, 1]));
    }
}
