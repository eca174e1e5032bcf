//! The result of an import.

use serde::{Serialize, Serializer};

/// What was imported, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ImportStats {
    /// Names in the store, `BUNDLE/REF`, and their images now, as `sha256:` and hexadecimal digits.
    #[serde(serialize_with = "refs")]
    pub refs: Vec<(String, String)>,
    /// Whether a new store was created.
    pub is_new: bool,
    /// Objects of the trees, except those stored inside images.
    pub objects: u64,
    /// Objects that were written; in a dry run, those that would be read.
    pub new_objects: u64,
    /// Their bytes.
    pub logical_bytes: u64,
    /// Stored bytes read for them.
    pub stored_bytes: u64,
    /// Previously imported objects and images that were checked for presence and size.
    pub checked_objects: u64,
    /// Those of them that were read and compared with their names, or that the kernel vouched for.
    pub hashed_objects: u64,
    /// Objects that existed, did not match their names, and were replaced.
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
