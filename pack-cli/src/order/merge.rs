//! Profiles of several.

use super::profile::{OrderEntry, OrderProfile};

/// Merges profiles: each path keeps its earliest position in any profile, counted in paths from that profile's start. Of two paths at
/// one position, that of the profile given first comes first. Ranges are united; a file that one profile reads whole is read whole.
#[must_use]
pub fn merge(profiles: &[OrderProfile]) -> OrderProfile {
    let mut placed: Vec<(usize, &OrderEntry)> =
        profiles.iter().flat_map(|profile| profile.entries().iter().enumerate()).collect();
    // Stable: equal positions stay in the order of the profiles.
    placed.sort_by_key(|(position, _)| *position);
    OrderProfile::new(placed.into_iter().map(|(_, entry)| entry.clone()).collect())
}

/// Puts profiles one after another, for programs that start in turn: each path keeps its first place, and ranges are united as by [`merge`].
#[must_use]
pub fn one_after_another(profiles: &[OrderProfile]) -> OrderProfile {
    OrderProfile::new(profiles.iter().flat_map(|profile| profile.entries().iter().cloned()).collect())
}
