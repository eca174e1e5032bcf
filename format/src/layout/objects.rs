//! The objects of a layout (core 7).

use alloc::vec::Vec;

use crate::index::{Index, InodeKind, Object, OsTree};

/// What a layout is checked against: the objects that it numbers, and the number of objects that its prefixes may name.
#[derive(Clone, Debug)]
pub struct Objects<'a> {
    pub(crate) rows: &'a [Object],
    /// For each object, whether it is the content of an OSTree file: its pieces must then be in order.
    pub(crate) hashed: Vec<bool>,
    /// The number of objects of the bases, in a delta bundle.
    pub(crate) base: Option<u32>,
    /// Whether a ref is an OSTree commit, so that files of its repository may be there.
    pub(crate) has_commits: bool,
}

impl<'a> From<&'a Index> for Objects<'a> {
    fn from(index: &'a Index) -> Self {
        let mut hashed = alloc::vec![false; index.objects().len()];
        for file in index.ostree().map_or(&[][..], OsTree::files) {
            if let InodeKind::Regular(object) = file.kind {
                hashed[object.at()] = true;
            }
        }
        Self { rows: index.objects(), hashed, base: None, has_commits: index.ostree().is_some() }
    }
}
