//! Writes the section (recipes 3).

use alloc::vec::Vec;

use super::{PartOf, Recipes, Segment, SegmentKind};
use crate::Error;
use crate::bytes::{put_planes, put_u32s};
use crate::num::fit;

impl Recipes {
    /// Returns the section's bytes.
    ///
    /// # Errors
    /// Returns an error if there is more of something than the format can store.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, Error> {
        let le = u64::to_le_bytes;
        let leaves: u32 = fit(self.leaves.len(), "the number of leaves")?;
        let mut out = leaves.to_le_bytes().to_vec();
        put_planes(&mut out, self.leaves.iter().map(|leaf| le(leaf.size)));
        out.extend(self.leaves.iter().flat_map(|leaf| leaf.id));
        out.extend(fit::<u32>(self.views.len(), "the number of views")?.to_le_bytes());
        out.extend(fit::<u32>(self.made.len(), "the number of recipes")?.to_le_bytes());
        put_u32s(&mut out, self.made.iter().map(|made| made.object.number()));
        let of = self.views.iter().map(|view| &view.segments).chain(self.made.iter().map(|made| &made.segments));
        put_u32s(&mut out, of.map(|segments| segments.end - segments.start));
        out.extend(self.segments.iter().map(|segment| segment.kind.number()));
        let len_of = |segment: &Segment| {
            let len = segment.len;
            u32::try_from(len).map_err(|_| Error::TooLarge {
                what: "the length of a segment",
                len,
                max: u32::MAX.into(),
            })
        };
        let kinds = |wanted: u8| self.segments.iter().filter(move |segment| segment.kind.number() == wanted);
        put_planes(&mut out, kinds(1).map(|segment| le(segment.len)));

        let (mut coders, mut encoded, mut inputs) = (Vec::new(), Vec::new(), Vec::new());
        for segment in kinds(2) {
            if let SegmentKind::Encoded { coder, ranges } = &segment.kind {
                coders.push(*coder);
                encoded.push(len_of(segment)?);
                inputs.push(ranges.end - ranges.start);
            }
        }
        put_planes(&mut out, coders.iter().map(|coder| coder.to_le_bytes()));
        put_u32s(&mut out, encoded.iter().copied());
        put_u32s(&mut out, inputs.iter().copied());

        let mut decoded = Vec::new();
        for segment in kinds(3) {
            if let SegmentKind::Decoded { codec, .. } = segment.kind {
                out.push(codec.number());
                decoded.push(len_of(segment)?);
            }
        }
        put_u32s(&mut out, decoded.iter().copied());

        let number = |of: PartOf| match of {
            PartOf::Object(object) => object.number(),
            PartOf::Base(object) => self.first_leaf.wrapping_add(leaves).wrapping_add(object.number()),
            PartOf::View(view) => {
                let before = self.first_leaf.wrapping_add(leaves).wrapping_add(self.base_objects);
                before.wrapping_add(view.number())
            }
        };
        put_u32s(&mut out, self.ranges.iter().map(|range| number(range.of)));
        put_planes(&mut out, self.ranges.iter().map(|range| le(range.offset)));
        put_planes(&mut out, self.ranges.iter().map(|range| le(range.len)));
        out.extend(fit::<u16>(self.coders.len(), "the number of coders")?.to_le_bytes());
        self.coders.iter().for_each(|coder| coder.encode(&mut out));
        Ok(out)
    }
}

impl SegmentKind {
    fn number(&self) -> u8 {
        match self {
            Self::Copied(_) => 0,
            Self::Zeros => 1,
            Self::Encoded { .. } => 2,
            Self::Decoded { .. } => 3,
        }
    }
}
