//! The order that a bundle is laid out by, or that a target keeps of what was installed: as paths.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use sealift_format::{Bundle, Index, Object, Row};
use sealift_store::base::{Base, Bases, kept_orders};
use sealift_store::kept_order::KeptOrder;

use super::{OrderEntry, OrderProfile, merge};
use crate::Error;

impl OrderProfile {
    /// Returns the profile by which a full bundle is laid out: the files whose contents are in its hot set, in the order of these contents. A file of
    /// which some pieces lie elsewhere has the ranges of those that do not. An equal file has its place there too. `None` if the bundle has no hot
    /// set.
    #[must_use]
    pub fn of_bundle(bundle: &Bundle) -> Option<Self> {
        KeptOrder::of_bundle(bundle).map(|order| Self::of_index(&bundle.index, &order))
    }

    /// Returns the profile of what a delta bundle installs over its bases: that of the base, with the places of what the delta brings. `None` if
    /// neither has an order.
    #[must_use]
    pub fn of_delta(bundle: &Bundle, bases: &Bases) -> Option<Self> {
        bases.order_of(bundle, None).map(|order| Self::of_index(&bundle.index, &order))
    }

    /// Returns the profile of the bundle that a base is, or that was installed there; `None` if there is none.
    #[must_use]
    pub fn of_base(base: &Base) -> Option<Self> {
        base.order().map(|order| Self::of_index(&base.index, order))
    }

    /// Returns the profile of what was installed in a target, which its record keeps; `None` if it has no record, or what was installed had no
    /// order. Those of several bundles in a repository or store are merged.
    ///
    /// # Errors
    /// As [`kept_orders`].
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
