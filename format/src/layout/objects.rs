//! The objects that a layout is to place (spec 7).

use alloc::vec::Vec;

use crate::difference::{Difference, OsTreeDifference, Reference};
use crate::index::{Index, InodeKind, Object, OsTree};

/// What a layout is parsed against: the objects that it numbers, and what its prefixes may name.
#[derive(Clone, Debug)]
pub struct Objects<'a> {
    pub(super) rows: &'a [Object],
    /// Those that OSTree's files hold, whose pieces are to come in order.
    pub(super) hashed: Vec<bool>,
    /// Objects of the bases.
    pub(super) base: u32,
}

fn at(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

impl<'a> From<&'a Index> for Objects<'a> {
    fn from(index: &'a Index) -> Self {
        let mut hashed = alloc::vec![false; index.objects().len()];
        for file in index.ostree().map_or(&[][..], OsTree::files) {
            if let InodeKind::Regular(object) = file.kind {
                hashed[at(object)] = true;
            }
        }
        Self { rows: index.objects(), hashed, base: 0 }
    }
}

impl<'a> From<&'a Difference> for Objects<'a> {
    fn from(difference: &'a Difference) -> Self {
        let mut hashed = alloc::vec![false; difference.objects().len()];
        for file in difference.ostree().map_or(&[][..], OsTreeDifference::files) {
            if let crate::difference::Content::Regular(Reference::Carried(object)) = file.content {
                hashed[at(object)] = true;
            }
        }
        Self { rows: difference.objects(), hashed, base: difference.base_objects() }
    }
}
