//! References to rows of the difference or of the base: the base's rows are numbered after those of the difference (delta 5.2).

use alloc::vec::Vec;

use crate::bytes::put_planes;
use crate::{BaseObject, Object, Row};

/// An object that the difference carries, or one of the bases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::exhaustive_enums, reason = "delta 5.2 lists them")]
pub enum Reference {
    /// The row in the difference's own table.
    Carried(Row<Object>),
    /// The row in the bases' table.
    Base(Row<BaseObject>),
}

/// The numbers of rows that a column of references can name.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReferenceRows {
    pub(super) carried: u32,
    pub(super) base: u32,
}

impl ReferenceRows {
    /// Appends a column as the steps from each number to the next.
    pub(super) fn put(self, out: &mut Vec<u8>, column: impl Iterator<Item = Reference>) {
        let mut before = u32::MAX;
        let steps: Vec<u32> = column
            .map(|reference| match reference {
                Reference::Carried(row) => row.number(),
                Reference::Base(row) => self.carried.wrapping_add(row.number()),
            })
            .map(|value| value.wrapping_sub(core::mem::replace(&mut before, value)).wrapping_sub(1))
            .collect();
        put_planes(out, steps.iter().map(|step| step.to_le_bytes()));
    }

    /// Returns the references for a column of steps; `None` if one exceeds the last row, or there are more rows than can be numbered.
    pub(super) fn follow(self, steps: impl Iterator<Item = u32>) -> Option<Vec<Reference>> {
        self.carried.checked_add(self.base)?;
        let mut before = u32::MAX;
        steps
            .map(|step| {
                before = before.wrapping_add(1).wrapping_add(step);
                match before.checked_sub(self.carried) {
                    None => Row::new(before).map(Reference::Carried),
                    Some(row) if row < self.base => Row::new(row).map(Reference::Base),
                    Some(_) => None,
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn steps_go_on_where_the_table_ends() {
        let rows = ReferenceRows { carried: 2, base: 3 };
        let carried = |number| Reference::Carried(Row::new(number).expect("it is small"));
        let base = |number| Reference::Base(Row::new(number).expect("it is small"));
        let column = [carried(0), carried(1), base(0), base(2), carried(1)];
        let mut bytes = Vec::new();
        rows.put(&mut bytes, column.into_iter());
        assert_eq!(bytes[..5], [0, 0, 0, 1, 252]);
        let steps = [0, 0, 0, 1, u32::MAX - 3];
        assert_eq!(rows.follow(steps.into_iter()), Some(column.to_vec()));
        assert_eq!(rows.follow([5].into_iter()), None);
        assert_eq!(rows.follow([u32::MAX].into_iter()), None);
        assert_eq!(ReferenceRows { carried: 2, base: u32::MAX }.follow(vec![].into_iter()), None);
    }
}
