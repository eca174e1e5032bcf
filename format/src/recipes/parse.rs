//! Parses the section strictly (recipes 3).

use alloc::vec::Vec;
use core::ops::Range;

use super::{
    CODED_MAX, Coder, DEPTH_MAX, MAKES, Made, PartOf, PartRange, RecipeCodec, Recipes, Segment, SegmentKind, View,
};
use crate::bytes::{Planes, Reader};
use crate::error::layout_row;
use crate::index::Object;
use crate::num::{at, fit};
use crate::{Error, Row};

/// How many there are of each kind of what ranges name (recipes 3.3).
struct Counts {
    own: u32,
    leaves: u32,
    base: u32,
    views: u32,
}

impl Recipes {
    /// Parses the section of a layout for `own` objects; those of the bases are `base`, if it is a delta bundle's.
    ///
    /// # Errors
    /// Returns an error if it does not conform to recipes 3. What ranges of base objects exceed is not known yet.
    pub(crate) fn parse(mut reader: Reader<'_>, own: &[Object], base: Option<u32>) -> Result<Self, Error> {
        let leaves = parse_leaves(&mut reader, own)?;
        let (views, recipes) = (reader.u32()?, reader.count32()?);
        if views == 0 && recipes == 0 || views > 0 && base.is_none() {
            return Err(reader.malformed("there is no recipe, or a view without a base"));
        }
        let counts = Counts {
            own: fit(own.len(), "the number of objects")?,
            leaves: fit(leaves.len(), "the number of leaves")?,
            base: base.unwrap_or_default(),
            views,
        };
        let objects = reader.planes::<4>(recipes)?.u32s();
        let of = reader.planes::<4>(at(views).saturating_add(recipes))?;
        let mut found = Self { first_leaf: counts.own, base_objects: counts.base, leaves, ..Self::default() };
        // The length is known from the segments: without these, no range counts as passing it.
        found.views.resize(at(views), View { segments: 0..0, len: u64::MAX });
        for (row, object) in objects.enumerate() {
            let object = Row::new(object).ok_or_else(|| layout_row("a recipe is of no object", row))?;
            found.made.push(Made { object, segments: 0..0 });
        }
        if MAKES {
            found.parse_segments(reader, of, &counts)?;
        }
        found.number()?;
        if MAKES {
            found.measure(own)?;
            found.check_depths()?;
            found.check_used()?;
        }
        Ok(found)
    }

    /// Reads what makes views and objects.
    fn parse_segments(&mut self, mut reader: Reader<'_>, of: Planes<'_, 4>, counts: &Counts) -> Result<(), Error> {
        let of_all = self.views.iter_mut().map(|view| &mut view.segments);
        let mut end = 0_u32;
        for ((row, count), segments) in
            of.u32s().enumerate().zip(of_all.chain(self.made.iter_mut().map(|made| &mut made.segments)))
        {
            let next = end.checked_add(count).filter(|_| count > 0);
            let next = next.ok_or_else(|| layout_row("a recipe or view has no segment, or there are too many", row))?;
            *segments = core::mem::replace(&mut end, next)..next;
        }
        self.segments = parse_segments(&mut reader, at(end))?;
        self.parse_ranges(&mut reader, counts)?;
        for row in 0..reader.u16()? {
            let coder = Coder::parse(&mut reader)?;
            if self.coders.last().is_some_and(|last| *last >= coder) {
                return Err(layout_row("coders do not ascend", row.into()));
            }
            self.coders.push(coder);
        }
        reader.finish()
    }

    /// Notes which object each recipe is of.
    ///
    /// # Errors
    /// Returns an error if an object does not exist or has two.
    pub(crate) fn number(&mut self) -> Result<(), Error> {
        self.rows = alloc::vec![None; at(self.first_leaf) + self.leaves.len()];
        for (row, made) in Row::all(&self.made) {
            match self.rows.get_mut(made.object.at()) {
                Some(place @ None) => *place = Some(row),
                _ => return Err(layout_row("a recipe is of an object that does not exist, or has another", row.at())),
            }
        }
        Ok(())
    }

    /// Reads the columns of the ranges.
    fn parse_ranges(&mut self, reader: &mut Reader<'_>, counts: &Counts) -> Result<(), Error> {
        let mut total = 0_u32;
        for segment in &mut self.segments {
            let count = segment.kind.inputs();
            segment.kind.set_first(total);
            let next = total.checked_add(count);
            total = next.ok_or_else(|| layout_row("there are too many ranges", 0))?;
        }
        let objects = reader.planes::<4>(at(total))?.u32s();
        let offsets = reader.planes::<8>(at(total))?.u64s();
        let lens = reader.planes::<8>(at(total))?.u64s();
        for (row, ((object, offset), len)) in objects.zip(offsets).zip(lens).enumerate() {
            let of = counts.part(object).ok_or_else(|| layout_row("a range is of nothing", row))?;
            self.ranges.push(PartRange { of, offset, len });
        }
        Ok(())
    }

