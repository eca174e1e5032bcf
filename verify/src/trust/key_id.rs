//! The id of a key, used in lists, in state and in messages.

use core::fmt;
use core::str::FromStr;

use base64ct::{Base64, Encoding};
use sha2::{Digest, Sha256};

/// The SHA-256 of a public key's canonical blob, shown as `ssh-keygen -l` does.
///
/// The parser accepts only one encoding of each key, so equal keys have equal
/// ids, and one key cannot count twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId([u8; 32]);

impl KeyId {
    /// Returns the id of a public key blob.
    #[must_use]
    pub fn of_blob(blob: &[u8]) -> Self {
        Self(Sha256::digest(blob).into())
    }

    /// Returns the id with these 32 bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the 32 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without padding, as OpenSSH writes it.
        write!(f, "SHA256:{}", Base64::encode_string(&self.0).trim_end_matches('='))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not a key id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a key id such as `ssh-keygen -l` prints, SHA256: and 43 characters")]
pub struct KeyIdError(String);

impl FromStr for KeyId {
    type Err = KeyIdError;

    fn from_str(text: &str) -> Result<Self, KeyIdError> {
        text.strip_prefix("SHA256:")
            .and_then(|base64| Base64::decode_vec(&format!("{base64}=")).ok())
            .and_then(|bytes| bytes.try_into().ok())
            .map(Self)
            .ok_or_else(|| KeyIdError(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_bytes_agree() {
        let id = KeyId::of_blob(b"a key");
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(id.to_string().len(), 50);
        for text in ["", "SHA256:", "MD5:00", &id.to_string()[7..], &format!("{id}=")] {
            assert!(text.parse::<KeyId>().is_err(), "{text}");
        }
    }
}
