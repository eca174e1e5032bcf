//! Numbers the objects of drafts, and adds them to the layout.

use std::collections::HashMap;

use sealift_format::num::{at, fit};
use sealift_format::{
    Coder, Layout, Made, Object, PartOf, PartRange, Row, Segment, SegmentKind,
};

use super::draft::{DraftRange, DraftSegment, Drafted};
use super::Containers;
use crate::Error;
use crate::pack::sequence::{PackedObject, Sequenced};

/// Adds the recipes to a layout. `row_of` are the numbers of the packed objects: first those of the index, then the leaves.
pub(in crate::pack) fn add_recipes(
    layout: &mut Layout,
    containers: &Containers,
    packed: &Sequenced,
    row_of: &[Option<Row<Object>>],
) -> Result<(), Error> {
    let mut order: Vec<&Drafted> = containers.made.iter().collect();
    // What is made of others comes after them.
    order.sort_by_key(|made| containers.drafts[made.draft].height);
    let recipes = &mut layout.recipes;
    let mut coders: HashMap<Coder, u16> = HashMap::new();
    let mut known = Vec::new();
    let leaves = packed.object_of.last().map_or(&[][..], Vec::as_slice);
    for Drafted { item, draft } in order {
        let packed_object = packed.object_of[item.source][at(item.content)];
        let Some(object) = row_of[packed_object.at()] else { continue };
        if known.contains(&object) {
            continue;
        }
        known.push(object);
        let first = fit(recipes.segments.len(), "the number of segments")?;
        let mut offset = 0;
        for segment in &containers.drafts[*draft].segments {
            let len = segment.len();
            let from = fit(recipes.ranges.len(), "the number of ranges")?;
            for range in segment.ranges() {
                recipes.ranges.push(numbered(*range, leaves, row_of)?);
            }
            let end = fit(recipes.ranges.len(), "the number of ranges")?;
            let kind = match segment {
                DraftSegment::Copied(_) => SegmentKind::Copied(from),
                DraftSegment::Zeros(_) => SegmentKind::Zeros,
                DraftSegment::Encoded { coder, .. } => {
                    let next = fit(coders.len(), "the number of coders")?;
                    let coder = *coders.entry(*coder).or_insert_with(|| {
                        recipes.coders.push(*coder);
                        next
                    });
                    SegmentKind::Encoded { coder, ranges: from..end }
                }
            };
            recipes.segments.push(Segment { offset, len, kind });
            offset += len;
        }
        let end = fit(recipes.segments.len(), "the number of segments")?;
        recipes.made.push(Made { object, segments: first..end });
    }
    Ok(())
}

fn numbered(range: DraftRange, leaves: &[Row<PackedObject>], row_of: &[Option<Row<Object>>]) -> Result<PartRange, Error> {
    let object = leaves.get(at(range.leaf)).and_then(|object| row_of[object.at()]);
    let object = object.ok_or_else(|| Error::Usage("a leaf of a container was not packed".into()))?;
    Ok(PartRange { of: PartOf::Object(object), offset: range.offset, len: range.len })
}
