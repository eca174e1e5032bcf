//! Why a slot cannot be used.

use super::RecordFault;

/// What is wrong with a slot, worded as the end of a sentence about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SlotFault {
    /// It is something else than a block device or a regular file.
    #[error("is {0}, not a block device or a regular file")]
    Kind(&'static str),
    /// Something uses it.
    #[error("is in use: {0}")]
    InUse(String),
    /// The kernel refuses to write to it.
    #[error("is read-only")]
    ReadOnly,
    /// It is a file that is sealed with fs-verity.
    #[error("is sealed with fs-verity, and nothing can be written to it")]
    Sealed,
    /// The image does not fit.
    #[error("is too small: it has {size} bytes, and the image {needed}")]
    TooSmall {
        /// Bytes of the image.
        needed: u64,
        /// Bytes of the slot.
        size: u64,
    },
    /// The base of a delta would be overwritten while it is read.
    #[error("is also the bundle or its base, or part of it, and would be overwritten while it is read")]
    IsBase,
    /// Two images are to be written to it.
    #[error("is given twice")]
    Twice,
    /// It has another label than expected.
    #[error("has the partition label {found:?}, not {expected:?}")]
    Label {
        /// What was expected.
        expected: String,
        /// What it has; empty if it has none.
        found: String,
    },
    /// It has another partition UUID than expected.
    #[error("has the partition UUID {found:?}, not {expected:?}")]
    Uuid {
        /// What was expected.
        expected: String,
        /// What it has; empty if it has none.
        found: String,
    },
    /// Its record belongs to something else.
    #[error("{0}")]
    Record(RecordFault),
    /// A run that was writing to it did not end.
    #[error("is not complete: a run that was writing to it was interrupted")]
    Unfinished,
    /// It was read again after it was written, and has other bytes.
    #[error("returns other bytes than were written to it, in bytes {start} to {end}: the device is failing")]
    ReadsOther {
        /// The first byte of the first range that differs.
        start: u64,
        /// The end of that range.
        end: u64,
    },
}
