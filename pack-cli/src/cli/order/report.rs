//! `--json`.

use sealift::order::diff::{DifferenceKind, OrderDifference};
use sealift_format::num::wide;
use serde::Serialize;

use crate::escape;

/// What is reported of a profile besides its size.
#[derive(Clone, Copy, Default, Serialize)]
pub(super) struct Remarks {
    /// Paths outside the root, which an import left out.
    pub(super) outside: u64,
    /// Lines that are no paths, which an import left out.
    pub(super) malformed: u64,
    /// Reads outside file contents, which an import left out.
    pub(super) elsewhere: u64,
    /// Large files that were cached before a recording.
    pub(super) cached: u64,
}

/// What is reported of a new profile.
#[derive(Serialize)]
pub(super) struct Made {
    pub(super) files: u64,
    pub(super) ranges: u64,
    #[serde(flatten)]
    pub(super) remarks: Remarks,
}

/// How many paths differ.
#[derive(Default, Serialize)]
pub(super) struct Counts {
    pub(super) added: u64,
    pub(super) removed: u64,
    pub(super) moved: u64,
    pub(super) ranges: u64,
}

impl Counts {
    pub(super) fn of(differences: &[OrderDifference<'_>]) -> Self {
        let mut counts = Self::default();
        for difference in differences {
            *match difference.kind {
                DifferenceKind::Added => &mut counts.added,
                DifferenceKind::Removed => &mut counts.removed,
                DifferenceKind::Moved => &mut counts.moved,
                DifferenceKind::Ranges => &mut counts.ranges,
            } += 1;
        }
        counts
    }
}

#[derive(Serialize)]
pub(super) struct Differences<'a> {
    old: &'a str,
    new: &'a str,
    differs: bool,
    counts: &'a Counts,
    entries: Vec<Entry>,
}

impl<'a> Differences<'a> {
    pub(super) fn new((old, new): (&'a str, &'a str), counts: &'a Counts, differences: &[OrderDifference<'_>]) -> Self {
        let entries = differences.iter().map(Entry::of).collect();
        Self { old, new, differs: !differences.is_empty(), counts, entries }
    }
}

#[derive(Serialize)]
struct Entry {
    kind: &'static str,
    path: String,
    old_position: Option<u64>,
    new_position: Option<u64>,
}

impl Entry {
    fn of(difference: &OrderDifference<'_>) -> Self {
        let kind = match difference.kind {
            DifferenceKind::Added => "added",
            DifferenceKind::Removed => "removed",
            DifferenceKind::Moved => "moved",
            DifferenceKind::Ranges => "ranges",
        };
        let (old_position, new_position) = (difference.old.map(wide), difference.new.map(wide));
        Self { kind, path: escape::percent(difference.path), old_position, new_position }
    }
}
