//! The order of access: what an order profile names comes first.

use sealift_format::num;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;

use sealift_store::NodeKind;
use sealift_store::contents::tasks::{Item, Part};
use sealift_store::kept_order::pieces_of;
use sealift_store::source::Source;

use super::names::{likeness, skeleton};
use crate::order::OrderProfile;

/// How much of a profile matched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderStats {
    /// Paths of the profile.
    pub paths: usize,
    /// Paths that name a regular file of the sources.
    pub matched: usize,
}

/// What is read, in the order of access.
#[derive(Debug, Default)]
pub(super) struct AccessOrder {
    /// First the hot set.
    pub(super) parts: Vec<Part>,
    /// The number of parts in the hot set.
    pub(super) hot_end: usize,
    pub(super) stats: OrderStats,
}

/// A file of the profile.
struct Hot<'a> {
    rank: usize,
    item: Item,
    /// The ranges of a large file that are read first; empty for all of it.
    ranges: &'a [Range<u64>],
}

/// Puts all contents of the sources in order: first what the profile names, in its order, then the others in tree order, including the
/// rest of files of which the profile names only ranges.
pub(super) fn access_order(sources: &[&Source], profile: Option<&OrderProfile>, piece_len: u64) -> AccessOrder {
    let found = profile.map(|profile| find(sources, profile)).unwrap_or_default();
    let in_order = are_pieces_in_order(sources);
    let mut early: HashMap<(usize, u32), Vec<Range<u64>>> = HashMap::new();
    let mut parts = Vec::new();
    for Hot { item, ranges, .. } in &found.hot {
        let pieces = early_pieces(*item, ranges, piece_len, in_order);
        parts.extend(pieces.iter().map(|pieces| Part { item: *item, pieces: pieces.clone() }));
        early.insert((item.source, item.content), pieces);
    }
    let hot_end = parts.len();
    for (source, from) in sources.iter().enumerate() {
        for content in from.contents() {
            let item = Item { source, content, len: from.content_len(content) };
            let early = early.get(&(source, content)).map_or(&[][..], |pieces| pieces);
            let all = 0..item.pieces(piece_len);
            parts.extend(left_of(all, early).into_iter().map(|pieces| Part { item, pieces }));
        }
    }
    AccessOrder { parts, hot_end, stats: found.stats }
}

/// Returns whether the pieces of each file must lie in order: OSTree hashes a file from its start to its end (ostree 7).
pub(super) fn are_pieces_in_order(sources: &[&Source]) -> bool {
    sources.iter().any(|source| matches!(source, Source::Ostree(_)))
}

/// Returns the pieces that contain these ranges of a content, or all pieces if there are no ranges. If pieces must lie in order, adds those before.
fn early_pieces(item: Item, ranges: &[Range<u64>], piece_len: u64, in_order: bool) -> Vec<Range<u64>> {
    match item.pieces(piece_len) {
        1 => pieces_of(&[], piece_len, 1),
        count if in_order => {
            let to_ends: Vec<_> = ranges.iter().map(|range| 0..range.end).collect();
            pieces_of(&to_ends, piece_len, count)
        }
        count => pieces_of(ranges, piece_len, count),
    }
}

/// Returns the parts of `all` outside the ranges of `taken`, which do not overlap.
fn left_of(all: Range<u64>, taken: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut taken = taken.to_vec();
    taken.sort_unstable_by_key(|range| range.start);
    let starts = std::iter::once(all.start).chain(taken.iter().map(|range| range.end));
    let ends = taken.iter().map(|range| range.start).chain(std::iter::once(all.end));
    starts.zip(ends).map(|(start, end)| start..end).filter(|range| !range.is_empty()).collect()
}

/// The files of a profile that the sources have, in its order.
#[derive(Default)]
struct ProfileFiles<'a> {
    hot: Vec<Hot<'a>>,
    stats: OrderStats,
}

