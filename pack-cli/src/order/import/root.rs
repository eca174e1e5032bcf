//! Paths below the root of the tree.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::order::profile::{Below, relative};

/// What the kernel shows as files, at the root of a running system.
const OF_THE_KERNEL: [&[u8]; 3] = [b"proc", b"sys", b"dev"];

/// The root, and how many paths were outside.
pub(super) struct Rooted {
    root: Vec<u8>,
    pub(super) outside: u64,
}

impl Rooted {
    pub(super) fn new(root: &Path) -> Self {
        let names = root.components().filter_map(|part| match part {
            std::path::Component::Normal(name) => Some(name.as_bytes()),
            _ => None,
        });
        Self { root: names.collect::<Vec<_>>().join(&b'/'), outside: 0 }
    }

    /// Returns the path below the root, if it is there: absolute paths are those of the machine, others are relative to the root.
    pub(super) fn below(&mut self, path: &[u8]) -> Below {
        let found = relative(path)?;
        if !path.starts_with(b"/") {
            return Ok(Some(found));
        }
        let below = match self.root.is_empty() {
            true => Some(&found[..]).filter(|path| {
                let first = path.split(|byte| *byte == b'/').next().unwrap_or_default();
                !OF_THE_KERNEL.contains(&first)
            }),
            false => found.strip_prefix(&self.root[..]).filter(|rest| rest.is_empty() || rest.starts_with(b"/")),
        };
        self.outside += u64::from(below.is_none());
        below.map(relative).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_paths_are_those_of_the_machine() {
        let mut rooted = Rooted::new("/srv/os/".as_ref());
        let mut below = |path: &[u8]| rooted.below(path).expect("a path");
        assert_eq!(below(b"/srv/os//etc/./a"), Some(b"etc/a".to_vec()));
        assert_eq!(below(b"etc/a"), Some(b"etc/a".to_vec()));
        assert_eq!((below(b"/srv/os-2/a"), below(b"/srv/o")), (None, None));
        assert_eq!(rooted.outside, 2);
        let mut rooted = Rooted::new("/".as_ref());
        assert_eq!(rooted.below(b"/devel/a"), Ok(Some(b"devel/a".to_vec())));
        assert_eq!((rooted.below(b"/dev/null"), rooted.below(b"/proc/1/maps")), (Ok(None), Ok(None)));
    }
}
