//! Recipes of a delta bundle: what the bases have is taken from them.

use std::collections::{BTreeSet, HashMap, HashSet};

use sealift_format::num::{at, size};
use sealift_format::{BaseObject, Row};
use sealift_store::contents::tasks::Item;
use sealift_store::source::{OpenCache, Source};

use super::Containers;
use super::base_views::BaseViews;
use super::draft::{DraftPart, DraftRange, DraftSegment};
use crate::pack::sequence::{PackedObject, Sequenced};
use crate::{Error, Progress};

/// How each object is made that is.
pub(in crate::pack) type SegmentsOf = HashMap<Row<PackedObject>, Vec<DraftSegment>>;

/// What the recipes of a delta bundle need.
pub(in crate::pack) struct Over {
    /// The objects and leaves that are made, and of what.
    pub(in crate::pack) segments: SegmentsOf,
    /// The leaves, in the order of their numbers.
    pub(in crate::pack) leaves: Vec<Row<PackedObject>>,
}

impl Containers {
    /// Takes from the bases what they have: blocks as they are stored, objects that `base_ids` names, and views. `carried` are the objects that no base
    /// has, in ascending order.
    ///
    /// # Errors
    /// Returns an error if a source cannot be read.
    pub(in crate::pack) fn take_from(
        &self,
        sources: &[&Source],
        packed: &Sequenced,
        carried: &[Row<PackedObject>],
        views: &BaseViews,
        base_ids: &HashMap<[u8; 32], Row<BaseObject>>,
        progress: &Progress,
    ) -> Result<Over, Error> {
        let leaves = packed.object_of.last().map_or(&[][..], Vec::as_slice);
        let of_object: HashMap<Row<PackedObject>, (Item, usize)> =
            self.made.iter().rev().map(|made| (self.object(packed, &made.item), (made.item, made.draft))).collect();
        let is_made = |object: &&Row<PackedObject>| of_object.contains_key(object);
        let mut pending: Vec<_> = carried.iter().filter(is_made).copied().collect();
        let mut known: HashSet<_> = pending.iter().copied().collect();
        let (mut done, mut found) = (SegmentsOf::new(), BTreeSet::new());
        while let Some(object) = pending.pop() {
            progress.check()?;
            let Some((item, draft)) = of_object.get(&object) else { continue };
            let own = self.drafts[*draft].segments.clone();
            let mut segments = take_blocks(sources[item.source], item.content, own, views)?;
            for range in segments.iter_mut().flat_map(DraftSegment::ranges_mut) {
                let DraftPart::Leaf(leaf) = range.of else { continue };
                let object = leaves[at(leaf)];
                let id = &packed.objects[object.at()].id;
                if let Some(base) = base_ids.get(id) {
                    range.of = DraftPart::Base(*base);
                } else if let Some(view) = views.by_id.get(id) {
                    range.of = DraftPart::View(*view);
                } else if carried.binary_search(&object).is_err() {
                    found.insert(object);
                    if of_object.contains_key(&object) && known.insert(object) {
                        pending.push(object);
                    }
                }
            }
            done.insert(object, segments);
        }
        Ok(Over { segments: done, leaves: found.into_iter().collect() })
    }

    fn object(&self, packed: &Sequenced, item: &Item) -> Row<PackedObject> {
        packed.object_of[item.source][at(item.content)]
    }
}

/// Takes those encoded segments from a base that it has as they are stored.
fn take_blocks(
    source: &Source,
    content: u32,
    segments: Vec<DraftSegment>,
    views: &BaseViews,
) -> Result<Vec<DraftSegment>, Error> {
    if !views.has_blocks() {
        return Ok(segments);
    }
    let opened = source.open(content, &mut OpenCache::default())?;
    let (mut offset, mut stored) = (0, Vec::new());
    let mut taken: Vec<DraftSegment> = Vec::with_capacity(segments.len());
    for segment in segments {
        let len = segment.len();
        let mut known = None;
        if let DraftSegment::Encoded { .. } = segment {
            stored.resize(size(len), 0);
            opened.read_at(&mut stored, offset)?;
            known = views.block(&stored);
        }
        offset += len;
        match (taken.last_mut(), known) {
            (Some(DraftSegment::Copied(before)), Some(range)) if joins(before, &range) => before.len += range.len,
            (_, Some(range)) => taken.push(DraftSegment::Copied(range)),
            (_, None) => taken.push(segment),
        }
    }
    opened.finish()?;
    Ok(taken)
}

fn joins(before: &DraftRange, range: &DraftRange) -> bool {
    before.of == range.of && before.offset + before.len == range.offset
}
