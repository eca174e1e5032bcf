//! Why a signature for the kernel was not made. Callers that never sign have it too.

use super::FormError;

/// Why a signature for the kernel was not made or not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KernelSignError {
    /// The file is not a private key in PEM.
    #[error("not a private key in PEM (PKCS#8)")]
    NotAKey,
    /// The key has a passphrase.
    #[error("it has a passphrase")]
    Encrypted,
    /// The key is of another kind.
    #[error("only RSA and P-256 keys can sign for the kernel")]
    KeyType,
    /// The RSA key has a length that the kernel does not accept.
    #[error("the kernel accepts RSA keys of 2048, 3072 or 4096 bits, but this one has {bits}")]
    KeyBits {
        /// Its length in bits.
        bits: usize,
    },
    /// The numbers in the key do not match each other.
    #[error("the private key is damaged")]
    DamagedKey,
    /// The file is not a certificate.
    #[error("not an X.509 certificate in PEM")]
    NotACertificate,
    /// The key is not the certificate's.
    #[error("the certificate belongs to another key")]
    OtherKey,
    /// It does not have the form of a signature for the kernel.
    #[error(transparent)]
    Form(#[from] FormError),
    /// It is a signature of another certificate's key.
    #[error("none of its signers matches the certificate")]
    OtherSigner,
    /// It signs more than the digest or uses other algorithms, which cannot be checked here.
    #[error("not a signature as made by `fsverity sign`: SHA-256, without signed attributes (openssl cms -noattr)")]
    NotPlain,
    /// It does not match the index.
    #[error("it is a signature for another index, or damaged")]
    Mismatch,
    /// The system gave no random bytes, or the certificate cannot be encoded again.
    #[error("cannot make a signature")]
    Failed,
}
