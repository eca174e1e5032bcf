//! The order of access of what is installed: the contents of the bundle's hot set, in the order in which they lie in it. A target keeps it in its
//! install record, and the next delta, or the next bundle that is packed from the target, takes it over.
//!
//! ```text
//! sealift hot set 1
//! index DIGEST
//! OBJECT [START-END]...
//! check BLAKE3
//! ```
//!
//! It is only a hint: a damaged one counts as missing.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::ops::Range;

use sealift_format::{Bundle, Chunk, Holds, Index, Object, Row};

use crate::address::object_at;

/// The contents of the hot set, in the order of access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptOrder {
    parts: Vec<KeptPart>,
}

/// A content of the hot set.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeptPart {
    /// The object of the index.
    pub object: Row<Object>,
    /// Its ranges in the hot set, in the order of access; they neither overlap nor touch. Empty if all of it is in the hot set.
    pub ranges: Vec<Range<u64>>,
}

const TITLE: &str = "sealift hot set 1";

impl KeptOrder {
    /// The name of the file in an install record.
    pub(crate) const FILE: &'static str = "order";
    /// The maximum length of the file, enough for a million contents.
    pub(crate) const LEN_MAX: u64 = 16 << 20;

    /// Returns the order of a bundle's hot set, as far as the bundle carries its contents; `None` if it has no hot set.
    #[must_use]
    pub fn of_bundle(bundle: &Bundle) -> Option<Self> {
        let hot = bundle.layout.landmark.clone()?;
        let pieces = Pieces::of(bundle, &hot);
        let mut parts = Parts::default();
        let is_own = |object: Row<Object>| bundle.layout.recipes.leaf(object).is_none();
        for number in hot {
            let row = Row::new(number)?;
            match &bundle.layout.chunks.get(row.at())?.holds {
                Holds::Group(range) => {
                    let objects = bundle.layout.group(range).iter().filter(|object| is_own(**object));
                    objects.for_each(|object| parts.add(*object, None));
                }
                Holds::Piece => {
                    pieces.of_chunk(row).iter().for_each(|(object, range)| parts.add(*object, range.clone()));
                }
            }
        }
        Some(parts.finish())
    }

    /// The contents, in order.
    #[must_use]
    pub fn parts(&self) -> &[KeptPart] {
        &self.parts
    }

    /// Returns the order after a delta; `self` is that of the base, and `own` that of the delta's hot set. A file takes the place, and the ranges, of
    /// the file at its path in the base; ranges in the delta's hot set are added. A content that is only in the delta's hot set follows the one
    /// before it there. A content that the delta carries outside its hot set loses its place.
    pub(crate) fn carried_over(&self, base: &Index, bundle: &Bundle, own: Option<&Self>) -> Self {
        let is_first: Option<HashSet<_>> = own.map(|own| own.parts.iter().map(|part| part.object).collect());
        let has_lost = |object: Row<Object>| {
            bundle.layout.is_stored(object) && is_first.as_ref().is_some_and(|first| !first.contains(&object))
        };
        let successors = successors(self, base, &bundle.index);
        let piece_len = bundle.head.root().maxima.piece_len();
        let mut order: Vec<KeptPart> = Vec::new();
        let mut known = HashSet::new();
        for part in &self.parts {
            for &object in successors.get(&part.object).into_iter().flatten() {
                let size = bundle.index.object(object).size;
                let ranges = part.ranges.iter().map(|range| range.start..range.end.min(size));
                let ranges: Vec<_> = ranges.filter(|range| !range.is_empty()).collect();
                // A file that became shorter than all of its ranges leaves the order, unless it is one piece: pack stores that one whole.
                let is_used = part.ranges.is_empty() || !ranges.is_empty() || size <= piece_len;
                if is_used && !has_lost(object) && known.insert(object) {
                    order.push(KeptPart { object, ranges });
                }
            }
        }
        let Some(own) = own else { return Self { parts: order } };
        let mut behind: HashMap<Option<Row<Object>>, Vec<KeptPart>> = HashMap::new();
        let (mut before, mut ranges) = (None, HashMap::new());
        for part in &own.parts {
            if known.contains(&part.object) {
                before = Some(part.object);
                ranges.insert(part.object, &part.ranges);
            } else {
                behind.entry(before).or_default().push(part.clone());
            }
        }
        let mut parts = behind.remove(&None).unwrap_or_default();
        for mut part in order {
            let object = part.object;
            // No ranges mean the whole file.
            match ranges.get(&object) {
                Some(brought) if brought.is_empty() => part.ranges.clear(),
                Some(brought) if !part.ranges.is_empty() => {
                    part.ranges = united([&part.ranges[..], &brought[..]].concat());
                }
                _ => {}
            }
            parts.push(part);
            parts.extend(behind.remove(&Some(object)).into_iter().flatten());
        }
        Self { parts }
    }

