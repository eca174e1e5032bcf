//! Decides whether installed files are sealed: for directories, repositories and stores alike, before anything is written.

use std::path::Path;

use sealift_verify::kernel::KernelError;

use crate::Error;

/// Whether the kernel is to keep what is unpacked as it is (fs-verity).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a caller chooses one")]
pub enum Seal {
    /// As the last bundle's files in the target are; those of a new target are not.
    #[default]
    AsBefore,
    /// No.
    Off,
    /// Where the target's file system can.
    Try,
    /// Yes; where the file system cannot, or the kernel does not take the signature for it that the bundle carries, nothing is unpacked.
    Require,
}

impl Seal {
    /// Whether new files are to be sealed. `was_on` says whether those of the last bundle are; `is_supported` is asked only where it matters.
    ///
    /// # Errors
    /// The file system, at `path`, has no fs-verity, and that was required.
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
        tracing::debug!(is_on, was_on, "found out whether files are to be sealed");
        if is_wished && !is_on && self != Self::Try {
            return Err(Error::kernel(path, KernelError::Unsupported));
        }
        Ok(is_on)
    }

    /// Whether an index is not to be sealed without the signature for the kernel that its bundle carries. `was_signed` says whether the last
    /// bundle's was sealed with one.
    pub(crate) fn requires_signature(self, was_signed: bool) -> bool {
        match self {
            Self::Off | Self::Try => false,
            // A publisher who begins to sign for kernels does not stop the devices that have no certificate.
            Self::AsBefore => was_signed,
            Self::Require => true,
        }
    }
}
