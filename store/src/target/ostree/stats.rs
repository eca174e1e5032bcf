//! The result of an import.

use serde::{Serialize, Serializer};

use crate::seal::KernelSignature;

/// What was imported, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ImportStats {
    /// Refs and the commits that they now name, in hexadecimal.
    #[serde(serialize_with = "refs")]
    pub refs: Vec<(String, String)>,
    /// New commits.
    pub commits: u64,
    /// New dirtrees and dirmetas.
    pub metadata: u64,
    /// New file objects.
    pub files: u64,
    /// Bytes of their contents.
    pub logical_bytes: u64,
    /// Stored bytes read for them.
    pub stored_bytes: u64,
    /// Existing objects of the commits that were checked for size, type and time.
    pub checked_objects: u64,
    /// Those of them that were read and compared with their checksums, or that the kernel vouched for.
    pub hashed_objects: u64,
    /// Bytes read for that.
    pub hashed_bytes: u64,
    /// Objects that existed, did not match their names, and were replaced.
    pub repaired_objects: u64,
    /// Whether the repository, a mirror, has the summary that the bundle carries.
    pub has_summary: bool,
    /// Whether the repository's summary listed other commits, and was updated to those that its refs name.
    #[serde(rename = "summary_updated")]
    pub is_summary_updated: bool,
    /// Whether it was signed before: only the key's owner can sign it again.
    #[serde(rename = "summary_signature_removed")]
    pub has_lost_signature: bool,
    /// Whether it was Flatpak's, which lists more of each ref: `flatpak build-update-repo` rewrites it.
    #[serde(rename = "flatpak_index_removed")]
    pub was_flatpak: bool,
    /// Whether new objects are sealed.
    #[serde(rename = "sealed")]
    pub is_sealed: bool,
    /// Objects that were sealed.
    pub sealed_objects: u64,
    /// What happened to the bundle's signature for the kernel when the recorded index was sealed.
    pub kernel_signature: KernelSignature,
}

#[derive(Serialize)]
struct SetRef<'a> {
    name: &'a str,
    commit: &'a str,
}

fn refs<S: Serializer>(refs: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(refs.iter().map(|(name, commit)| SetRef { name, commit }))
}
