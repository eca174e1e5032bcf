//! Metadata that could not be set.

use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::io::Errno;
use sealift_format::{XattrRef, num};
use sealift_verify::escape;

use super::FreeSpace;
use super::kind::kind_of;
use crate::Error;

/// No file system of a disk has a larger block for the attributes of a file than its block, or than this.
const BLOCK_LEN_MAX: u64 = 4096;
/// Bytes in such a block for its head, and for what the system sets: labels, keys, measurements, inherited lists.
const OTHERS: u64 = 512;

/// Why metadata was not set.
#[derive(Debug)]
pub enum Unset {
    /// A system call failed.
    Call(Errno),
    /// An extended attribute cannot be set.
    Xattr {
        /// The attribute, with its size.
        what: String,
        /// Bytes that all attributes of the file take at most ([`space_of`]).
        space: usize,
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
    /// Returns the reason for an extended attribute, one of all that the file is to have.
    pub fn xattr<'a>(xattr: XattrRef<'a>, all: impl IntoIterator<Item = XattrRef<'a>>) -> impl FnOnce(Errno) -> Self {
        move |source| Self::Xattr { what: described(xattr), space: space_of(all), source }
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
            Self::Xattr { what, space, source } if is_too_large(source, space, beside) => {
                Error::Unstorable { path: path.to_owned(), what, system: kind_of(beside).to_owned() }
            }
            Self::Xattr { what, source, .. } => Error::Xattr { path: path.to_owned(), what, source: source.into() },
        }
    }
}

/// Returns an extended attribute as a message names it.
#[must_use]
pub fn described(xattr: XattrRef<'_>) -> String {
    let bytes = if xattr.value.len() == 1 { "byte" } else { "bytes" };
    format!("the extended attribute {} of {} {bytes}", escape::bytes(xattr.name), xattr.value.len())
}

/// Returns the bytes that these extended attributes of a file take at most in a block of ext4, and about as many elsewhere: each has an entry of 16
/// bytes, and its name and its value are filled up to 4 (fs/ext4/xattr.h of the kernel).
pub fn space_of<'a>(xattrs: impl IntoIterator<Item = XattrRef<'a>>) -> usize {
    xattrs.into_iter().map(|xattr| 16 + 3 + xattr.name.len() + 3 + xattr.value.len()).sum()
}

/// Returns whether an error means that the file system of `beside` cannot hold extended attributes that take this much space.
///
/// ext4, f2fs and btrfs have one word, ENOSPC, for attributes beyond what one file can have and for a full disk. What fits into a block, beside what
/// the system adds, a file can have: then the disk is full, or was a moment ago.
#[must_use]
pub fn is_too_large(error: Errno, space: usize, beside: BorrowedFd<'_>) -> bool {
    match error {
        Errno::TOOBIG | Errno::RANGE => true,
        Errno::NOSPC => {
            let free = FreeSpace::of(beside);
            let block_len = free.as_ref().map_or(BLOCK_LEN_MAX, |free| free.block_len.min(BLOCK_LEN_MAX));
            num::wide(space) > block_len.saturating_sub(OTHERS) && !free.is_ok_and(|free| free.bytes == 0)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn what_fits_into_a_block_is_not_too_large() {
        let directory = crate::fs::confined::open_user_dir(&std::env::temp_dir()).expect("it is there");
        let is_too_large = |error, space| is_too_large(error, space, directory.as_fd());
        assert!(!is_too_large(Errno::NOSPC, 60) && !is_too_large(Errno::NOSPC, 512));
        assert!(is_too_large(Errno::NOSPC, 4096) && is_too_large(Errno::TOOBIG, 60) && is_too_large(Errno::RANGE, 60));
        assert!(!is_too_large(Errno::DQUOT, 4096) && !is_too_large(Errno::IO, 4096));
    }

    #[test]
    fn each_attribute_takes_an_entry() {
        let xattr = |value| XattrRef { name: b"user.a", value };
        assert_eq!(space_of([xattr(b"")]), 28);
        assert_eq!(space_of([xattr(b"12345"), xattr(b"")]), 61);
    }
}
