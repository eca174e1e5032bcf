//! Walks a tree in tree order (core 6.1), and two trees together, name by name.

use alloc::vec::Vec;
use core::cmp::Ordering;

/// The directories of a tree that are still to be visited, in tree order (core 6.1): a directory is followed by those in it, ordered by name, each
/// with everything below it. A directory that is not pushed is not visited.
///
/// ```
/// use sealift_format::walk::TreeOrder;
///
/// let below = |directory| match directory {
///     "/" => ["/etc", "/usr"].iter(),
///     "/etc" => ["/etc/ssh"].iter(),
///     _ => [].iter(),
/// };
/// let (mut order, mut visited) = (TreeOrder::new("/"), Vec::new());
/// while let Some(directory) = order.pop() {
///     visited.push(directory);
///     below(directory).for_each(|child| order.push(child));
/// }
/// assert_eq!(visited, ["/", "/etc", "/etc/ssh", "/usr"]);
/// ```
#[derive(Clone, Debug)]
pub struct TreeOrder<T> {
    /// The last one is next, except that those in the directory being visited are at the end, in the order in which they were pushed.
    pending: Vec<T>,
    /// Where those in the directory being visited begin.
    visited: usize,
}

impl<T> TreeOrder<T> {
    /// Returns the order of a tree, which begins with its root.
    #[must_use]
    pub fn new(root: T) -> Self {
        Self { pending: alloc::vec![root], visited: 0 }
    }

    /// Returns the next directory to visit. Directories that are pushed after this are in it.
    #[must_use]
    pub fn pop(&mut self) -> Option<T> {
        self.pending[self.visited..].reverse();
        let next = self.pending.pop();
        self.visited = self.pending.len();
        next
    }

    /// Adds a directory in the one being visited. They must be added in the order of their names.
    pub fn push(&mut self, directory: T) {
        self.pending.push(directory);
    }
}

/// Pairs the names of two directories, which ascend in each. Returns each name with what the left one, the right one or both have for it.
pub fn pairs<'a, A, B>(
    left: impl Iterator<Item = (&'a [u8], A)>,
    right: impl Iterator<Item = (&'a [u8], B)>,
) -> impl Iterator<Item = (&'a [u8], Option<A>, Option<B>)> {
    let (mut left, mut right) = (left.peekable(), right.peekable());
    core::iter::from_fn(move || {
        let order = match (left.peek(), right.peek()) {
            (Some((left, _)), Some((right, _))) => left.cmp(right),
            (Some(_), None) => Ordering::Less,
            (None, _) => Ordering::Greater,
        };
        let left = if order.is_le() { left.next() } else { None };
        let right = if order.is_ge() { right.next() } else { None };
        let name = left.as_ref().map(|(name, _)| *name).or(right.as_ref().map(|(name, _)| *name))?;
        Some((name, left.map(|(_, left)| left), right.map(|(_, right)| right)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_visited_in_its_order() {
        // For each directory, the numbers of those in it.
        let below: [&[usize]; 6] = [&[1, 4, 5], &[2, 3], &[], &[], &[], &[]];
        let (mut order, mut visited) = (TreeOrder::new(0), Vec::new());
        while let Some(directory) = order.pop() {
            visited.push(directory);
            // 5 is not descended into.
            below[directory].iter().filter(|child| **child != 5).for_each(|child| order.push(*child));
        }
        assert_eq!(visited, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_name_comes_once() {
        let names = |names: &[&'static str]| names.iter().map(|name| (name.as_bytes(), *name)).collect::<Vec<_>>();
        let pairs = |left, right| pairs(names(left).into_iter(), names(right).into_iter()).collect::<Vec<_>>();
        assert_eq!(
            pairs(&["a", "ab", "c"], &["ab", "b"]),
            [
                (&b"a"[..], Some("a"), None),
                (b"ab", Some("ab"), Some("ab")),
                (b"b", None, Some("b")),
                (b"c", Some("c"), None),
            ]
        );
        assert_eq!(pairs(&[], &[]), []);
        assert_eq!(pairs(&[], &["z"]), [(&b"z"[..], None, Some("z"))]);
    }
}
