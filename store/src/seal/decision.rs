//! Decides whether installed files are sealed: for directories, repositories and stores alike, before anything is written.

use std::path::Path;

use sealift_verify::fsverity::KernelError;

use crate::Error;

/// Whether the kernel should protect unpacked files from changes (fs-verity).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a caller chooses one")]
pub enum Seal {
    /// If the last bundle's files in the target are sealed; those of a new target are not.
    #[default]
    AsBefore,
    /// Never.
    Off,
    /// If the target's file system supports it.
    Try,
    /// Always; if the file system does not support it, or the kernel refuses the bundle's signature for it, nothing is unpacked.
    Require,
}

impl Seal {
    /// Returns whether to seal new files. `was_on` tells whether those of the last bundle are; `is_supported` is called only if it matters.
    ///
    /// # Errors
    /// Returns an error if the file system at `path` has no fs-verity, and that was required.
    pub(crate) fn decide(
        self,
        was_on: bool,
        path: &Path,
        is_supported: impl FnOnce() -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let is_wished = match self {
            Self::Off => false,
            Self::AsBefore => was_on,
            Self::Try | Self::Require => true,
        };
        let is_on = is_wished && is_supported()?;
        tracing::debug!(is_on, was_on, "decided whether to seal files");
        if is_wished && !is_on && self != Self::Try {
            return Err(Error::kernel(path, KernelError::Unsupported));
        }
        Ok(is_on)
    }

    /// Returns whether an index must not be sealed without the bundle's signature for the kernel. `was_signed` tells whether the last bundle's
    /// index was sealed with one.
    pub(crate) fn requires_signature(self, was_signed: bool) -> bool {
        match self {
            Self::Off | Self::Try => false,
            // A publisher who starts to sign for kernels must not block devices without the certificate.
            Self::AsBefore => was_signed,
            Self::Require => true,
        }
    }
}
