//! Why a signature is refused.

use super::wire::Malformed;
use super::{KeyError, KeyType};

/// Why a signature is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignatureError {
    /// Not an SSH signature in its one spelling.
    #[error("the SSH signature is malformed: {0}")]
    Malformed(&'static str),
    /// The key in it is refused.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Made for something else.
    #[error("it was made for the namespace {0:?}, not for \"sealift\"")]
    Namespace(String),
    /// A hash or signature algorithm that does not belong to the key.
    #[error("the algorithm {algorithm:?} is not accepted for a key of type {key_type}")]
    Algorithm {
        /// What the signature names.
        algorithm: String,
        /// The key's type.
        key_type: KeyType,
    },
    /// An authenticator signed without being touched.
    #[error("the authenticator signed without a touch, as it does with a key made with no-touch-required")]
    NoTouch,
    /// There are more than anybody needs, each of which would have to be checked.
    #[error("there are {number} signatures, but a bundle can have at most 64")]
    TooMany {
        /// As many.
        number: usize,
    },
    /// The signature does not fit these bytes and this key.
    #[error("it does not match the signed bytes; the bundle or the signature was changed")]
    Mismatch,
}

impl From<Malformed> for SignatureError {
    fn from(Malformed(what): Malformed) -> Self {
        Self::Malformed(what)
    }
}
