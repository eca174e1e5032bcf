//! Why an install record does not show what a target holds.

use std::fmt;
use std::path::PathBuf;

/// What is wrong with a target's install record, worded as the end of a sentence about the target.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordFault {
    /// There is none.
    Missing {
        /// Name and version of the bundle that this device installed there, according to its list of targets.
        listed: Option<(String, u64)>,
    },
    /// It belongs to another directory.
    OfAnother,
    /// It belongs to another device or file, which had the name of this slot.
    OtherSlot,
    /// It belongs to the partition when that had another size.
    Resized {
        /// Bytes that it had when it was written.
        before: u64,
        /// Bytes that it has.
        now: u64,
    },
    /// There is none, and the slot holds something.
    Filled(&'static str),
    /// Some of it cannot be read.
    Damaged {
        /// The file, or the record's directory.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

impl RecordFault {
    /// Returns whether the record is sound, but belongs to something else.
    #[must_use]
    pub fn is_of_another(&self) -> bool {
        matches!(self, Self::OfAnother | Self::OtherSlot | Self::Resized { .. })
    }
}

impl fmt::Display for RecordFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { listed: None } => {
                f.write_str("was not unpacked by sealift, or has lost its install record")
            }
            Self::Missing { listed: Some((name, version)) } => {
                write!(f, "has lost its install record: this device installed {name} version {version} there")
            }
            Self::OfAnother => f.write_str(
                "is not the directory that sealift unpacked: it was copied, moved or restored from a backup, and its install record belongs to \
                 another directory",
            ),
            Self::OtherSlot => f.write_str(
                "is not the device or file that sealift wrote under this name: it was replaced, copied or restored from a backup, and its install \
                 record belongs to the one before",
            ),
            Self::Resized { before, now } => {
                write!(f, "was resized since sealift wrote it: its partition had {before} bytes, and has {now}")
            }
            Self::Filled(what) => write!(f, "holds {what}, which sealift did not write there"),
            Self::Damaged { path, problem } => {
                write!(f, "has a damaged install record: {}: {problem}", path.display())
            }
        }
    }
}
