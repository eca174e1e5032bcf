//! A map from the numbers of metadata objects to values.

use alloc::vec::Vec;

/// Pairs in ascending order of the numbers, in which objects are read anyway (ostree 4), so that nothing has to be sorted.
#[derive(Debug)]
pub(in crate::index) struct ByObject<T>(Vec<(u32, T)>);

impl<T> ByObject<T> {
    pub(in crate::index) fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a value for an object whose number is higher than all before.
    pub(in crate::index) fn push(&mut self, object: u32, value: T) {
        debug_assert!(self.0.last().is_none_or(|(last, _)| *last < object));
        self.0.push((object, value));
    }

    pub(in crate::index) fn get(&self, object: u32) -> Option<&T> {
        let at = self.place(object)?;
        self.0.get(at).map(|(_, value)| value)
    }

    pub(in crate::index) fn get_mut(&mut self, object: u32) -> Option<&mut T> {
        let at = self.place(object)?;
        self.0.get_mut(at).map(|(_, value)| value)
    }

    pub(in crate::index) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.0.iter().map(|(object, value)| (*object, value))
    }

    fn place(&self, object: u32) -> Option<usize> {
        self.0.binary_search_by_key(&object, |(own, _)| *own).ok()
    }
}

impl<T> FromIterator<(u32, T)> for ByObject<T> {
    /// The numbers must ascend.
    fn from_iter<I: IntoIterator<Item = (u32, T)>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}
