//! The result of an import into a repository.

use serde::Serialize;

use crate::install::stats::ImportStats;

/// What was imported, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OsTreeStats {
    /// What all repositories and stores report.
    #[serde(flatten)]
    pub import: ImportStats,
    /// New commits.
    pub commits: u64,
    /// New dirtrees and dirmetas.
    pub metadata: u64,
    /// New file objects.
    pub files: u64,
    /// Bytes read to check existing objects.
    pub hashed_bytes: u64,
    /// Whether the repository, a mirror, has the summary that the bundle carries.
    pub has_summary: bool,
    /// Whether the repository's summary listed other commits, and was updated to those that its refs name.
    #[serde(rename = "summary_updated")]
    pub is_summary_updated: bool,
    /// Whether the old summary was signed: only the key's owner can sign it again.
    #[serde(rename = "summary_signature_removed")]
    pub has_lost_signature: bool,
    /// Whether the old summary was Flatpak's, which says more about each ref: `flatpak build-update-repo` rewrites it.
    #[serde(rename = "flatpak_index_removed")]
    pub was_flatpak: bool,
}
