//! What importing came to.

use serde::{Serialize, Serializer};

/// What was taken, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ImportStats {
    /// Names in the store, `BUNDLE/REF`, and the images that they are of now, as in `sha256:` and hexadecimal digits.
    #[serde(serialize_with = "refs")]
    pub refs: Vec<(String, String)>,
    /// Whether there was no store, and one was made.
    pub is_new: bool,
    /// Objects that the trees have, but for those within images.
    pub objects: u64,
    /// Objects that were written; in a dry run those that would be read.
    pub new_objects: u64,
    /// Their bytes.
    pub logical_bytes: u64,
    /// Stored bytes that were read for them.
    pub stored_bytes: u64,
    /// Objects and images that the store took before and that were looked at: whether they are there, and have the size that they are to have.
    pub checked_objects: u64,
    /// Of these, the ones that were read and compared with their names, or for which the kernel vouched.
    pub hashed_objects: u64,
    /// Objects that were there, were not what their names say, and were replaced.
    pub repaired_objects: u64,
    /// Whether the objects and images are sealed.
    #[serde(rename = "sealed")]
    pub is_sealed: bool,
    /// Objects and images that were sealed.
    pub sealed_objects: u64,
}

#[derive(Serialize)]
struct SetRef<'a> {
    name: &'a str,
    image: &'a str,
}

fn refs<S: Serializer>(refs: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(refs.iter().map(|(name, image)| SetRef { name, image }))
}
