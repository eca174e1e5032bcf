//! Paths below the root of the tree.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use sealift_store::OrderFault;

use super::Fault;

/// What the kernel shows as files, at the root of a running system.
const OF_THE_KERNEL: [&[u8]; 3] = [b"proc", b"sys", b"dev"];

/// The root, and how many paths were outside.
pub(super) struct Rooted {
    root: Vec<u8>,
    pub(super) outside: u64,
    /// Lines that are no paths.
    pub(super) malformed: u64,
    /// The others.
    paths: u64,
    first_fault: Option<OrderFault>,
}

impl Rooted {
    pub(super) fn new(root: &Path) -> Self {
        let root = without_parents(root.as_os_str().as_bytes(), true).unwrap_or_default();
        Self { root, outside: 0, malformed: 0, paths: 0, first_fault: None }
    }

    /// Returns the root without slashes at its ends; empty for `/`.
    pub(super) fn root(&self) -> &[u8] {
        &self.root
    }

    /// Returns the path below the root, if it is there: absolute paths are those of the machine, others are relative to the root.
    pub(super) fn below(&mut self, path: &[u8]) -> Option<Vec<u8>> {
        self.paths += 1;
        let below = self.find(path);
        self.outside += u64::from(below.is_none());
        below
    }

    fn find(&self, path: &[u8]) -> Option<Vec<u8>> {
        let is_absolute = path.starts_with(b"/");
        let found = without_parents(path, is_absolute).filter(|path| !path.contains(&0))?;
        if !is_absolute {
            return Some(found);
        }
        if self.root.is_empty() {
            let first = found.split(|byte| *byte == b'/').next().unwrap_or_default();
            return (!OF_THE_KERNEL.contains(&first)).then_some(found);
        }
        match found.strip_prefix(&self.root[..])? {
            [] => Some(Vec::new()),
            rest => rest.strip_prefix(b"/").map(<[u8]>::to_vec),
        }
    }

    /// Notes a line that is no path.
    pub(super) fn skip(&mut self, fault: OrderFault) {
        self.malformed += 1;
        self.first_fault.get_or_insert(fault);
    }

    /// Refuses an input of which most lines are no paths.
    pub(super) fn check(&mut self) -> Result<(), Fault> {
        match self.first_fault.take() {
            Some(fault) if self.malformed >= self.paths => Err(fault.into()),
            _ => Ok(()),
        }
    }
}

/// Returns a path without `..`, which programs use to name a sibling of their folder, and without what does not change its meaning: a leading `/`,
/// `.` and empty names. The parent of `/` is `/`; a relative path that leaves the root has no result. If the name before `..` is a symbolic link, the
/// result is the path of another file, or of none.
pub(super) fn without_parents(path: &[u8], is_absolute: bool) -> Option<Vec<u8>> {
    let mut names: Vec<&[u8]> = Vec::new();
    for name in path.split(|byte| *byte == b'/') {
        match name {
            b"" | b"." => {}
            b".." if names.pop().is_none() && !is_absolute => return None,
            b".." => {}
            name => names.push(name),
        }
    }
    Some(names.join(&b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_paths_are_those_of_the_machine() {
        let mut rooted = Rooted::new("/srv/os/".as_ref());
        let mut below = |path: &[u8]| rooted.below(path);
        assert_eq!(below(b"/srv/os//etc/./a"), Some(b"etc/a".to_vec()));
        assert_eq!(below(b"etc/a"), Some(b"etc/a".to_vec()));
        assert_eq!(below(b"/srv/../../srv/os/bin/../sbin/a"), Some(b"sbin/a".to_vec()));
        assert_eq!(below(b"usr//bin/../bin/ls"), Some(b"usr/bin/ls".to_vec()));
        assert_eq!((below(b"/srv/os-2/a"), below(b"/srv/o")), (None, None));
        assert_eq!((below(b"a/../../b"), below(b"/srv/os/../b")), (None, None));
        assert_eq!(rooted.outside, 4);
        let mut rooted = Rooted::new("/".as_ref());
        assert_eq!(rooted.below(b"/devel/a"), Some(b"devel/a".to_vec()));
        assert_eq!((rooted.below(b"/dev/null"), rooted.below(b"/usr/../proc/1/maps")), (None, None));
    }
}
