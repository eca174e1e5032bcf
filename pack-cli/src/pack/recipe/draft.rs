//! Recipes whose objects are not numbered yet.

use sealift_format::Coder;
use sealift_store::contents::tasks::Item;

/// How a content is made.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) segments: Vec<DraftSegment>,
    /// How many recipes are made of each other below it, itself included.
    pub(super) height: u8,
}

/// A part of a content.
#[derive(Debug)]
pub(super) enum DraftSegment {
    /// Bytes of a leaf.
    Copied(DraftRange),
    /// So many zeros.
    Zeros(u64),
    /// What a coder makes of parts of leaves.
    Encoded { coder: Coder, len: u64, inputs: Vec<DraftRange> },
}

/// Bytes of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DraftRange {
    /// The leaf's number in the source of leaves.
    pub(super) leaf: u32,
    pub(super) offset: u64,
    pub(super) len: u64,
}

/// A content of a source, with the number of its draft.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drafted {
    pub(super) item: Item,
    pub(super) draft: usize,
}

impl DraftSegment {
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Copied(range) => range.len,
            Self::Zeros(len) | Self::Encoded { len, .. } => *len,
        }
    }

    pub(super) fn ranges(&self) -> &[DraftRange] {
        match self {
            Self::Copied(range) => std::slice::from_ref(range),
            Self::Zeros(_) => &[],
            Self::Encoded { inputs, .. } => inputs,
        }
    }
}
