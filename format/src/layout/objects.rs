//! The objects that a layout is to place (core 7).

use alloc::vec::Vec;

use crate::index::{Index, InodeKind, Object, OsTree};

/// What a layout is parsed against: the objects that it numbers, and what its prefixes may name.
#[derive(Clone, Debug)]
pub struct Objects<'a> {
    pub(crate) rows: &'a [Object],
    /// Those that OSTree's files hold, whose pieces are to come in order.
    pub(crate) hashed: Vec<bool>,
    /// Objects of the bases.
    pub(crate) base: u32,
}

impl<'a> From<&'a Index> for Objects<'a> {
    fn from(index: &'a Index) -> Self {
        let mut hashed = alloc::vec![false; index.objects().len()];
        for file in index.ostree().map_or(&[][..], OsTree::files) {
            if let InodeKind::Regular(object) = file.kind {
                hashed[object.at()] = true;
            }
        }
        Self { rows: index.objects(), hashed, base: 0 }
    }
}
