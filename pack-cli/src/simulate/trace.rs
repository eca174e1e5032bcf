//! Which objects a profile reads.

use sealift_format::{BaseObject, Bundle, Row};
use sealift_store::address::object_at;
use sealift_store::base::{Bases, number_of};

use super::arrangement::{Arrangement, Wanted};
use crate::Error;
use crate::order::OrderProfile;

/// What a profile reads from a bundle.
#[derive(Debug, Default)]
pub(super) struct Trace {
    /// What is read from bundles, in the order of first use. An object of a base may occur several times.
    pub(super) wanted: Vec<Wanted>,
    /// Distinct contents that the bundle carries.
    pub(super) objects: usize,
    /// Distinct contents that only a base has, and that base is a bundle.
    pub(super) of_base: usize,
    /// Distinct contents that only a base has, and that base is not a bundle.
    pub(super) not_read: usize,
    /// Paths of the profile.
    pub(super) paths: usize,
    /// Paths that name a regular file.
    pub(super) matched: usize,
}

impl Trace {
    /// # Errors
    /// Returns an error if no base has an object that the bundle lacks.
    pub(super) fn of(bundle: &Bundle, bases: &Bases, profile: &OrderProfile) -> Result<Self, Error> {
        let (index, layout) = (&bundle.index, &bundle.layout);
        let (own, by_id) = (Arrangement::of(bundle), bases.by_id());
        // The number of each base that is a bundle; 0 is the bundle itself.
        let mut count = 0;
        let mut next = || {
            count += 1;
            count
        };
        let numbers: Vec<Option<usize>> = bases.bundles().map(|base| base.map(|_| next())).collect();
        let in_base = |object: Row<BaseObject>, ranges| {
            let (base, object) = bases.locate(object)?;
            numbers[base].map(|bundle| Wanted { bundle, object, ranges })
        };
        let mut seen = vec![false; index.objects().len()];
        let mut trace = Self::default();
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
                let ranges = entry.ranges.clone();
                if layout.is_stored(object) {
                    trace.objects += 1;
                    let wanted = Wanted { bundle: 0, object, ranges };
                    let chunks = own.chunks_of(bundle, &wanted).map(|chunk| &layout.chunks[chunk]);
                    let prefixes = chunks.flat_map(|chunk| layout.prefix_of(chunk));
                    let prefixes = prefixes.filter_map(|range| {
                        let bytes = range.offset..range.offset + range.len;
                        in_base(range.object, vec![bytes])
                    });
                    let prefixes: Vec<Wanted> = prefixes.collect();
                    trace.wanted.push(wanted);
                    trace.wanted.extend(prefixes);
                } else if layout.recipes.of(object).is_some() {
                    trace.objects += 1;
                    let parts = layout.recipes.stored_of(object).into_iter();
                    trace.wanted.extend(parts.map(|object| Wanted { bundle: 0, object, ranges: Vec::new() }));
                } else if let Some(wanted) = in_base(number_of(&by_id, index.object(object))?, ranges) {
                    trace.of_base += 1;
                    trace.wanted.push(wanted);
                } else {
                    trace.not_read += 1;
                }
            }
            trace.matched += usize::from(is_found);
        }
        Ok(trace)
    }
}
