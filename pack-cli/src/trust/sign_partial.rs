//! The copy of a bundle while it is signed, and what killed runs left of it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use sealift_store::fs::found::{is_missing, named_at};

use crate::Error;

/// The suffix of the copy's name while it is written.
const PARTIAL: &str = ".sealift-sign-partial";

/// Removes the copy that a killed signing run left. Returns whether there was one.
///
/// # Errors
/// Returns an error if the bundle is being signed, or if the copy cannot be removed.
pub(crate) fn remove_stale(bundle: &Path) -> Result<bool, Error> {
    let real = match std::fs::canonicalize(bundle) {
        Err(error) if is_missing(&error) => None,
        real => Some(real.map_err(|error| Error::io("find", bundle, error))?),
    };
    let bundle = real.as_deref().unwrap_or(bundle);
    let path = partial_of(bundle);
    if named_at(&path)?.is_none() {
        return Ok(false);
    }
    // A signing run holds the bundle's lock; a missing bundle cannot be in signing.
    let file = match File::open(bundle) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        opened => Some(opened.map_err(|error| Error::io("read", bundle, error))?),
    };
    match file.as_ref().map_or(Ok(()), |file| flock(file, FlockOperation::NonBlockingLockExclusive)) {
        Err(Errno::WOULDBLOCK) => return Err(Error::Busy { path }),
        locked => locked.map_err(|error| Error::io("lock", bundle, error))?,
    }
    remove_partial(&path)
}

/// Returns the path of the copy while it is written.
pub(super) fn partial_of(bundle: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(bundle.file_name().unwrap_or_default());
    name.push(PARTIAL);
    bundle.with_file_name(name)
}

/// Removes the copy. Returns whether there was one.
pub(super) fn remove_partial(path: &Path) -> Result<bool, Error> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        // A read-only file system says so before it looks for the name.
        Err(_) if named_at(path)?.is_none() => Ok(false),
        removed => removed.map(|()| true).map_err(|error| Error::io("remove", path, error)),
    }
}
