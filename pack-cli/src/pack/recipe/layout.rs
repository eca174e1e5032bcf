//! Numbers the objects of drafts, and adds them to the layout.

use std::collections::{BTreeSet, HashMap, HashSet};

use sealift_format::num::{at, fit};
use sealift_format::{
    BaseObject, Coder, Layout, Made, Object, PartOf, PartRange, Recipes, Row, Segment, SegmentKind, View,
};

use super::base_views::{BaseViews, ViewSegment};
use super::draft::{DraftPart, DraftRange, DraftSegment, Drafted};
use super::over::SegmentsOf;
use super::{Containers, Over};
use crate::Error;
use crate::pack::sequence::Sequenced;

const SEGMENTS: &str = "the number of segments";
const RANGES: &str = "the number of ranges";

/// The numbers that objects and views have in the layout.
pub(in crate::pack) struct Numbers<'a> {
    pub(in crate::pack) packed: &'a Sequenced,
    /// Of the packed objects that the bundle stores or makes, those of the index before the leaves.
    pub(in crate::pack) row_of: &'a [Option<Row<Object>>],
    /// Of the views that are used.
    pub(in crate::pack) views: HashMap<u32, Row<View>>,
}

impl Numbers<'_> {
    fn range(&self, range: DraftRange) -> Result<PartRange, Error> {
        let leaves = self.packed.object_of.last().map_or(&[][..], Vec::as_slice);
        let of = match range.of {
            DraftPart::Leaf(leaf) => {
                leaves.get(at(leaf)).and_then(|object| self.row_of[object.at()]).map(PartOf::Object)
            }
            DraftPart::Base(object) => Some(PartOf::Base(object)),
            DraftPart::View(view) => self.views.get(&view).copied().map(PartOf::View),
        };
        let of = of.ok_or_else(|| Error::Usage("a part of a container was not packed".into()))?;
        Ok(PartRange { of, offset: range.offset, len: range.len })
    }
}

/// Adds the recipes of these objects to a layout.
pub(in crate::pack) fn add_recipes(
    layout: &mut Layout,
    containers: &Containers,
    segments_of: &SegmentsOf,
    numbers: &Numbers<'_>,
) -> Result<(), Error> {
    let mut order: Vec<&Drafted> = containers.made.iter().collect();
    // What is made of others comes after them.
    order.sort_by_key(|made| containers.drafts[made.draft].height);
    let recipes = &mut layout.recipes;
    let used = segments_of.values().flatten().filter_map(|segment| match segment {
        DraftSegment::Encoded { coder, .. } => *coder,
        DraftSegment::Copied(_) | DraftSegment::Zeros(_) => None,
    });
    recipes.coders = used.collect::<BTreeSet<Coder>>().into_iter().collect();
    let mut known = HashSet::new();
    for Drafted { item, .. } in order {
        let packed = numbers.packed.object_of[item.source][at(item.content)];
        let (Some(object), Some(segments)) = (numbers.row_of[packed.at()], segments_of.get(&packed)) else { continue };
        if !known.insert(object) {
            continue;
        }
        let first = fit(recipes.segments.len(), SEGMENTS)?;
        let mut offset = 0;
        for segment in segments {
            let from = fit(recipes.ranges.len(), RANGES)?;
            for range in segment.ranges() {
                recipes.ranges.push(numbers.range(*range)?);
            }
            let end = fit(recipes.ranges.len(), RANGES)?;
            let kind = match segment {
                DraftSegment::Copied(_) => SegmentKind::Copied(from),
                DraftSegment::Zeros(_) => SegmentKind::Zeros,
                DraftSegment::Encoded { coder: None, .. } => {
                    return Err(Error::Usage("a block of a base was not found in it again".into()));
                }
                DraftSegment::Encoded { coder: Some(coder), .. } => {
                    let coder = recipes.coders.partition_point(|known| known < coder);
                    SegmentKind::Encoded { coder: fit(coder, "the number of coders")?, ranges: from..end }
                }
            };
            let len = segment.len();
            recipes.segments.push(Segment { offset, len, kind });
            offset += len;
        }
        let end = fit(recipes.segments.len(), SEGMENTS)?;
        recipes.made.push(Made { object, segments: first..end });
    }
    Ok(())
}

impl BaseViews {
    /// Returns the views that recipes use, and `others`, with the views that these are made of, in order.
    pub(in crate::pack) fn used(&self, over: &Over, others: impl Iterator<Item = u32>) -> Vec<u32> {
        let segments = over.segments.values().flatten();
        let view = |range: &DraftRange| if let DraftPart::View(view) = range.of { Some(view) } else { None };
        let mut pending: Vec<u32> = segments.flat_map(DraftSegment::ranges).filter_map(view).chain(others).collect();
        let mut used = HashSet::new();
        while let Some(number) = pending.pop() {
            if used.insert(number) {
                let segments = &self.views[at(number)].segments;
                pending.extend(segments.iter().filter_map(ViewSegment::range).filter_map(view));
            }
        }
        let mut used: Vec<u32> = used.into_iter().collect();
        used.sort_unstable();
        used
    }

    /// Returns these views, in ascending order, with nothing else, over so many objects of bases.
    ///
    /// # Errors
    /// Returns an error if there are more than the format can store.
    pub(in crate::pack) fn recipes(
        &self,
        used: &[u32],
        numbers: &Numbers<'_>,
        base_objects: u32,
    ) -> Result<Recipes, Error> {
        let mut recipes = Recipes::over(base_objects);
        for number in used {
            let view = &self.views[at(*number)];
            let first = fit(recipes.segments.len(), SEGMENTS)?;
            let mut offset = 0;
            for segment in &view.segments {
                let range = fit(recipes.ranges.len(), RANGES)?;
                if let Some(of) = segment.range() {
                    recipes.ranges.push(numbers.range(*of)?);
                }
                let kind = match segment {
                    ViewSegment::Copied(_) => SegmentKind::Copied(range),
                    ViewSegment::Zeros(_) => SegmentKind::Zeros,
                    ViewSegment::Decoded { codec, .. } => SegmentKind::Decoded { codec: *codec, range },
                };
                let len = segment.len();
                recipes.segments.push(Segment { offset, len, kind });
                offset += len;
            }
            let segments = first..fit(recipes.segments.len(), SEGMENTS)?;
            recipes.views.push(View { segments, len: view.len });
        }
        Ok(recipes)
    }

    /// Returns all views, with the numbers that they have here.
    ///
    /// # Errors
    /// As [`Self::recipes`].
    pub(in crate::pack) fn all(&self, packed: &Sequenced, base_objects: u32) -> Result<Recipes, Error> {
        let used: Vec<u32> = (0..).take(self.views.len()).collect();
        let views = used.iter().filter_map(|view| Some((*view, Row::new(*view)?))).collect();
        self.recipes(&used, &Numbers { packed, row_of: &[], views }, base_objects)
    }
}

/// Returns the number that a view has among the objects of the bases, if it is one.
pub(in crate::pack) fn view_of(object: Row<BaseObject>, base_objects: u32) -> Option<u32> {
    object.number().checked_sub(base_objects)
}
