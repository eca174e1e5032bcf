//! What an installation did, or would do. It is serialized for programs under these names.

use serde::Serialize;

use crate::seal::KernelSignature;

/// What targets of all kinds report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct InstallStats {
    /// Bytes of the contents that were written.
    pub logical_bytes: u64,
    /// Stored bytes read for them.
    pub stored_bytes: u64,
    /// In a dry run, the requests that reading a bundle at an address takes; `None` otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// Whether the target's files, or its new objects, are sealed.
    #[serde(rename = "sealed")]
    pub is_sealed: bool,
    /// What happened to the bundle's signature for the kernel when the recorded index was sealed.
    pub kernel_signature: KernelSignature,
    /// The version that this device had installed there, if the target had gone back to an older one together with its record.
    pub gone_back_from: Option<u64>,
}

/// What repositories and stores report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ImportStats {
    /// The refs that were set.
    pub refs: Vec<SetRef>,
    /// What all targets report.
    #[serde(flatten)]
    pub install: InstallStats,
    /// Previously imported objects that were checked for presence, size and time.
    pub checked_objects: u64,
    /// Those of them that were read and compared with their names, or that the kernel vouched for.
    pub hashed_objects: u64,
    /// Objects that existed, did not match their names, and were replaced.
    pub repaired_objects: u64,
    /// Objects that were sealed.
    pub sealed_objects: u64,
    /// Objects that an interrupted import had written, and that were read again and taken.
    pub resumed_objects: u64,
}

/// A ref, and what it now names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(clippy::exhaustive_structs, reason = "a ref has no more")]
pub struct SetRef {
    /// The ref's name in the target.
    pub name: String,
    /// What it names.
    #[serde(flatten)]
    pub value: RefValue,
}

/// What a ref names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(clippy::exhaustive_enums, reason = "one for each kind of target")]
pub enum RefValue {
    /// A commit of an OSTree repository, in hexadecimal.
    Commit(String),
    /// An image of a composefs store, as `sha256:` and hexadecimal digits.
    Image(String),
}

impl std::fmt::Display for RefValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Commit(text) | Self::Image(text) => f.write_str(text),
        }
    }
}
