//! Row numbers, each with the type of its table.

use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;
use core::num::NonZeroU32;
use core::ops::Range;

use crate::Error;
use crate::num::{self, wide};

/// The type of a table's rows.
pub trait Table {
    /// What an error names as too large if there are more rows than can be numbered.
    const COUNT: &'static str;
}

/// The number of a row in a table of `T`, below 2^32-1. The type prevents that a number of an inode is used for an object. An [`Option`] of it has
/// the same size in memory.
///
/// ```
/// use sealift_format::{Inode, Object, Row};
///
/// let row = Row::<Inode>::new(7).expect("it is below 2^32-1");
/// assert_eq!((row.number(), row.at()), (7, 7));
/// assert_eq!(Row::<Object>::new(u32::MAX), None);
/// assert_eq!(size_of::<Option<Row<Object>>>(), 4);
/// ```
#[repr(transparent)]
pub struct Row<T> {
    /// One more than the number, as in columns where 0 means none.
    column: NonZeroU32,
    table: PhantomData<fn() -> T>,
}

impl<T> Row<T> {
    /// The first row of a table.
    pub const FIRST: Self = Self { column: NonZeroU32::MIN, table: PhantomData };

    /// Returns the row with this number, whether or not a table has it; `None` for 2^32-1, which no table has.
    #[must_use]
    #[inline]
    pub const fn new(number: u32) -> Option<Self> {
        Self::of_column(number.wrapping_add(1))
    }

    /// Returns the row that follows `rows` others.
    ///
    /// # Errors
    /// Returns an error that names the table if it cannot have another row.
    #[inline]
    pub fn after(rows: usize) -> Result<Self, Error>
    where
        T: Table,
    {
        let row = u32::try_from(rows).ok().and_then(Self::new);
        row.ok_or(Error::TooLarge { what: T::COUNT, len: wide(rows).saturating_add(1), max: u32::MAX.into() })
    }

    /// Returns the rows of a table with their numbers.
    pub fn all(table: &[T]) -> impl ExactSizeIterator<Item = (Self, &T)> + Clone {
        Rows::new(0..u32::MAX).zip(table)
    }

    /// Returns the number.
    #[must_use]
    #[inline]
    pub const fn number(self) -> u32 {
        self.column.get() - 1
    }

    /// Returns the number as an index.
    #[must_use]
    #[inline]
    pub const fn at(self) -> usize {
        num::at(self.number())
    }

    /// Returns the row, if the table has it.
    #[must_use]
    #[inline]
    pub fn get(self, table: &[T]) -> Option<&T> {
        table.get(self.at())
    }

    /// Returns the row with the same number in another table.
    pub(crate) const fn cast<U>(self) -> Row<U> {
        Row { column: self.column, table: PhantomData }
    }

    /// Returns the row for a value of a column in which 0 means none, and other values are one more than the number.
    pub(crate) const fn of_column(column: u32) -> Option<Self> {
        match NonZeroU32::new(column) {
            Some(column) => Some(Self { column, table: PhantomData }),
            None => None,
        }
    }

    /// Returns the value for a row in such a column.
    pub(crate) fn column(row: Option<Self>) -> u32 {
        row.map_or(0, |row| row.column.get())
    }
}

impl<T> Clone for Row<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Row<T> {}

impl<T> PartialEq for Row<T> {
    fn eq(&self, other: &Self) -> bool {
        self.column == other.column
    }
}

impl<T> Eq for Row<T> {}

impl<T> PartialOrd for Row<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Row<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.column.cmp(&other.column)
    }
}

impl<T> Hash for Row<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.column.hash(state);
    }
}

impl<T> fmt::Debug for Row<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.number(), f)
    }
}

impl<T> fmt::Display for Row<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.number(), f)
    }
}

/// Consecutive rows in a table of `T`.
pub struct Rows<T> {
    numbers: Range<u32>,
    table: PhantomData<fn() -> T>,
}

impl<T> Rows<T> {
    /// Returns the rows with these numbers.
    #[must_use]
    pub const fn new(numbers: Range<u32>) -> Self {
        Self { numbers, table: PhantomData }
    }

    /// Returns the rows' content, if the table has them all.
    #[must_use]
    pub fn get<'a>(&self, table: &'a [T]) -> Option<&'a [T]> {
        table.get(num::at(self.numbers.start)..num::at(self.numbers.end))
    }

    /// Returns whether a row is one of them.
    #[must_use]
    pub fn contains(&self, row: Row<T>) -> bool {
        self.numbers.contains(&row.number())
    }

    /// Returns the numbers.
    #[must_use]
    pub fn numbers(&self) -> Range<u32> {
        self.numbers.clone()
    }
}

impl<T> Clone for Rows<T> {
    fn clone(&self) -> Self {
        Self::new(self.numbers())
    }
}

impl<T> fmt::Debug for Rows<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.numbers.fmt(f)
    }
}

// Every number in the range is less than its end, so it is below 2^32-1.
impl<T> Iterator for Rows<T> {
    type Item = Row<T>;

    #[inline]
    fn next(&mut self) -> Option<Row<T>> {
        self.numbers.next().and_then(Row::new)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.numbers.size_hint()
    }

    fn nth(&mut self, n: usize) -> Option<Row<T>> {
        self.numbers.nth(n).and_then(Row::new)
    }
}

impl<T> DoubleEndedIterator for Rows<T> {
    fn next_back(&mut self) -> Option<Row<T>> {
        self.numbers.next_back().and_then(Row::new)
    }
}

impl<T> ExactSizeIterator for Rows<T> {}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::Inode;

    #[test]
    fn the_last_number_is_no_row() {
        let max = u32::MAX - 1;
        assert_eq!(Row::<Inode>::new(max).map(Row::number), Some(max));
        assert_eq!(Row::<Inode>::new(u32::MAX), None);
        assert_eq!(Row::<Inode>::after(num::at(max)).map(Row::number), Ok(max));
        let full = Error::TooLarge { what: "the number of inodes", len: 1 << 32, max: u32::MAX.into() };
        assert_eq!(Row::<Inode>::after(num::at(u32::MAX)), Err(full));
    }

    #[test]
    fn a_range_has_its_rows() {
        let numbers = |rows: Rows<Inode>| rows.map(Row::number).collect::<Vec<_>>();
        assert_eq!(numbers(Rows::new(3..6)), [3, 4, 5]);
        assert_eq!(numbers(Rows::new(u32::MAX - 2..u32::MAX)), [u32::MAX - 2, u32::MAX - 1]);
        assert_eq!(Rows::<Inode>::new(0..u32::MAX).len(), num::at(u32::MAX));
        assert_eq!(Rows::<Inode>::new(3..6).next_back().map(Row::number), Some(5));
    }

    #[test]
    fn columns_have_0_for_no_row() {
        for (column, row) in [(0, None), (1, Row::<Inode>::new(0)), (u32::MAX, Row::new(u32::MAX - 1))] {
            assert_eq!(Row::of_column(column), row);
            assert_eq!(Row::column(row), column);
        }
    }
}
