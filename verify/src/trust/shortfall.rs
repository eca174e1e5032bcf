//! The message that users see most: why too few trusted keys signed a bundle.

use core::fmt;

use super::SignatureState;

/// A name, the keys that it needs, and those that signed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shortfall {
    /// The bundle's name.
    pub name: String,
    /// How many distinct trusted keys are needed.
    pub needed: usize,
    /// How many trusted keys signed.
    pub counted: usize,
    /// Whether there is an allowed signers file.
    pub has_signers_file: bool,
    /// The valid signatures, each key once, and those that this version cannot check.
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
        for state in &self.states {
            if let SignatureState { key: Some(key), outcome: Ok(standing), .. } = state {
                write!(f, "; {} ({}) is {standing}", key.id(), key.key_type())?;
            }
            if let Some(unknown) = state.unknown() {
                write!(f, "; {} is not counted: {unknown}", unknown.key)?;
            }
        }
        Ok(())
    }
}
