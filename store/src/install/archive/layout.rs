//! Where each content of an archive lies.

use sealift_format::{Object, Row};

/// The contents of an archive, and its length.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// Objects and the offsets of their contents, sorted by object. Files that share an object each have a copy of its content.
    pub(super) contents: Vec<(Row<Object>, u64)>,
    pub(super) len: u64,
    /// The end of the members.
    pub(super) members_len: u64,
}

impl Layout {
    /// Returns the offsets at which the content of an object lies.
    pub(super) fn offsets(&self, object: Row<Object>) -> impl Iterator<Item = u64> {
        let from = self.contents.partition_point(|(other, _)| *other < object);
        self.contents[from..].iter().take_while(move |(other, _)| *other == object).map(|(_, offset)| *offset)
    }
}
