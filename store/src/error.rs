//! What can go wrong with a place.

use std::io;
use std::path::{Path, PathBuf};

/// Why something could not be done with a place.
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
    /// Another run is at work there.
    #[error("another sealift run is using {}", path.display())]
    Busy {
        /// What it holds.
        path: PathBuf,
    },
    /// Another user owns something that is relied on, or may write to it.
    #[error("{} {problem}", path.display())]
    Foreign {
        /// The file or directory.
        path: PathBuf,
        /// Whose it is, as the end of a sentence.
        problem: String,
    },
    /// A name does not lead any more to what was opened under it.
    #[error("{} was replaced during this run", path.display())]
    Exchanged {
        /// The name.
        path: PathBuf,
    },
    /// A path cannot be a target.
    #[error("{} {problem}", path.display())]
    Unusable {
        /// The path.
        path: PathBuf,
        /// Why, as the end of a sentence.
        problem: &'static str,
    },
    /// A file that an earlier run wrote is not as it was written.
    #[error("{} is damaged: {problem}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

impl Error {
    /// A system call that failed on `path`.
    pub fn io(doing: &'static str, path: impl AsRef<Path>, source: impl Into<io::Error>) -> Self {
        Self::Io { doing, path: path.as_ref().to_owned(), source: source.into() }
    }

    /// Something at `path` that is not this user's alone.
    pub fn foreign(path: impl AsRef<Path>, problem: impl Into<String>) -> Self {
        Self::Foreign { path: path.as_ref().to_owned(), problem: problem.into() }
    }
}
