//! The order in which a bundle is laid out, or that a target keeps, as a profile of paths.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use sealift_format::{Bundle, Index, Object, Row};
use sealift_store::base::{Base, Bases, kept_orders};
use sealift_store::kept_order::KeptOrder;

use super::{OrderEntry, OrderProfile, merge};
use crate::Error;

impl OrderProfile {
    /// Returns the profile by which a full bundle is laid out: the files whose contents are in its hot set, in the order of these contents. If only
    /// some pieces of a file are in the hot set, the entry has their ranges. Files with equal contents follow each other. `None` if the bundle has
    /// no hot set.
    #[must_use]
    pub fn of_bundle(bundle: &Bundle) -> Option<Self> {
        KeptOrder::of_bundle(bundle).map(|order| Self::of_index(&bundle.index, &order))
    }

    /// Returns the profile of what a delta bundle installs over its bases: the base's profile, with the files that the delta brings in their places.
    /// `None` if neither has an order.
    #[must_use]
    pub fn of_delta(bundle: &Bundle, bases: &Bases) -> Option<Self> {
        bases.order_of(bundle, None).map(|order| Self::of_index(&bundle.index, &order))
    }

    /// Returns the profile of a base: of the bundle itself, or of what was installed in the target; `None` if it has no order.
    #[must_use]
    pub fn of_base(base: &Base) -> Option<Self> {
        base.order().map(|order| Self::of_index(&base.index, order))
    }

    /// Returns the profile that a target's record keeps; `None` if it has no record, or if what was installed had no order. The profiles of several
    /// bundles in a repository or store are merged.
    pub fn of_target(target: &Path) -> Result<Option<Self>, Error> {
        let kept = kept_orders(target)?;
        let profiles: Vec<Self> = kept.iter().map(|(index, order)| Self::of_index(index, order)).collect();
        let known = profiles.iter().flat_map(|profile| profile.known().iter().cloned()).collect();
        Ok((!profiles.is_empty()).then(|| merge(&profiles).of_files(known)))
    }

    /// Returns the paths that an index has for the contents of an order.
    fn of_index(index: &Index, order: &KeptOrder) -> Self {
        let mut paths: HashMap<Row<Object>, Vec<Vec<u8>>> =
            order.parts().iter().map(|part| (part.object, vec![])).collect();
        let mut known = HashSet::new();
        for (directory, entry, object) in index.refs().iter().flat_map(|tree| index.regulars(tree)) {
            let path = index.path(directory, entry);
            paths.entry(object).and_modify(|paths| paths.push(path.clone()));
            known.insert(path);
        }
        let entries = order.parts().iter().flat_map(|part| {
            let paths = paths.get(&part.object).into_iter().flatten();
            paths.map(|path| OrderEntry { path: path.clone(), ranges: part.ranges.clone() })
        });
        Self::new(entries.collect()).of_files(known)
    }
}