    /// Returns the file's bytes, for a record of the index with this digest; `None` if they exceed [`Self::LEN_MAX`].
    pub(crate) fn encode(&self, of: &[u8; 32]) -> Option<Vec<u8>> {
        let mut text = format!("{TITLE}\nindex {}\n", blake3::Hash::from_bytes(*of).to_hex());
        for KeptPart { object, ranges } in &self.parts {
            // Writing to a string does not fail.
            let _ = write!(text, "{object}");
            for range in ranges {
                let _ = write!(text, " {}-{}", range.start, range.end);
            }
            text.push('\n');
        }
        let check = blake3::hash(text.as_bytes()).to_hex();
        let bytes = format!("{text}check {check}\n").into_bytes();
        (sealift_format::num::wide(bytes.len()) <= Self::LEN_MAX).then_some(bytes)
    }

    /// Parses what [`KeptOrder::encode`] wrote for this index, which has this digest; `None` for anything else.
    pub(crate) fn parse(bytes: &[u8], of: &[u8; 32], index: &Index) -> Option<Self> {
        let text = str::from_utf8(bytes).ok()?;
        let mut lines = text.lines();
        lines.next().filter(|title| *title == TITLE)?;
        lines.next()?;
        let mut parts = Vec::new();
        for line in lines.take_while(|line| !line.starts_with("check ")) {
            let mut fields = line.split(' ');
            let object = Row::new(fields.next()?.parse().ok()?)?;
            let size = index.objects().get(object.at())?.size;
            let range = |field: &str| {
                let (start, end) = field.split_once('-')?;
                Some(start.parse().ok()?..end.parse().ok()?).filter(|range: &Range<u64>| range.end <= size)
            };
            parts.push(KeptPart { object, ranges: fields.map(range).collect::<Option<_>>()? });
        }
        // Only the exact encoding is accepted, so a flipped bit does not yield another order.
        Some(Self { parts }).filter(|order| order.encode(of).is_some_and(|encoded| encoded == bytes))
    }
}

/// Unites ranges that overlap or touch; the result takes the place of the first of them.
#[must_use]
pub fn united(ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    let mut apart = UsedRanges::default();
    for (place, range) in (0..).zip(ranges) {
        apart.add(range, place);
    }
    apart.in_order()
}

/// Returns the numbers of the pieces in which ranges of a content lie, in the order of the ranges; all of its `count` pieces if there are no ranges.
#[must_use]
pub fn pieces_of(ranges: &[Range<u64>], piece_len: u64, count: u64) -> Vec<Range<u64>> {
    if ranges.is_empty() {
        return united(std::iter::once(0..count).collect());
    }
    united(ranges.iter().map(|range| range.start / piece_len..range.end.div_ceil(piece_len).min(count)).collect())
}

/// Ranges in the order of their first use, united where they overlap or touch.
#[derive(Debug, Default)]
pub struct UsedRanges {
    /// For the start of each range: its end, and the time of its first use.
    by_start: BTreeMap<u64, (u64, usize)>,
}

impl UsedRanges {
    /// Adds a range that was used at this time, and unites it with those that it touches.
    pub fn add(&mut self, range: Range<u64>, time: usize) {
        if range.is_empty() {
            return;
        }
        let Range { start: mut first, mut end } = range;
        let mut since = time;
        while let Some((&start, &(other_end, other))) = self.by_start.range(..=end).next_back()
            && other_end >= first
        {
            self.by_start.remove(&start);
            (first, end, since) = (first.min(start), end.max(other_end), since.min(other));
        }
        self.by_start.insert(first, (end, since));
    }

    /// Returns the ranges, those used first at the front.
    #[must_use]
    pub fn in_order(self) -> Vec<Range<u64>> {
        let mut ranges: Vec<_> = self.by_start.into_iter().map(|(start, (end, since))| (since, start..end)).collect();
        ranges.sort_by_key(|(since, _)| *since);
        ranges.into_iter().map(|(_, range)| range).collect()
    }
}

/// Returns, for each content of an order, the objects of `wanted` at the paths that it has in `base`.
fn successors(order: &KeptOrder, base: &Index, wanted: &Index) -> HashMap<Row<Object>, Vec<Row<Object>>> {
    let mut found: HashMap<Row<Object>, Vec<Row<Object>>> =
        order.parts.iter().map(|part| (part.object, Vec::new())).collect();
    for tree in base.refs() {
        let Some(same) = wanted.find_ref(&tree.name) else { continue };
        for (directory, entry, object) in base.regulars(tree) {
            if let Some(objects) = found.get_mut(&object) {
                objects.extend(object_at(wanted, same, &base.path(directory, entry)));
            }
        }
    }
    found
}