    /// Returns the segments of view or recipe `number`, the views being first.
    fn segments_of(&self, number: usize) -> Range<u32> {
        match self.views.get(number) {
            Some(view) => view.segments.clone(),
            None => self.made[number - self.views.len()].segments.clone(),
        }
    }

    /// Returns an object of the index or a leaf.
    fn object<'a>(&'a self, own: &'a [Object], object: Row<Object>) -> Option<&'a Object> {
        object.get(own).or_else(|| self.leaf(object))
    }

    /// Sets the place of each segment and the length of each view, and checks lengths and the ends of ranges.
    fn measure(&mut self, own: &[Object]) -> Result<(), Error> {
        for number in 0..self.views.len() + self.made.len() {
            let of = self.segments_of(number);
            let made = number.checked_sub(self.views.len()).map(|row| self.made[row].object);
            let size = made.and_then(|object| self.object(own, object)).map(|object| object.size);
            let mut end = 0_u64;
            for row in at(of.start)..at(of.end) {
                let len = self.segment_len(own, number, row)?;
                let segment = &mut self.segments[row];
                (segment.offset, segment.len) = (end, len);
                end = end
                    .checked_add(len)
                    .ok_or_else(|| layout_row("the segments are longer than an object can be", row))?;
            }
            match self.views.get_mut(number) {
                Some(view) => view.len = end,
                None if size == Some(end) => {}
                None => return Err(layout_row("a recipe's segments are not as long as its object", number)),
            }
        }
        Ok(())
    }

    /// Returns the length of a segment of view or recipe `number`.
    fn segment_len(&self, own: &[Object], number: usize, row: usize) -> Result<u64, Error> {
        let segment = &self.segments[row];
        let mut input = 0_u64;
        for range in self.ranges(segment) {
            let end = range.offset.checked_add(range.len).filter(|_| range.len > 0);
            let len = match range.of {
                PartOf::Object(_) if number < self.views.len() => {
                    return Err(layout_row("a view uses an object that no base has", row));
                }
                PartOf::Object(object) => self.object(own, object).map(|object| object.size),
                PartOf::Base(_) => Some(u64::MAX),
                PartOf::View(view) if view.at() < number => view.get(&self.views).map(|view| view.len),
                PartOf::View(_) => None,
            };
            if !matches!((end, len), (Some(end), Some(len)) if end <= len) {
                return Err(layout_row("a range is empty, passes the end of its object, or is of a later view", row));
            }
            input = input.saturating_add(range.len);
        }
        let is_view = number < self.views.len();
        let fits = |len: u64| (1..=CODED_MAX).contains(&len);
        match segment.kind {
            SegmentKind::Copied(_) => Ok(input),
            SegmentKind::Zeros if segment.len > 0 => Ok(segment.len),
            SegmentKind::Encoded { coder, .. } if !is_view && usize::from(coder) < self.coders.len() => {
                if fits(input) && fits(segment.len) {
                    Ok(segment.len)
                } else {
                    Err(layout_row("what a segment encodes is too long", row))
                }
            }
            SegmentKind::Decoded { .. } if is_view => {
                if fits(input) && fits(segment.len) {
                    Ok(segment.len)
                } else {
                    Err(layout_row("what a segment decodes is too long", row))
                }
            }
            SegmentKind::Zeros | SegmentKind::Encoded { .. } | SegmentKind::Decoded { .. } => Err(layout_row(
                "a segment is empty, has an unknown coder, or is of a kind that is not allowed there",
                row,
            )),
        }
    }

    /// Checks that an object with a recipe is only used after it, and how many use each other.
    fn check_depths(&self) -> Result<(), Error> {
        let mut views: Vec<u8> = Vec::with_capacity(self.views.len());
        for (row, view) in self.views.iter().enumerate() {
            let used = self.segments(&view.segments).iter().flat_map(|segment| self.ranges(segment));
            let below = used.map(|range| match range.of {
                PartOf::View(view) => views.get(view.at()).copied().unwrap_or(DEPTH_MAX),
                PartOf::Object(_) | PartOf::Base(_) => 0,
            });
            views.push(depth_over(below, row)?);
        }
        // By row; 0 for those that come later.
        let mut depths = alloc::vec![0_u8; self.made.len()];
        for (row, made) in self.made.iter().enumerate() {
            let used = self.segments(&made.segments).iter().flat_map(|segment| self.ranges(segment));
            let below = used.map(|range| match range.of {
                PartOf::Object(object) => {
                    match self.rows.get(object.at()).copied().flatten().map(|row| depths[row.at()]) {
                        None => 0,
                        Some(0) => DEPTH_MAX,
                        Some(depth) => depth,
                    }
                }
                PartOf::Base(_) | PartOf::View(_) => 0,
            });
            depths[row] = depth_over(below, row)?;
        }
        Ok(())
    }

