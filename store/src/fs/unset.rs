//! Metadata that could not be set.

use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::io::Errno;
use sealift_format::XattrRef;
use sealift_verify::escape;

use super::FreeSpace;
use super::kind::kind_of;
use crate::Error;

/// Why metadata was not set.
#[derive(Debug)]
pub enum Unset {
    /// A system call failed.
    Call(Errno),
    /// An extended attribute cannot be set.
    Xattr {
        /// The attribute, with its size.
        what: String,
        /// The system's reason.
        source: Errno,
    },
}

impl From<Errno> for Unset {
    fn from(error: Errno) -> Self {
        Self::Call(error)
    }
}

impl Unset {
    /// Returns the reason for an extended attribute.
    pub fn xattr(xattr: XattrRef<'_>) -> impl Fn(Errno) -> Self {
        move |source| Self::Xattr { what: described(xattr), source }
    }

    /// Returns the system's reason.
    #[must_use]
    pub fn errno(&self) -> Errno {
        match self {
            Self::Call(error) | Self::Xattr { source: error, .. } => *error,
        }
    }

    /// Returns the error for the file at `path`, on the file system of `beside`; `failed` returns that of a failed call.
    pub fn into_error(self, path: &Path, beside: BorrowedFd<'_>, failed: impl Fn(Errno) -> Error) -> Error {
        match self {
            Self::Call(error) => failed(error),
            Self::Xattr { what, source } if is_too_large(source, beside) => {
                Error::Unstorable { path: path.to_owned(), what, system: kind_of(beside).to_owned() }
            }
            Self::Xattr { what, source } => Error::Xattr { path: path.to_owned(), what, source: source.into() },
        }
    }
}

/// Returns an extended attribute as a message names it.
#[must_use]
pub fn described(xattr: XattrRef<'_>) -> String {
    let bytes = if xattr.value.len() == 1 { "byte" } else { "bytes" };
    format!("the extended attribute {} of {} {bytes}", escape::bytes(xattr.name), xattr.value.len())
}

/// Returns whether an error means that the file system of `beside` cannot hold an extended attribute of this size. A full one reports the same.
#[must_use]
pub fn is_too_large(error: Errno, beside: BorrowedFd<'_>) -> bool {
    let is_full = || FreeSpace::of(beside).is_ok_and(|free| free.bytes == 0);
    matches!(error, Errno::NOSPC | Errno::TOOBIG | Errno::RANGE) && !is_full()
}