fn find<'a>(sources: &[&Source], profile: &'a OrderProfile) -> ProfileFiles<'a> {
    let mut ranks = HashMap::new();
    for (rank, entry) in profile.entries().iter().enumerate() {
        for name in profile.names(entry) {
            ranks.entry(name).or_insert(rank);
        }
    }
    let mut hot: Vec<Hot<'_>> = Vec::new();
    let mut is_hot: Vec<Vec<bool>> = sources.iter().map(|s| vec![false; s.content_count()]).collect();
    let mut matched = vec![false; profile.entries().len()];
    let mut new = Vec::new();
    let mut take = |(source, content): (usize, u32), rank: usize, matched: &mut [bool]| {
        matched[rank] = true;
        if !std::mem::replace(&mut is_hot[source][num::at(content)], true) {
            let item = Item { source, content, len: sources[source].content_len(content) };
            hot.push(Hot { rank, item, ranges: &profile.entries()[rank].ranges });
        }
    };
    for (source, from) in sources.iter().enumerate() {
        for_each_path(from, |path, content| match ranks.get(path) {
            Some(&rank) => take((source, content), rank, &mut matched),
            None if profile.known().is_empty() || profile.known().contains(path) => {}
            None => new.push(((source, content), path.to_owned())),
        });
    }
    let successors = Successors::new(profile, &matched);
    for (file, path) in new {
        successors.rank_of(&path).into_iter().for_each(|rank| take(file, rank, &mut matched));
    }
    hot.sort_by_key(|hot| (hot.rank, hot.item.source, hot.item.content));
    let matched = matched.into_iter().filter(|found| *found).count();
    ProfileFiles { hot, stats: OrderStats { paths: profile.entries().len(), matched } }
}

/// The files of a profile that are gone. A new file takes the place of one whose path differs only in what looks like a version.
struct Successors<'a> {
    profile: &'a OrderProfile,
    gone: HashMap<Vec<u8>, Gone>,
}

/// The ranks of files whose paths differ in what looks like a version.
#[derive(Default)]
struct Gone {
    /// Sorted by path.
    by_start: Vec<usize>,
    /// Sorted by path, compared from the end.
    by_end: Vec<usize>,
}

/// Files compared on either side, in each of the two orders.
const NEAR: usize = 8;

impl<'a> Successors<'a> {
    fn new(profile: &'a OrderProfile, matched: &[bool]) -> Self {
        let mut gone: HashMap<_, Gone> = HashMap::new();
        for (rank, entry) in profile.entries().iter().enumerate().filter(|(rank, _)| !matched[*rank]) {
            gone.entry(skeleton(&entry.path)).or_default().by_start.push(rank);
        }
        let path = |rank: &usize| &profile.entries()[*rank].path;
        for Gone { by_start, by_end } in gone.values_mut() {
            by_end.clone_from(by_start);
            by_start.sort_unstable_by(|a, b| path(a).cmp(path(b)));
            by_end.sort_unstable_by(|a, b| path(a).iter().rev().cmp(path(b).iter().rev()));
        }
        Self { profile, gone }
    }

    /// Returns the rank of the file whose place this one takes: the most similar path of those near it.
    fn rank_of(&self, path: &[u8]) -> Option<usize> {
        let Gone { by_start, by_end } = self.gone.get(&skeleton(path))?;
        let known = |rank: &usize| &self.profile.entries()[*rank].path[..];
        // There may be many numbered files: only those that begin or end most like this one are compared.
        let start = by_start.partition_point(|rank| known(rank) < path);
        let end = by_end.partition_point(|rank| known(rank).iter().rev().lt(path.iter().rev()));
        let near = near(by_start, start).iter().chain(near(by_end, end)).copied();
        // Of equals, the first.
        near.max_by_key(|rank| (likeness(known(rank), path), Reverse(*rank)))
    }
}

/// Returns those next to a place.
fn near(ranks: &[usize], place: usize) -> &[usize] {
    &ranks[place.saturating_sub(NEAR)..ranks.len().min(place + NEAR)]
}

