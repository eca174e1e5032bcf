//! Recipes whose objects are not numbered yet.

use sealift_format::{BaseObject, Coder, Row};
use sealift_store::contents::tasks::Item;

/// How a content is made.
#[derive(Debug)]
pub(in crate::pack) struct Draft {
    pub(in crate::pack) segments: Vec<DraftSegment>,
    /// How many recipes are made of each other below it, itself included.
    pub(in crate::pack) height: u8,
}

/// A part of a content.
#[derive(Clone, Debug)]
pub(in crate::pack) enum DraftSegment {
    /// Bytes of something else.
    Copied(DraftRange),
    /// So many zeros.
    Zeros(u64),
    /// What a coder makes of parts of others; without one, a base has these bytes.
    Encoded { coder: Option<Coder>, len: u64, inputs: Vec<DraftRange> },
}

/// Of what a range is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::pack) enum DraftPart {
    /// A leaf, by its number in the source of leaves.
    Leaf(u32),
    /// An object of a base.
    Base(Row<BaseObject>),
    /// A view, by its number among [`BaseViews`](super::base_views::BaseViews).
    View(u32),
}

/// Bytes of a leaf, of a base or of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::pack) struct DraftRange {
    pub(in crate::pack) of: DraftPart,
    pub(in crate::pack) offset: u64,
    pub(in crate::pack) len: u64,
}

/// A content of a source, with the number of its draft.
#[derive(Clone, Copy, Debug)]
pub(in crate::pack) struct Drafted {
    pub(in crate::pack) item: Item,
    pub(in crate::pack) draft: usize,
}

impl DraftSegment {
    pub(in crate::pack) fn len(&self) -> u64 {
        match self {
            Self::Copied(range) => range.len,
            Self::Zeros(len) | Self::Encoded { len, .. } => *len,
        }
    }

    pub(in crate::pack) fn ranges(&self) -> &[DraftRange] {
        match self {
            Self::Copied(range) => std::slice::from_ref(range),
            Self::Zeros(_) => &[],
            Self::Encoded { inputs, .. } => inputs,
        }
    }

    pub(in crate::pack) fn ranges_mut(&mut self) -> &mut [DraftRange] {
        match self {
            Self::Copied(range) => std::slice::from_mut(range),
            Self::Zeros(_) => &mut [],
            Self::Encoded { inputs, .. } => inputs,
        }
    }
}