/// Collects parts in the order in which chunks bring them, one for each object.
#[derive(Default)]
struct Parts {
    parts: Vec<KeptPart>,
    place_of: HashMap<Row<Object>, usize>,
}

impl Parts {
    /// Adds all of an object, or a range of it.
    fn add(&mut self, object: Row<Object>, range: Option<Range<u64>>) {
        let next = self.parts.len();
        let place = *self.place_of.entry(object).or_insert(next);
        if place == next {
            self.parts.push(KeptPart { object, ranges: range.into_iter().collect() });
        } else if let (Some(range), Some(part)) = (range, self.parts.get_mut(place)) {
            part.ranges.push(range);
        }
    }

    fn finish(mut self) -> KeptOrder {
        for part in &mut self.parts {
            part.ranges = united(std::mem::take(&mut part.ranges));
        }
        KeptOrder { parts: self.parts }
    }
}

/// An object, and the range of one of its pieces, unless all of the object is in the hot set.
type Part = (Row<Object>, Option<Range<u64>>);

/// The pieces in the hot set, by their chunks.
struct Pieces(HashMap<Row<Chunk>, Vec<Part>>);

impl Pieces {
    fn of(bundle: &Bundle, hot: &Range<u32>) -> Self {
        let piece_len = bundle.head.root().maxima.piece_len();
        let mut by_chunk: HashMap<_, Vec<Part>> = HashMap::new();
        let is_leaf = |object: Row<Object>| bundle.layout.recipes.leaf(object).is_some();
        for large in bundle.layout.large.iter().filter(|large| !is_leaf(large.object)) {
            let pieces = bundle.layout.pieces_of(large.object);
            let size = bundle.index.object(large.object).size;
            let is_whole = pieces.iter().filter_map(|piece| piece.chunk).all(|chunk| hot.contains(&chunk.number()));
            for (number, piece) in (0u64..).zip(pieces) {
                let Some(chunk) = piece.chunk.filter(|chunk| hot.contains(&chunk.number())) else { continue };
                let start = number * piece_len;
                let range = (!is_whole).then(|| start..size.min(start + piece_len));
                by_chunk.entry(chunk).or_default().push((large.object, range));
            }
        }
        Self(by_chunk)
    }

    fn of_chunk(&self, chunk: Row<Chunk>) -> &[Part] {
        self.0.get(&chunk).map_or(&[], |parts| parts)
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "a list of ranges may have one")]
mod tests {
    use super::*;

    type Ranges = &'static [Range<u64>];

    #[test]
    fn ranges_that_touch_have_the_place_of_the_first() {
        let cases: [(Ranges, Ranges); 6] = [
            (&[8..10, 0..4], &[8..10, 0..4]),
            (&[8..10, 0..4, 20..30, 4..8], &[0..10, 20..30]),
            (&[20..30, 8..10, 0..4, 0..9], &[20..30, 0..10]),
            (&[0..4, 5..5, 9..10, 2..3], &[0..4, 9..10]),
            (&[5..6, 1..2, 3..4, 0..9], &[0..9]),
            (&[], &[]),
        ];
        for (used, apart) in cases {
            assert_eq!(united(used.to_vec()), apart, "{used:?}");
        }
    }

    #[test]
    fn an_order_that_is_too_long_has_no_encoding() {
        let part = KeptPart { object: Row::FIRST, ranges: vec![1_000_000_000_000..2_000_000_000_000] };
        let encode = |count| KeptOrder { parts: vec![part.clone(); count] }.encode(&[0; 32]);
        let len = |count| encode(count).map(|bytes| bytes.len());
        let (empty, line) = (len(0).expect("it is short"), len(1).expect("it is short") - len(0).expect("it is short"));
        let fits = (16 << 20) - empty;
        assert_eq!(len(fits / line), Some(empty + fits / line * line));
        assert_eq!(len(fits / line + 1), None);
    }

    #[test]
    fn pieces_lie_in_the_order_of_ranges() {
        assert_eq!(pieces_of(&[420..560, 50..51], 100, 10), [4..6, 0..1]);
        assert_eq!(pieces_of(&[900..901, 10..450], 100, 3), [0..3]);
        assert_eq!(pieces_of(&[], 100, 3), [0..3]);
    }
}
