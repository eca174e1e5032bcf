//! What has changed since a bundle was installed.

use core::fmt;

use super::{KeyId, Standing, time::Utc};

/// A change since the bundle was installed. It is reported, but does not count as a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Since {
    /// The device installed a newer version of this name.
    Newer {
        /// The newest version.
        version: u64,
    },
    /// It has expired.
    Expired {
        /// When it expired.
        expires: i64,
    },
    /// A key that signed it is no longer trusted.
    Key {
        /// The key.
        key: KeyId,
        /// Its standing now.
        standing: Standing,
    },
    /// More keys are now needed than have signed it.
    Threshold {
        /// How many are needed.
        needed: usize,
    },
    /// The device has other tags now.
    OtherDevice,
}

impl fmt::Display for Since {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Newer { version } => write!(f, "version {version} was installed on this device"),
            Self::Expired { expires } => write!(f, "it expired at {}", Utc(*expires)),
            Self::Key { key, standing } => write!(f, "its key {key} is now {standing}"),
            Self::Threshold { needed } => write!(f, "{needed} signatures are now required"),
            Self::OtherDevice => f.write_str("its tags no longer match this device"),
        }
    }
}
