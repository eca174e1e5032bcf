//! Why a file that was given cannot be used.

use sealift_verify::kernel_signature::KernelSignError;
use sealift_verify::trust::{SignError, SignatureError, TrustFileError};

use super::OrderFault;

/// What a file was to be, and why it is not.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileFault {
    /// An order profile, or a file to import as one, is malformed.
    #[error(transparent)]
    Order(OrderFault),
    /// An administrator's file is invalid.
    #[error(transparent)]
    Trust(TrustFileError),
    /// A key file cannot be used, or signing with it failed.
    #[error(transparent)]
    Key(SignError),
    /// A key or certificate for kernel signatures cannot be used, or signing with it failed.
    #[error(transparent)]
    KernelKey(KernelSignError),
    /// A signature to attach does not match this bundle.
    #[error(transparent)]
    Signature(SignatureError),
    /// A signature for the kernel to attach is invalid, or does not match this bundle.
    #[error(transparent)]
    KernelSignature(KernelSignError),
}
