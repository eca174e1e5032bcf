//! What can go wrong with a whole operation.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sealift_format::Kind;

use crate::source::TarFault;

/// Why an operation did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A system call failed.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// What was being done: "read", "create".
        doing: &'static str,
        /// To which file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A source's file is not what it was when its directory was read.
    #[error("{} changed while it was being packed: pack a snapshot, or a tree that nothing writes to", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// A tar archive cannot be packed.
    #[error("{}, at offset {offset}: {fault}", path.display())]
    Tar {
        /// The archive.
        path: PathBuf,
        /// Where the member's header begins.
        offset: u64,
        /// Why.
        fault: Box<TarFault>,
    },
    /// The bundle's bytes are not as the format says.
    #[error(transparent)]
    Format(#[from] sealift_format::Error),
    /// The bundle's content is damaged.
    #[error(transparent)]
    Content(#[from] sealift_verify::content::ContentError),
    /// Something that was asked for cannot be done so.
    #[error("{0}")]
    Usage(String),
    /// The target has too little room.
    #[error("{} has {free} bytes free, and {needed} are needed", path.display())]
    NoSpace {
        /// The target.
        path: PathBuf,
        /// Bytes that unpacking needs.
        needed: u64,
        /// Bytes that the file system has.
        free: u64,
    },
    /// The caller wished to stop.
    #[error("cancelled")]
    Cancelled,
}

impl Error {
    pub(crate) fn io(doing: &'static str, path: impl AsRef<Path>, source: impl Into<io::Error>) -> Self {
        Self::Io { doing, path: path.as_ref().to_owned(), source: source.into() }
    }

    /// The bundle's fault, in one word; `None` where it is not the bundle's.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        match self {
            Self::Format(error) => Some(error.kind()),
            Self::Content(error) => Some(error.kind()),
            _ => None,
        }
    }
}

/// A path from bytes.
pub(crate) fn path_of(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}
