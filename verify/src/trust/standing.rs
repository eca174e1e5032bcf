//! Whether this device trusts a key that signed, or why not.

use core::fmt;

use super::time::Utc;

/// What the administrator's files say about a key that made a valid signature.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standing {
    /// It is trusted.
    Trusted {
        /// The line of the allowed signers that lists it.
        line: usize,
        /// The comment on that line.
        comment: String,
    },
    /// It is revoked.
    Revoked {
        /// Whether the allowed signers trust it otherwise.
        listed: bool,
    },
    /// Its period of validity has ended.
    NoLonger {
        /// The line of the allowed signers.
        line: usize,
        /// The last second of the period.
        before: i64,
    },
    /// Its period of validity has not begun.
    NotYet {
        /// The line of the allowed signers.
        line: usize,
        /// The first second of the period.
        after: i64,
    },
    /// It is listed for other names than the bundle's.
    OtherName {
        /// The line of the allowed signers.
        line: usize,
        /// The patterns on that line.
        principals: String,
    },
    /// It is listed without `namespaces="sealift"`.
    OtherNamespace {
        /// The line of the allowed signers.
        line: usize,
    },
    /// No line lists this key.
    NotListed,
}

impl Standing {
    /// Returns whether a signature by this key counts.
    #[must_use]
    pub fn is_trusted(&self) -> bool {
        matches!(self, Self::Trusted { .. })
    }

    /// Returns a number that is higher the closer the key is to being trusted.
    pub(super) fn rank(&self) -> u8 {
        match self {
            Self::NotListed => 0,
            Self::OtherNamespace { .. } => 1,
            Self::OtherName { .. } => 2,
            Self::NotYet { .. } => 3,
            Self::NoLonger { .. } => 4,
            Self::Revoked { .. } => 5,
            Self::Trusted { .. } => 6,
        }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trusted { line, comment } if comment.is_empty() => {
                write!(f, "trusted by line {line}")
            }
            Self::Trusted { line, comment } => write!(f, "trusted by line {line}, {comment:?}"),
            Self::Revoked { .. } => f.write_str("revoked"),
            Self::NoLonger { line, before } => {
                write!(f, "not valid after {} by line {line}", Utc(*before))
            }
            Self::NotYet { line, after } => {
                write!(f, "not valid before {} by line {line}", Utc(*after))
            }
            Self::OtherName { line, principals } => {
                write!(f, "listed on line {line} for {principals:?} only")
            }
            Self::OtherNamespace { line } => {
                write!(f, "listed on line {line} without namespaces=\"sealift\"")
            }
            Self::NotListed => f.write_str("not listed"),
        }
    }
}
