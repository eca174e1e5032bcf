//! The message that matters most: why nobody who is trusted signed this.

use core::fmt;

use base64ct::{Base64, Encoding};

use super::{SignatureState, Standing};

/// A name, the keys that it needs, and those that signed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shortfall {
    /// The bundle's name.
    pub name: String,
    /// How many distinct trusted keys are needed.
    pub needed: usize,
    /// How many signed.
    pub counted: usize,
    /// There is an allowed signers file.
    pub has_signers_file: bool,
    /// Every good signature, each key once.
    pub states: Vec<SignatureState>,
}

impl fmt::Display for Shortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, needed, counted, .. } = self;
        let keys = if *needed == 1 { "key" } else { "keys" };
        write!(f, "{name:?} needs the signature of {needed} trusted {keys} and has {counted}")?;
        if self.states.is_empty() {
            f.write_str("; it is not signed")?;
        }
        for SignatureState { key, outcome, .. } in &self.states {
            if let (Some(key), Ok(standing)) = (key, outcome) {
                write!(f, "; {} ({}) is {standing}", key.id(), key.key_type())?;
            }
        }
        self.advice(f)
    }
}

impl Shortfall {
    fn advice(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Its line is for copying once the id above was compared; a key that is
        // revoked or past its window needs a decision, not a line.
        let stranger = self.states.iter().find_map(|state| match &state.outcome {
            Ok(Standing::NotListed) => state.key.as_ref(),
            _ => None,
        });
        let place = if self.has_signers_file {
            "add this line to the allowed signers"
        } else {
            "write this line to an allowed signers file"
        };
        let principal = self.principal();
        match stranger {
            Some(key) => write!(
                f,
                "; if its owner confirms the key {}, {place}: \
                 {principal} namespaces=\"sealift\" {} {}",
                key.id(),
                key.key_type(),
                Base64::encode_string(key.blob())
            ),
            None if self.has_signers_file => f.write_str(
                "; ask the publisher to sign it with a key allowed for this name, or change the allowed signers",
            ),
            None => write!(f, "; for each key to trust, {place}: {principal} namespaces=\"sealift\" TYPE KEY"),
        }
    }

    /// Returns the name, unless it would be a pattern: nobody is to be talked into
    /// trusting a key for more than this bundle.
    fn principal(&self) -> &str {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
        if !self.name.is_empty() && self.name.bytes().all(plain) { &self.name } else { "NAME" }
    }
}
