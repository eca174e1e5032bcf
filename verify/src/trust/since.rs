//! What has changed since a bundle was installed.

use core::fmt;

use super::{KeyId, Standing, time::Utc};

/// What has changed since the bundle was installed; reported, but not counted as a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Since {
    /// The device installed a newer version of this name.
    Newer {
        /// The newest.
        version: u64,
    },
    /// Its expiry passed.
    Expired {
        /// When.
        expires: i64,
    },
    /// A key that signed it counts no more.
    Key {
        /// The key.
        key: KeyId,
        /// What it is now.
        standing: Standing,
    },
    /// More keys are needed now than have signed it.
    Threshold {
        /// How many.
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
