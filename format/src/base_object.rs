//! The table of the objects of all bases (delta 2).

use crate::index::Object;
use crate::row::{Row, Table};

/// An object in the table of the objects of all bases: those of the first, then those of the second, and so on (delta 2).
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_enums, reason = "it names a table, and has no value")]
pub enum BaseObject {}

impl BaseObject {
    /// Returns the row of an object of the first base.
    #[must_use]
    pub fn of_first(object: Row<Object>) -> Row<Self> {
        object.cast()
    }

    /// Returns the base that has an object, and its row there. `counts` are the numbers of objects of the bases.
    #[must_use]
    pub fn locate(object: Row<Self>, counts: impl Iterator<Item = usize>) -> Option<(usize, Row<Object>)> {
        let mut left = object.at();
        for (base, count) in counts.enumerate() {
            match left.checked_sub(count) {
                Some(rest) => left = rest,
                None => return Some((base, Row::after(left).ok()?)),
            }
        }
        None
    }
}

impl Table for BaseObject {
    const COUNT: &'static str = "the number of the bases' objects";
}
