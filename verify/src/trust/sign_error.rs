//! Why no signature was made. Callers that never sign have it too, so that their errors have the same variants.

use super::{KeyError, KeyType, SignatureError};

/// Why no signature was made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignError {
    /// The file is not a private key that can be read.
    #[error("it is not an OpenSSH private key")]
    NotAPrivateKey,
    /// The file is a public key.
    #[error("it is a public key")]
    PublicKey,
    /// The key is encrypted, and no passphrase was given.
    #[error("it is encrypted and needs its passphrase")]
    PassphraseNeeded,
    /// A new key's passphrase is empty.
    #[error("the passphrase is empty")]
    EmptyPassphrase,
    /// The passphrase does not open the key.
    #[error("wrong passphrase")]
    WrongPassphrase,
    /// The key signs only through ssh-agent.
    #[error("keys of type {0} sign only through ssh-agent")]
    AgentOnly(KeyType),
    /// The key's public half is refused.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The signer's answer is not a signature by this key for this message.
    #[error("the signer returned an invalid signature: {0}")]
    Answer(#[from] SignatureError),
}
