//! Why a public key is refused.

use super::wire::Malformed;

/// Why a public key is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The blob is not a public key in its canonical form.
    #[error("the public key is malformed: {0}")]
    Malformed(&'static str),
    /// It is a certificate.
    #[error("{0:?} is a certificate, but Sealift accepts only plain keys")]
    Certificate(String),
    /// It is of a type that Sealift does not accept.
    #[error(
        "a key of type {0:?} is not accepted, only ssh-ed25519, ecdsa-sha2-nistp256, \
         their sk- variants, and ssh-rsa with 3072 bits or more"
    )]
    Unsupported(String),
    /// An RSA key that is too short or too long.
    #[error("an RSA key of {bits} bits is not accepted, only one of 3072 to 16384 bits")]
    RsaBits {
        /// The length of the modulus.
        bits: usize,
    },
}

impl From<Malformed> for KeyError {
    fn from(Malformed(what): Malformed) -> Self {
        Self::Malformed(what)
    }
}
