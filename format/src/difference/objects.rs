//! The objects of a delta's layout (core 7).

use super::{Difference, NewContent, OsTreeDifference, Reference};
use crate::Objects;

impl<'a> From<&'a Difference> for Objects<'a> {
    fn from(difference: &'a Difference) -> Self {
        let mut hashed = alloc::vec![false; difference.objects().len()];
        for file in difference.ostree().map_or(&[][..], OsTreeDifference::files) {
            if let NewContent::Regular(Reference::Carried(object)) = file.content {
                hashed[object.at()] = true;
            }
        }
        let (base, has_commits) = (Some(difference.base_objects()), difference.ostree().is_some());
        Self { rows: difference.objects(), hashed, base, has_commits }
    }
}
