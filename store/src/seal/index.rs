//! Seals the index of a bundle, with the kernel signature that the bundle carries (kernel-signatures 3).

use std::os::fd::BorrowedFd;
use std::path::Path;

use sealift_format::{Envelope, Head};
use sealift_verify::fsverity::{self, KernelError};

use serde::{Serialize, Serializer};

use super::{Parameters, seal_open};
use crate::Error;

/// What happened to a bundle's signature for the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "there is no fourth")]
pub enum KernelSignature {
    /// The bundle has none, or this run sealed no index.
    #[default]
    None,
    /// The index is sealed with it.
    Taken,
    /// The kernel refused it, and the index is sealed without.
    Refused {
        /// The kernel's reason.
        why: String,
        /// Whether the reason is that the kernel has no certificate for it.
        is_key_unknown: bool,
    },
}

/// In JSON it is a word, or `null` if there is none.
impl Serialize for KernelSignature {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => serializer.serialize_none(),
            Self::Taken => serializer.serialize_str("taken"),
            Self::Refused { .. } => serializer.serialize_str("refused"),
        }
    }
}

/// A signature for the kernel, and whether sealing requires it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WantedSignature<'a> {
    pub(crate) body: &'a [u8],
    pub(crate) is_required: bool,
}

impl<'a> WantedSignature<'a> {
    /// Returns the signature in a bundle's head, if any.
    pub(crate) fn of(head: &'a Head, is_required: bool) -> Option<Self> {
        head.bodies(Envelope::KERNEL_SIGNATURE).next().map(|body| Self { body, is_required })
    }
}

/// Seals the file of an index, with a signature if there is one, and checks that the kernel reports this digest. `path` is its name, for messages.
///
/// # Errors
/// Returns an error if the kernel refuses to seal it, or refuses a required signature.
pub(crate) fn seal_index(
    file: BorrowedFd<'_>,
    path: &Path,
    digest: [u8; 32],
    signature: Option<WantedSignature<'_>>,
) -> Result<KernelSignature, Error> {
    let failed = |error| Error::kernel(path, error);
    let seal = |signature| seal_open(file, &Parameters::default(), signature);
    let outcome = match signature {
        None => seal(None).map(|_| KernelSignature::None).map_err(failed)?,
        Some(wanted) => match seal(Some(wanted.body)) {
            Ok(_) => KernelSignature::Taken,
            Err(source) if source.is_about_signature() && wanted.is_required => {
                return Err(Error::SignatureRefused { path: path.to_owned(), source: Box::new(source) });
            }
            Err(source) if source.is_about_signature() => {
                tracing::info!(%source, "the kernel refuses the bundle's signature for it");
                seal(None).map_err(failed)?;
                KernelSignature::Refused {
                    why: source.to_string(),
                    is_key_unknown: matches!(source, KernelError::SignatureKey),
                }
            }
            Err(source) => return Err(failed(source)),
        },
    };
    fsverity::check(file, &digest.into()).map_err(failed)?;
    Ok(outcome)
}

/// Returns whether an open file is sealed with a signature for the kernel; `None` if the file system cannot tell.
pub(crate) fn has_signature(file: BorrowedFd<'_>) -> Result<Option<bool>, KernelError> {
    let mut byte = [0];
    match fsverity::read_metadata(file, fsverity::SealMetadata::Signature, 0, &mut byte) {
        Ok(_) => Ok(Some(true)),
        Err(KernelError::NotSealed) => Ok(Some(false)),
        Err(KernelError::Unsupported) => Ok(None),
        Err(error) => Err(error),
    }
}
