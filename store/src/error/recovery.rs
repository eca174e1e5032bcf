//! Why recovery files cannot make a bundle whole again.

use std::path::PathBuf;

use super::Error;

/// Why recovery files cannot make a bundle whole again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecoveryFault {
    /// More of the bundle is lost than they can make again.
    #[error(
        "{lost} shards of a codeword are lost, from byte {offset} of the bundle on, and the recovery files lack {needed} to make them again"
    )]
    Unrepairable {
        /// How many shards of the codeword are lost.
        lost: u64,
        /// How many more recovery shards are needed.
        needed: u64,
        /// Where the first of them begins.
        offset: u64,
    },
    /// What they make is not the bundle.
    #[error("{}: does not make the bundle again: with what it gives, {source}; nothing was written", path.display())]
    Wrong {
        /// The first of the recovery files.
        path: PathBuf,
        /// What is wrong with the bundle that they make.
        source: Box<Error>,
    },
}

impl From<RecoveryFault> for Error {
    fn from(fault: RecoveryFault) -> Self {
        Self::Recovery(Box::new(fault))
    }
}
