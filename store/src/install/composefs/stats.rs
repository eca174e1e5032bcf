//! What an import into a store reports.

use serde::Serialize;

use crate::install::stats::ImportStats;

/// What was imported, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ComposefsStats {
    /// What all repositories and stores report.
    #[serde(flatten)]
    pub import: ImportStats,
    /// Whether a new store was created.
    pub is_new: bool,
    /// Objects of the trees, except those stored inside images.
    pub objects: u64,
    /// Objects that were written; in a dry run, those that would be read.
    pub new_objects: u64,
}
