//! Which objects a profile reads.

use std::ops::Range;

use sealift_format::{Bundle, Object, Row};
use sealift_store::address::object_at;

use crate::order::OrderProfile;

/// A content, and what is read of it.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) object: Row<Object>,
    /// The ranges of its bytes; none for all of it.
    pub(super) ranges: Vec<Range<u64>>,
}

/// What a profile reads from a bundle.
#[derive(Debug)]
pub(super) struct Trace {
    /// The contents that the bundle carries, in the order of their first use, each once.
    pub(super) objects: Vec<Wanted>,
    /// Contents that only a base has.
    pub(super) of_base: usize,
    /// Paths of the profile.
    pub(super) paths: usize,
    /// Paths that name a regular file.
    pub(super) matched: usize,
}

impl Trace {
    pub(super) fn of(bundle: &Bundle, profile: &OrderProfile) -> Self {
        let (index, layout) = (&bundle.index, &bundle.layout);
        let mut seen = vec![false; index.objects().len()];
        let mut trace = Self { objects: Vec::new(), of_base: 0, paths: 0, matched: 0 };
        for entry in profile.entries() {
            let names = profile.names(entry);
            trace.paths += 1;
            let mut is_found = false;
            let found = |reference| names.iter().find_map(|path| object_at(index, reference, path));
            for object in index.refs().iter().filter_map(found) {
                is_found = true;
                if std::mem::replace(&mut seen[object.at()], true) {
                    continue;
                }
                if layout.is_carried(object) {
                    trace.objects.push(Wanted { object, ranges: entry.ranges.clone() });
                } else {
                    trace.of_base += 1;
                }
            }
            trace.matched += usize::from(is_found);
        }
        trace
    }
}
