//! Errors of the kernel's calls.

use std::io;

use nix::errno::Errno;
use sealift_format::verity::{FileDigest, Parameters};

/// Why a call of the kernel failed for a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// The file system, or the kernel, has no fs-verity.
    #[error("its file system does not support fs-verity")]
    Unsupported,
    /// It is sealed already: the kernel's answer to a second attempt.
    #[error("already sealed")]
    Sealed,
    /// It is sealed with other parameters than those requested, which cannot be changed.
    #[error("already sealed, with {found}")]
    OtherParameters {
        /// Its parameters, as far as they are known.
        found: String,
    },
    /// It is sealed, and its digest is not the expected one.
    #[error("it is sealed, and its digest is {found}, not {expected}")]
    OtherDigest {
        /// The digest that it should have.
        expected: FileDigest,
        /// The digest that it has.
        found: FileDigest,
    },
    /// It is not sealed.
    #[error("not sealed")]
    NotSealed,
    /// It is open for writing.
    #[error("it is open for writing")]
    OpenForWriting,
    /// Another program is sealing it.
    #[error("another program is sealing it")]
    Busy,
    /// It is not a regular file.
    #[error("only regular files can be sealed")]
    NotRegular,
    /// It is too long for its file system to seal.
    #[error("it is too long to be sealed on this file system")]
    TooLong,
    /// This kernel or file system does not support the parameters.
    #[error(
        "this kernel does not support blocks of {block_len} bytes with {algorithm} on this file system: 4096 bytes and sha256 \
         work everywhere"
    )]
    Parameters {
        /// The length of a block in bytes.
        block_len: u32,
        /// The hash's name.
        algorithm: &'static str,
    },
    /// The hash is not built into this kernel.
    #[error("this kernel has no {algorithm}")]
    NoAlgorithm {
        /// The hash's name.
        algorithm: &'static str,
    },
    /// The process may not write to the file.
    #[error("sealing a file requires write permission")]
    NotWritable,
    /// The file's flags or a setting of the kernel forbid sealing it.
    #[error(
        "it is immutable or append-only (lsattr shows it), or this kernel requires a built-in signature \
         (fs.verity.require_signatures)"
    )]
    NotPermitted,
    /// The file system is mounted read-only.
    #[error("its file system is mounted read-only")]
    ReadOnly,
    /// The built-in signature is not a PKCS#7 message that the kernel accepts.
    #[error("the built-in signature is not a PKCS#7 message that this kernel accepts")]
    SignatureForm,
    /// The built-in signature is longer than the kernel accepts.
    #[error("the built-in signature is too long: the kernel accepts at most 16128 bytes")]
    SignatureTooLong,
    /// No certificate in the kernel's keyring matches the built-in signature.
    #[error("no certificate in the kernel's keyring .fs-verity matches the built-in signature")]
    SignatureKey,
    /// The built-in signature is for other content, or damaged.
    #[error("the built-in signature is for other content, or damaged")]
    SignatureOther,
    /// The kernel lacks an algorithm of the built-in signature.
    #[error(
        "this kernel cannot check the built-in signature: it lacks the hash or key algorithm, which modules such as ecdsa_generic and rsa_generic provide"
    )]
    SignatureAlgorithm,
    /// Another error.
    #[error(transparent)]
    System(#[from] io::Error),
}

impl KernelError {
    /// Returns whether the kernel rejects the built-in signature, so that the file might be sealed without it.
    #[must_use]
    pub fn is_about_signature(&self) -> bool {
        matches!(
            self,
            Self::SignatureForm
                | Self::SignatureTooLong
                | Self::SignatureKey
                | Self::SignatureOther
                | Self::SignatureAlgorithm
        )
    }

    /// Returns the error of opening a sealed file, if it is about its built-in signature.
    #[must_use]
    pub fn of_open(error: &io::Error) -> Option<Self> {
        match error.raw_os_error().map(Errno::from_raw)? {
            Errno::ENOKEY => Some(Self::SignatureKey),
            Errno::EKEYREJECTED => Some(Self::SignatureOther),
            _ => None,
        }
    }

    /// Returns the error of FS_IOC_ENABLE_VERITY.
    pub(super) fn of_enable(errno: Errno, parameters: &Parameters, is_signed: bool) -> Self {
        let algorithm = parameters.algorithm().name();
        match errno {
            Errno::ENOTTY | Errno::EOPNOTSUPP => Self::Unsupported,
            Errno::EEXIST => Self::Sealed,
            Errno::ETXTBSY => Self::OpenForWriting,
            Errno::EBUSY => Self::Busy,
            Errno::EISDIR => Self::NotRegular,
            Errno::EFBIG => Self::TooLong,
            Errno::EINVAL => Self::Parameters { block_len: parameters.block_len(), algorithm },
            Errno::ENOPKG if is_signed => Self::SignatureAlgorithm,
            Errno::ENOPKG => Self::NoAlgorithm { algorithm },
            Errno::EACCES => Self::NotWritable,
            Errno::EPERM => Self::NotPermitted,
            Errno::EROFS => Self::ReadOnly,
            Errno::EBADMSG => Self::SignatureForm,
            Errno::EMSGSIZE => Self::SignatureTooLong,
            Errno::ENOKEY => Self::SignatureKey,
            Errno::EKEYREJECTED => Self::SignatureOther,
            other => Self::System(other.into()),
        }
    }

    /// Returns the error of the calls that read: FS_IOC_MEASURE_VERITY and FS_IOC_READ_VERITY_METADATA.
    pub(super) fn of_read(errno: Errno) -> Self {
        match errno {
            Errno::ENOTTY | Errno::EOPNOTSUPP => Self::Unsupported,
            Errno::ENODATA => Self::NotSealed,
            other => Self::System(other.into()),
        }
    }
}
