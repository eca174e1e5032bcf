//! Why the kernel did not do what it was asked to.

use std::io;

use nix::errno::Errno;
use sealift_format::verity::{FileDigest, Parameters};

/// What the kernel said of a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// The file system, or the kernel, has no fs-verity.
    #[error("its file system does not support fs-verity")]
    Unsupported,
    /// It is sealed already, as the kernel says of a second attempt.
    #[error("already sealed")]
    Sealed,
    /// It is sealed with other parameters than were asked for, which cannot be changed.
    #[error("already sealed, with {found}")]
    OtherParameters {
        /// What is known of how it is sealed.
        found: String,
    },
    /// It is sealed, and its content is another than it should be.
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
    /// Somebody may write to it.
    #[error("it is open for writing")]
    OpenForWriting,
    /// Somebody else is sealing it.
    #[error("another program is sealing it")]
    Busy,
    /// It is no regular file.
    #[error("only regular files can be sealed")]
    NotRegular,
    /// It is too long for its file system to seal.
    #[error("it is too long to be sealed on this file system")]
    TooLong,
    /// The parameters are beyond this kernel or file system.
    #[error(
        "this kernel does not support blocks of {block_len} bytes with {algorithm} on this file system: 4096 bytes and sha256 \
         work everywhere"
    )]
    Parameters {
        /// Bytes of a block.
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
    /// The kernel's rules keep it from being sealed.
    #[error(
        "it is immutable or append-only (lsattr shows it), or this kernel requires a built-in signature \
         (fs.verity.require_signatures)"
    )]
    NotPermitted,
    /// The file system is mounted read-only.
    #[error("its file system is mounted read-only")]
    ReadOnly,
    /// The built-in signature is no PKCS#7 message that the kernel takes.
    #[error("the built-in signature is not a PKCS#7 message that this kernel accepts")]
    SignatureForm,
    /// The built-in signature is longer than the kernel takes.
    #[error("the built-in signature is too long: the kernel accepts at most 16128 bytes")]
    SignatureTooLong,
    /// No certificate in the kernel's keyring fits the built-in signature.
    #[error("no certificate in the kernel's keyring .fs-verity matches the built-in signature")]
    SignatureKey,
    /// The built-in signature is of another file.
    #[error("the built-in signature is for other content, or damaged")]
    SignatureOther,
    /// The kernel lacks what the built-in signature was made with.
    #[error(
        "this kernel cannot check the built-in signature: it lacks the hash or key algorithm, which modules such as ecdsa_generic and rsa_generic provide"
    )]
    SignatureAlgorithm,
    /// Something else.
    #[error(transparent)]
    System(#[from] io::Error),
}

impl KernelError {
    /// Returns whether it is the built-in signature that the kernel does not take, so that the file might be sealed without.
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

    /// Returns what opening a sealed file says, where it is about its built-in signature.
    #[must_use]
    pub fn of_open(error: &io::Error) -> Option<Self> {
        match error.raw_os_error().map(Errno::from_raw)? {
            Errno::ENOKEY => Some(Self::SignatureKey),
            Errno::EKEYREJECTED => Some(Self::SignatureOther),
            _ => None,
        }
    }

    /// Returns what FS_IOC_ENABLE_VERITY says.
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

    /// Returns what the calls say that read: FS_IOC_MEASURE_VERITY and FS_IOC_READ_VERITY_METADATA.
    pub(super) fn of_read(errno: Errno) -> Self {
        match errno {
            Errno::ENOTTY | Errno::EOPNOTSUPP => Self::Unsupported,
            Errno::ENODATA => Self::NotSealed,
            other => Self::System(other.into()),
        }
    }
}