    /// Checks that leaves and coders are used. Whether a view is may depend on the prefixes.
    fn check_used(&self) -> Result<(), Error> {
        let mut used = alloc::vec![false; self.leaves.len()];
        for range in &self.ranges {
            if let PartOf::Object(object) = range.of
                && let Some(leaf) = object.number().checked_sub(self.first_leaf)
                && let Some(used) = used.get_mut(at(leaf))
            {
                *used = true;
            }
        }
        if let Some(row) = used.iter().position(|used| !used) {
            return Err(layout_row("a leaf is in no recipe", row));
        }
        let mut is_used = alloc::vec![false; self.coders.len()];
        for segment in &self.segments {
            if let SegmentKind::Encoded { coder, .. } = segment.kind {
                is_used[usize::from(coder)] = true;
            }
        }
        match is_used.iter().position(|is_used| !is_used) {
            Some(row) => Err(layout_row("a coder is not used", row)),
            None => Ok(()),
        }
    }
}

impl Counts {
    /// Returns what a number of section 3.3 names.
    fn part(&self, number: u32) -> Option<PartOf> {
        let objects = self.own.checked_add(self.leaves)?;
        let Some(beyond) = number.checked_sub(objects) else { return Row::new(number).map(PartOf::Object) };
        match beyond.checked_sub(self.base) {
            None => Row::new(beyond).map(PartOf::Base),
            Some(view) if view < self.views => Row::new(view).map(PartOf::View),
            Some(_) => None,
        }
    }
}

/// Returns the depth over those of what is used.
fn depth_over(below: impl Iterator<Item = u8>, row: usize) -> Result<u8, Error> {
    match below.max().unwrap_or(0) {
        deepest if deepest < DEPTH_MAX => Ok(deepest + 1),
        _ => Err(layout_row("a recipe or view uses a later one, or too many are made of each other", row)),
    }
}

/// Reads the columns of the segments. Their places, and the first of their ranges, are not known yet.
fn parse_segments(reader: &mut Reader<'_>, count: usize) -> Result<Vec<Segment>, Error> {
    let kinds = reader.take(count)?;
    let number = |wanted: u8| kinds.iter().filter(|kind| **kind == wanted).count();
    let (zeros, encoded, decoded) = (number(1), number(2), number(3));
    let mut zeros = reader.planes::<8>(zeros)?.u64s();
    let mut coders = reader.planes::<2>(encoded)?.u16s();
    let mut encoded_lens = reader.planes::<4>(encoded)?.u32s();
    let mut inputs = reader.planes::<4>(encoded)?.u32s();
    let mut codecs = reader.take(decoded)?.iter();
    let mut decoded_lens = reader.planes::<4>(decoded)?.u32s();
    let mut segments = Vec::with_capacity(count);
    for (row, kind) in kinds.iter().enumerate() {
        let (len, kind) = match kind {
            0 => (0, SegmentKind::Copied(0)),
            1 => (zeros.next().unwrap_or_default(), SegmentKind::Zeros),
            2 => {
                let inputs = inputs.next().unwrap_or_default();
                if inputs == 0 {
                    return Err(layout_row("a segment encodes nothing", row));
                }
                let coder = coders.next().unwrap_or_default();
                let len = encoded_lens.next().unwrap_or_default();
                (len.into(), SegmentKind::Encoded { coder, ranges: 0..inputs })
            }
            3 => {
                let codec = RecipeCodec::of(codecs.next().copied().unwrap_or_default())?;
                (decoded_lens.next().unwrap_or_default().into(), SegmentKind::Decoded { codec, range: 0 })
            }
            _ => return Err(layout_row("a segment is of an unknown kind", row)),
        };
        segments.push(Segment { offset: 0, len, kind });
    }
    Ok(segments)
}

impl SegmentKind {
    /// Returns the number of its ranges.
    fn inputs(&self) -> u32 {
        match self {
            Self::Zeros => 0,
            Self::Copied(_) | Self::Decoded { .. } => 1,
            Self::Encoded { ranges, .. } => ranges.end.saturating_sub(ranges.start),
        }
    }

    /// Sets the first of its ranges.
    fn set_first(&mut self, first: u32) {
        match self {
            Self::Zeros => {}
            Self::Copied(range) | Self::Decoded { range, .. } => *range = first,
            Self::Encoded { ranges, .. } => *ranges = first..first.saturating_add(ranges.end),
        }
    }
}

/// Reads the leaves, whose ids must differ from each other and from those of `own`.
fn parse_leaves(reader: &mut Reader<'_>, own: &[Object]) -> Result<Vec<Object>, Error> {
    let count = reader.count32()?;
    let sizes = reader.planes::<8>(count)?.u64s();
    let mut leaves = Vec::with_capacity(count);
    for (row, size) in sizes.enumerate() {
        if size == 0 {
            return Err(layout_row("a leaf is empty", row));
        }
        leaves.push(Object { size, id: [0; 32] });
    }
    for leaf in &mut leaves {
        leaf.id = reader.array()?;
    }
    let mut ids: Vec<&[u8; 32]> = leaves.iter().map(|leaf| &leaf.id).collect();
    ids.sort_unstable();
    let is_known = |object: &Object| ids.binary_search(&&object.id).is_ok();
    if ids.windows(2).any(|pair| pair[0] == pair[1]) || own.iter().any(is_known) {
        return Err(layout_row("a leaf is there twice, or is an object of the index", 0));
    }
    Ok(leaves)
}
