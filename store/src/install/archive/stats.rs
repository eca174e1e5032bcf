//! What writing an archive did.

use serde::Serialize;

use crate::install::stats::InstallStats;

/// What was written, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ArchiveStats {
    /// What all targets report.
    #[serde(flatten)]
    pub install: InstallStats,
    /// Members of the archive, including the root.
    pub members: u64,
    /// Regular files; further names of a file are not counted.
    pub files: u64,
    /// Bytes of the archive.
    pub archive_bytes: u64,
    /// Sockets that the format cannot hold.
    pub sockets_skipped: u64,
    /// Extended attributes that the format cannot hold.
    pub xattrs_skipped: u64,
}
