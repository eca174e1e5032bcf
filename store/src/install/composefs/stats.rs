//! What an import into a store and a mount report.

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

/// The result of a mount.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MountStats {
    /// The tree's name in the store.
    pub name: String,
    /// The image, as `sha256:` and hexadecimal digits.
    pub image: String,
    /// Objects that the image names.
    pub objects: u64,
    /// How they were checked.
    pub checked: ImageChecked,
    /// Bytes read and hashed for the check.
    pub hashed_bytes: u64,
}

/// How objects were found to match the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "there is nobody else")]
pub enum ImageChecked {
    /// By the kernel, which opens only sealed objects with the digests that the image names, and checks each byte that it returns.
    Kernel,
    /// By reading them before the mount; anyone with write access to the store can change them afterwards.
    Hashed,
}
