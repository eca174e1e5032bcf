//! Why a container is not taken apart.

use std::io;

use super::Kind;

/// Why the bytes of a container cannot be told apart. The caller then takes them as they are.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContainerFault {
    /// It contradicts itself, or its format.
    #[error("{kind}, offset {offset}: {what}")]
    Damaged {
        /// What it is.
        kind: Kind,
        /// Where the fault lies, in bytes from the container's start.
        offset: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// It uses a feature of its format that this version does not know.
    #[error("{kind}, offset {offset}: {what}")]
    Unsupported {
        /// What it is.
        kind: Kind,
        /// Where the feature is used or stated, in bytes from the container's start.
        offset: u64,
        /// What is not supported.
        what: &'static str,
    },
    /// To take it apart would take more time or memory than [`Limits`](super::Limits) allow.
    #[error("{kind}: {what}")]
    Limit {
        /// What it is.
        kind: Kind,
        /// What there is too much of.
        what: &'static str,
    },
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}
