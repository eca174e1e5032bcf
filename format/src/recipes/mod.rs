//! How objects are made of others (recipes 3).

mod codec;
mod coder;
mod encode;
mod parse;
mod sums;
#[cfg(test)]
mod tests;

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::ops::Range;

use crate::base_object::BaseObject;
use crate::index::Object;
use crate::num::at;
use crate::row::{Row, Table};

pub use codec::Codec as RecipeCodec;
pub use coder::{Bzip2, Coder, Encoder, Filled, Lz4, Xz, Zlib, Zstd, ZstdStream};
pub use sums::RecipeSums;

/// Whether this reader makes objects. The browser's module does not, since it is to be small: of recipes it reads which objects have one, and the leaves
/// (recipes 1).
pub(crate) const MAKES: bool = cfg!(not(target_arch = "wasm32"));

/// The longest input or output of one segment that is encoded or decoded, in bytes (recipes 3.4).
pub const CODED_MAX: u64 = 1 << 27;

/// The largest depth of recipes that use each other, and of views (recipes 3.4).
pub const DEPTH_MAX: u8 = 4;

/// The recipes of a layout, and what only they use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recipes {
    /// The number of the first leaf: that of the objects of the index or, in a delta bundle that is not completed, of the carried objects.
    pub first_leaf: u32,
    /// The number of objects of the bases.
    pub base_objects: u32,
    /// Objects that the index does not have. They are numbered after those of the index.
    pub leaves: Vec<Object>,
    /// The byte strings that are made of objects of the bases.
    pub views: Vec<View>,
    /// The objects that are made, each after those that it uses.
    pub made: Vec<Made>,
    /// The segments of all views, and then of all recipes.
    pub segments: Vec<Segment>,
    /// The ranges of all segments.
    pub ranges: Vec<PartRange>,
    /// The encoders, with their parameters.
    pub coders: Vec<Coder>,
    /// For each object and leaf that may have a recipe, its row of `made`.
    pub(crate) rows: Vec<Option<Row<Made>>>,
}

/// A byte string that is made of objects of the bases (recipes 3.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Its range of [`Recipes::segments`].
    pub segments: Range<u32>,
    /// Its length in bytes.
    pub len: u64,
}

impl Table for View {
    const COUNT: &'static str = "the number of views";
}

/// An object with its recipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// The object.
    pub object: Row<Object>,
    /// Its range of [`Recipes::segments`].
    pub segments: Range<u32>,
}

impl Table for Made {
    const COUNT: &'static str = "the number of recipes";
}

/// A part of an object or view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Where it begins in the object or view, in bytes.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u64,
    /// What its bytes are.
    pub kind: SegmentKind,
}

/// What the bytes of a segment are (recipes 3.4).
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "recipes 3.4 lists them")]
pub enum SegmentKind {
    /// Those of this row of [`Recipes::ranges`].
    Copied(u32),
    /// Zeros.
    Zeros,
    /// What a row of [`Recipes::coders`] makes of the bytes of these ranges.
    Encoded {
        /// The row.
        coder: u16,
        /// The ranges, joined.
        ranges: Range<u32>,
    },
    /// What a range decodes to.
    Decoded {
        /// The form of the range's bytes.
        codec: RecipeCodec,
        /// The range.
        range: u32,
    },
}

/// A range of what recipes and views may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartRange {
    /// What has it.
    pub of: PartOf,
    /// Its first byte.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u64,
}

/// What recipes and views may use (recipes 3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::exhaustive_enums, reason = "recipes 3.3 lists them")]
pub enum PartOf {
    /// An object of the index, a carried object, or a leaf.
    Object(Row<Object>),
    /// An object of a base.
    Base(Row<BaseObject>),
    /// A view.
    View(Row<View>),
}

impl Recipes {
    /// Returns no recipes, of a bundle whose bases have so many objects.
    #[must_use]
    pub fn over(base_objects: u32) -> Self {
        Self { base_objects, ..Self::default() }
    }

    /// Returns whether there is neither a recipe nor a view.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.views.is_empty() && self.made.is_empty()
    }

    /// Returns a leaf.
    #[must_use]
    pub fn leaf(&self, object: Row<Object>) -> Option<&Object> {
        self.leaves.get(at(object.number().checked_sub(self.first_leaf)?))
    }

    /// Returns the view that a prefix names by a number beyond those of the base's objects (recipes 3.5).
    #[must_use]
    pub fn view_of(&self, object: Row<BaseObject>) -> Option<&View> {
        self.views.get(at(object.number().checked_sub(self.base_objects)?))
    }

    /// Returns an object's recipe.
    #[must_use]
    pub fn of(&self, object: Row<Object>) -> Option<&Made> {
        self.rows.get(object.at()).copied().flatten()?.get(&self.made)
    }

    /// Returns the objects that are stored and of which an object is made, in ascending order: itself, if it has no recipe.
    #[must_use]
    pub fn stored_of(&self, object: Row<Object>) -> Vec<Row<Object>> {
        let (mut pending, mut found) = (alloc::vec![object], BTreeSet::new());
        let mut seen = BTreeSet::new();
        while let Some(object) = pending.pop() {
            let Some(made) = self.of(object) else {
                found.insert(object);
                continue;
            };
            for range in self.segments(&made.segments).iter().flat_map(|segment| self.ranges(segment)) {
                if let PartOf::Object(object) = range.of
                    && seen.insert(object)
                {
                    pending.push(object);
                }
            }
        }
        found.into_iter().collect()
    }

    /// Returns segments.
    #[must_use]
    pub fn segments(&self, of: &Range<u32>) -> &[Segment] {
        self.segments.get(at(of.start)..at(of.end)).unwrap_or_default()
    }

    /// Returns the ranges that a segment uses.
    #[must_use]
    pub fn ranges(&self, segment: &Segment) -> &[PartRange] {
        let of = match &segment.kind {
            SegmentKind::Zeros => return &[],
            SegmentKind::Encoded { ranges, .. } => ranges.clone(),
            SegmentKind::Copied(range) | SegmentKind::Decoded { range, .. } => *range..range.saturating_add(1),
        };
        self.ranges.get(at(of.start)..at(of.end)).unwrap_or_default()
    }

    /// Gives other numbers to all objects, in the same order; the leaves begin at `first_leaf`.
    pub(crate) fn renumber(&mut self, first_leaf: u32, number: impl Fn(&mut Row<Object>)) {
        if self.is_empty() {
            return;
        }
        self.first_leaf = first_leaf;
        self.made.iter_mut().for_each(|made| number(&mut made.object));
        for range in &mut self.ranges {
            if let PartOf::Object(object) = &mut range.of {
                number(object);
            }
        }
        // No two had one number before.
        let _ = self.number();
    }
}
