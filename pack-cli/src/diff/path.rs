//! Paths that share their common part in memory.

use std::fmt;
use std::sync::Arc;

/// A path below a root, stored as its last name and a shared parent path: a tree of n names takes memory for n names, however deep it is. Empty for
/// the root.
#[derive(Clone, Default)]
pub struct TreePath(Option<Arc<Step>>);

struct Step {
    before: TreePath,
    name: Box<[u8]>,
}

impl Drop for Step {
    /// Iterative, since a path may have more names than the stack has room for.
    fn drop(&mut self) {
        let mut before = self.before.0.take();
        while let Some(mut step) = before {
            before = Arc::get_mut(&mut step).and_then(|step| step.before.0.take());
        }
    }
}

impl TreePath {
    /// Parses a path with slashes.
    #[must_use]
    pub fn of(path: &[u8]) -> Self {
        let names = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty());
        names.fold(Self::default(), |path, name| path.join(name))
    }

    /// Returns the path of the file of this name in this directory.
    #[must_use]
    pub fn join(&self, name: &[u8]) -> Self {
        Self(Some(Arc::new(Step { before: self.clone(), name: name.into() })))
    }

    /// Returns the path with slashes.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut names: Vec<&[u8]> = self.names().collect();
        names.reverse();
        names.join(&b'/')
    }

    /// Returns the last name; empty for the root.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        self.0.as_ref().map_or(b"", |step| &step.name)
    }

    /// Returns the path of the parent directory; of the root, the root itself.
    #[must_use]
    pub fn parent(&self) -> Self {
        self.0.as_ref().map_or_else(Self::default, |step| step.before.clone())
    }

    /// Returns whether this is the root.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the names, from the last to the first.
    fn names(&self) -> impl Iterator<Item = &[u8]> {
        let steps = std::iter::successors(self.0.as_ref(), |step| step.before.0.as_ref());
        steps.map(|step| &*step.name)
    }
}

impl PartialEq for TreePath {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(a), Some(b)) if Arc::ptr_eq(a, b) => true,
            _ => self.names().eq(other.names()),
        }
    }
}

impl Eq for TreePath {}

impl PartialEq<[u8]> for TreePath {
    fn eq(&self, other: &[u8]) -> bool {
        self.to_vec() == other
    }
}

impl fmt::Debug for TreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.to_vec().escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_what_is_written() {
        let path = TreePath::of(b"usr//bin/sh");
        assert_eq!(path.to_vec(), b"usr/bin/sh");
        assert_eq!((path.name(), path.parent().to_vec()), (&b"sh"[..], b"usr/bin".to_vec()));
        assert_eq!(path, TreePath::of(b"usr/bin").join(b"sh"));
        assert_ne!(path, TreePath::of(b"usr/bin/bash"));
        assert!(TreePath::of(b"").is_empty() && TreePath::default().parent().is_empty());
    }

    #[test]
    fn a_deep_path_takes_no_stack() {
        let deep = || (0..1_000_000).fold(TreePath::default(), |path, _| path.join(b"d"));
        let (one, other) = (deep(), deep());
        assert_eq!(one.to_vec().len(), 1_999_999);
        assert!(one == other);
    }
}
