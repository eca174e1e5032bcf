//! OSTree objects in the form of libostree 2022.7: commits, directories, and the headers of files.
//!
//! They are GVariants (GLib's GVariant specification), named by their SHA-256. Parsers accept only the normal form of a value, so that an object
//! that was parsed encodes to the same bytes.

mod attributes;
mod commit;
mod dictionary;
pub mod dirmeta;
mod dirtree;
pub mod file;
mod framing;
mod normal;
pub mod ostreemeta;
mod summary;
mod types;

pub use commit::Commit;
pub use dictionary::{Dictionary, Value};
pub use dirtree::DirTree;
pub use summary::{Summary, SummaryRef, SummaryRefs};

/// The SHA-256 that names an object.
pub type Checksum = [u8; 32];

/// The length in bytes of the longest metadata object that libostree reads (`OSTREE_MAX_METADATA_SIZE`).
pub const METADATA_LEN_MAX: u64 = 128 << 20;

/// The bytes break a rule of GVariant or of OSTree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an OSTree object in normal form: {reason}")]
pub struct Malformed {
    reason: &'static str,
}

impl Malformed {
    pub(crate) const fn new(reason: &'static str) -> Self {
        Self { reason }
    }

    /// Returns the rule that they break.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        self.reason
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec::Vec;

    use proptest::prelude::*;
    use sha2::{Digest as _, Sha256};

    use super::Checksum;
    use crate::{Attributes, Xattr};

    pub(super) fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| std::format!("{byte:02x}")).collect()
    }

    pub(super) fn unhex(text: &str) -> Checksum {
        core::array::from_fn(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).expect("it is hexadecimal"))
    }

    pub(super) fn sum(bytes: &[u8]) -> String {
        hex(&Sha256::digest(bytes))
    }

    /// Returns attributes for a file of this type.
    pub(super) fn some_attributes(file_type: u16) -> impl Strategy<Value = Attributes> {
        let xattrs = prop::collection::btree_map(
            prop::collection::vec(1..=255_u8, 1..=255),
            prop::collection::vec(any::<u8>(), 0..300),
            0..4,
        );
        (0..0o10000_u16, 0..u32::MAX, 0..u32::MAX, xattrs).prop_map(move |(mode, uid, gid, xattrs)| {
            let xattrs: Vec<Xattr> = xattrs.into_iter().map(|(name, value)| Xattr { name, value }).collect();
            Attributes { mode: file_type | mode, uid, gid, xattrs: xattrs.try_into().expect("they fit") }
        })
    }
}
