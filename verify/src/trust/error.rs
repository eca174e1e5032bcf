//! Why a bundle must not be used.

use sealift_format::Kind;

use super::{Now, Shortfall, SignatureError, Utc};
use crate::kernel_signature::FormError;

/// Why a bundle must not be used. Errors in the administrator's own files are
/// a [`TrustFileError`](super::TrustFileError) instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A signature is malformed, not accepted, or does not match.
    #[error("signature {number}: {problem}")]
    Signature {
        /// Its number among the bundle's SSH signatures, counted from 1.
        number: usize,
        /// What is wrong with it.
        problem: SignatureError,
    },
    /// The signature for the kernel is malformed, or there are several.
    #[error("kernel signature: {problem}")]
    KernelSignature {
        /// What is wrong with it.
        problem: FormError,
    },
    /// Too few trusted keys signed.
    #[error("{0}")]
    Untrusted(Box<Shortfall>),
    /// Enough keys signed, but some of them are revoked.
    #[error("{0}")]
    Revoked(Box<Shortfall>),
    /// It has expired.
    #[error("it expired at {}, and it is now {now}", Utc(*.expires))]
    Expired {
        /// The time from which it must not be used.
        expires: i64,
        /// The time of the judgement.
        now: Now,
    },
    /// The device has installed a later version.
    #[error("version {version} of {name:?} is older than version {floor}, the lowest accepted here")]
    Downgrade {
        /// The bundle's name.
        name: String,
        /// The bundle's version.
        version: u64,
        /// The lowest version that this device accepts.
        floor: u64,
    },
    /// The device has taken a later list of the channel.
    #[cfg(not(target_arch = "wasm32"))]
    #[error("list {sequence} of {name:?} is older than list {taken}, which this device has taken")]
    OldList {
        /// The list's name.
        name: String,
        /// The list's sequence.
        sequence: u64,
        /// The highest sequence that this device has taken.
        taken: u64,
    },
    /// It is for other devices.
    #[error("it is for devices tagged {}, but this device is tagged {}", quoted(.tags), quoted(.device))]
    Incompatible {
        /// The bundle's tags.
        tags: Vec<String>,
        /// The device's tags.
        device: Vec<String>,
    },
    /// It is for certain devices, and no tags were stated for this one.
    #[error("it is for devices tagged {}, but this device has no tags", quoted(.tags))]
    DeviceUnknown {
        /// The bundle's tags.
        tags: Vec<String>,
    },
}

/// Returns tags in quotation marks.
fn quoted(tags: &[String]) -> String {
    let quoted: Vec<String> = tags.iter().map(|tag| format!("\"{tag}\"")).collect();
    quoted.join(", ")
}

impl Error {
    /// Returns the kind of failure.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Signature { .. } | Self::KernelSignature { .. } => Kind::Signature,
            Self::Untrusted(_) => Kind::Untrusted,
            Self::Revoked(_) => Kind::Revoked,
            Self::Expired { .. } => Kind::Expired,
            Self::Downgrade { .. } => Kind::Downgrade,
            #[cfg(not(target_arch = "wasm32"))]
            Self::OldList { .. } => Kind::Downgrade,
            Self::Incompatible { .. } | Self::DeviceUnknown { .. } => Kind::Incompatible,
        }
    }
}

impl From<FormError> for Error {
    fn from(problem: FormError) -> Self {
        Self::KernelSignature { problem }
    }
}