pub(super) fn for_each_path(source: &Source, mut visit: impl FnMut(&[u8], u32)) {
    let tree = source.tree();
    let mut pending = vec![(0, Vec::new())];
    while let Some((directory, prefix)) = pending.pop() {
        for child in tree.children(directory) {
            let mut path: Vec<u8> = prefix.clone();
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend(tree.child_name(child));
            match tree.node(child.node).kind {
                NodeKind::Directory(below) => pending.push((below, path)),
                NodeKind::Regular { content } => visit(&path, content),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::OrderEntry;

    type Pairs<'a> = &'a [(u64, u64)];

    fn ranges(pairs: Pairs<'_>) -> Vec<Range<u64>> {
        pairs.iter().map(|(start, end)| *start..*end).collect()
    }

    fn profile(paths: impl Iterator<Item = String>) -> OrderProfile {
        OrderProfile::new(paths.map(|path| OrderEntry { path: path.into_bytes(), ranges: Vec::new() }).collect())
    }

    #[test]
    fn a_new_file_has_the_place_of_the_most_alike() {
        let paths = ["a-1.0/x-7", "a-2.0/x-1", "a-2.3/x-9", "a-2.4/x-7", "b-1", "b-2", "c-3"];
        let profile = profile(paths.into_iter().map(str::to_owned));
        let mut matched = vec![false; paths.len()];
        matched[6] = true;
        let successors = Successors::new(&profile, &matched);
        let rank_of = |path: &str| successors.rank_of(path.as_bytes());
        assert_eq!(rank_of("a-2.5/x-7"), Some(3));
        assert_eq!(rank_of("a-9.0/x-1"), Some(1));
        assert_eq!(rank_of("a-2.3/x-8"), Some(2));
        assert_eq!(rank_of("b-3"), Some(4), "the first of equals");
        assert_eq!(rank_of("c-4"), None, "it is not gone");
        assert_eq!(rank_of("d-1"), None);
    }

    /// Comparing each with all others would take an hour.
    #[test]
    fn many_numbered_files_have_their_places() {
        let count = 200_000;
        for path in
            [|number, version| format!("{number:06}/v{version}"), |number, version| format!("v{version}/{number:06}")]
        {
            let profile = profile((0..count).map(|number| path(number, 1)));
            let successors = Successors::new(&profile, &vec![false; count]);
            for number in (0..count).step_by(10) {
                assert_eq!(successors.rank_of(path(number, 2).as_bytes()), Some(number));
            }
        }
    }

    #[test]
    fn pieces_of_ranges_are_early_and_the_others_are_left() {
        let item = |len| Item { source: 0, content: 0, len };
        let early = |len, of: Pairs<'_>, in_order| early_pieces(item(len), &ranges(of), 100, in_order);
        let some = [(50, 51), (99, 101), (420, 560)];
        assert_eq!(early(950, &some, false), ranges(&[(0, 2), (4, 6)]));
        assert_eq!(early(950, &some[2..], true), ranges(&[(0, 6)]));
        assert_eq!(early(950, &[], false), ranges(&[(0, 10)]));
        assert_eq!(early(100, &some, false), ranges(&[(0, 1)]));
        assert_eq!(early(450, &some[2..], false), ranges(&[(4, 5)]));
        assert_eq!(early(450, &[(900, 901)], false), []);
        assert_eq!(early(950, &[(420, 560), (50, 51)], false), ranges(&[(4, 6), (0, 1)]), "in the order of use");
        let left = |taken: &[Range<u64>]| left_of(0..10, taken);
        assert_eq!(left(&ranges(&[(4, 6), (0, 2)])), ranges(&[(2, 4), (6, 10)]));
        assert_eq!(left(&ranges(&[(1, 10)])), ranges(&[(0, 1)]));
        assert_eq!(left(&[]), ranges(&[(0, 10)]));
        assert_eq!(left(&early(950, &[], false)), []);
    }
}
