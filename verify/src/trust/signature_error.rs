//! Why a signature is refused.

use super::wire::Malformed;
use super::{KeyError, UnknownSignature};

/// Why a signature is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignatureError {
    /// It is not an SSH signature in its canonical form.
    #[error("the SSH signature is malformed: {0}")]
    Malformed(&'static str),
    /// The key in it is refused.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// It was made for another namespace.
    #[error("it was made for the namespace {0:?}, not for \"sealift\"")]
    Namespace(String),
    /// This version cannot check it. Beside other signatures, it does not fail a bundle.
    #[error(transparent)]
    Unknown(Box<UnknownSignature>),
    /// An authenticator signed without being touched.
    #[error("the authenticator signed without a touch, as it does with a key made with no-touch-required")]
    NoTouch,
    /// There are more signatures than a bundle can have.
    #[error("there are {number} signatures, but a bundle can have at most 64")]
    TooMany {
        /// How many there are.
        number: usize,
    },
    /// The signature does not match these bytes and this key.
    #[error("it does not match the signed bytes; the bundle or the signature was changed")]
    Mismatch,
}

impl SignatureError {
    /// Returns the signature, if all that is wrong is that this version cannot check it.
    #[must_use]
    pub fn unknown(&self) -> Option<&UnknownSignature> {
        match self {
            Self::Unknown(unknown) => Some(unknown),
            _ => None,
        }
    }
}

impl From<Malformed> for SignatureError {
    fn from(Malformed(what): Malformed) -> Self {
        Self::Malformed(what)
    }
}
