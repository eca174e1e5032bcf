//! What importing came to.

use serde::{Serialize, Serializer};

use crate::seal::KernelSignature;

/// What was taken, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ImportStats {
    /// Refs and the commits that they name now, in hexadecimal.
    #[serde(serialize_with = "refs")]
    pub refs: Vec<(String, String)>,
    /// Commits that the repository did not have.
    pub commits: u64,
    /// Dirtrees and dirmetas that it did not have.
    pub metadata: u64,
    /// File objects that it did not have.
    pub files: u64,
    /// Bytes of their contents.
    pub logical_bytes: u64,
    /// Stored bytes that were read for them.
    pub stored_bytes: u64,
    /// Objects of the commits that were there and were looked at: whether they have the size, type and time that they are to have.
    pub checked_objects: u64,
    /// Of these, the ones that were read and compared with their checksums, or for which the kernel vouched.
    pub hashed_objects: u64,
    /// Bytes that were read for that.
    pub hashed_bytes: u64,
    /// Objects that were there, were not what their names say, and were replaced.
    pub repaired_objects: u64,
    /// Whether the repository, a mirror, has the summary that the bundle carries.
    pub has_summary: bool,
    /// Whether the repository had a summary that listed other commits, and has one now that lists those that its refs name.
    #[serde(rename = "summary_updated")]
    pub is_summary_updated: bool,
    /// Whether that was signed, and is no more: only who has the key can sign it again.
    #[serde(rename = "summary_signature_removed")]
    pub has_lost_signature: bool,
    /// Whether it was Flatpak's, which lists more of each ref: `flatpak build-update-repo` writes that again.
    #[serde(rename = "flatpak_index_removed")]
    pub was_flatpak: bool,
    /// Whether new objects are sealed.
    #[serde(rename = "sealed")]
    pub is_sealed: bool,
    /// Objects that were sealed.
    pub sealed_objects: u64,
    /// What became of the signature for the kernel that the bundle carries, when the index that is kept was sealed.
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
