//! The result of a judgement.

use super::{KeyId, KeyType, PublicKey, SignatureError, Since, Standing, UnknownSignature};

/// Why the bundle may be used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verdict {
    /// The trusted keys that signed, each once.
    pub signers: Vec<TrustedSigner>,
    /// Valid signatures that did not count, each key once, and those that this
    /// version cannot check.
    pub others: Vec<SignatureState>,
    /// Too few trusted keys signed, and the caller waived that. Such a bundle
    /// raises no floor, and every output says so.
    pub unsigned: bool,
    /// The version is below this floor, and the caller waived that.
    pub below_floor: Option<u64>,
    /// Kinds of envelopes that this reader does not know. They do not count.
    pub unknown_envelopes: Vec<u32>,
    /// What has changed since the device installed the bundle.
    pub since: Vec<Since>,
}

/// A trusted key that signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedSigner {
    /// The key.
    pub key: KeyId,
    /// Its type.
    pub key_type: KeyType,
    /// The line of the allowed signers that trusts it.
    pub line: usize,
    /// The comment on that line.
    pub comment: String,
}

/// One signature and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignatureState {
    /// Its number among the bundle's SSH signatures, counted from 1.
    pub number: usize,
    /// The key that it names, if it could be read. If `outcome` is an error,
    /// it is not known that this key signed.
    pub key: Option<PublicKey>,
    /// Whether the device trusts the key, or why the signature is bad or cannot
    /// be checked.
    pub outcome: Result<Standing, SignatureError>,
}

impl SignatureState {
    /// Returns the signature, if this version cannot check it.
    #[must_use]
    pub fn unknown(&self) -> Option<&UnknownSignature> {
        self.outcome.as_ref().err().and_then(SignatureError::unknown)
    }
}
