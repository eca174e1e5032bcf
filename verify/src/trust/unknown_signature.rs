//! Signatures that this version cannot check.

use super::{KeyId, KeyType};

/// A well-formed signature that this version does not accept, such as one by a later algorithm. It is reported and not counted, and does not fail
/// the bundle (trust 3).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this version does not accept {what}")]
#[non_exhaustive]
pub struct UnknownSignature {
    /// The id of the key that it names.
    pub key: KeyId,
    /// The key's type as the bundle states it, which may be any text.
    pub key_type: String,
    /// What is not accepted.
    pub what: Unaccepted,
}

/// What a signature names that this version does not accept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unaccepted {
    /// The key is a certificate.
    #[error("certificates, such as {0:?}")]
    Certificate(String),
    /// The key is of another type.
    #[error("keys of type {0:?}")]
    KeyType(String),
    /// An RSA key is too short or too long.
    #[error("RSA keys of {0} bits")]
    RsaBits(usize),
    /// The hash algorithm of the message.
    #[error("the hash algorithm {0:?}")]
    Hash(String),
    /// The signature algorithm.
    #[error("the signature algorithm {algorithm:?} for keys of type {key_type}")]
    Algorithm {
        /// The algorithm that the signature names.
        algorithm: String,
        /// The key's type.
        key_type: KeyType,
    },
}
