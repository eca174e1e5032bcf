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
            Self::Filled(what) => write!(f, "holds {what}, which sealift did not write there"),
            Self::Damaged { path, problem } => {
                write!(f, "has a damaged install record: {}: {problem}", path.display())
            }
        }
    }
}
