//! What is at a path that the user gave. Only where nothing is, nothing is found: a failing disk, or a lack of rights, is an error.

use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::path::Path;

use crate::Error;

/// Returns the metadata of what is at a path, where links are followed; `None` if nothing is there.
///
/// # Errors
/// Returns an error if that cannot be determined.
pub fn found_at(path: &Path) -> Result<Option<Metadata>, Error> {
    match std::fs::metadata(path) {
        Err(error) if is_missing(&error) => Ok(None),
        found => found.map(Some).map_err(|error| Error::io("look at", path, error)),
    }
}

/// As [`found_at`], where a link is not followed.
///
/// # Errors
/// Returns an error if that cannot be determined.
pub fn named_at(path: &Path) -> Result<Option<Metadata>, Error> {
    match std::fs::symlink_metadata(path) {
        Err(error) if is_missing(&error) => Ok(None),
        found => found.map(Some).map_err(|error| Error::io("look at", path, error)),
    }
}

/// Returns whether there is a directory at a path, where links are followed.
///
/// # Errors
/// Returns an error if that cannot be determined.
pub fn is_directory(path: &Path) -> Result<bool, Error> {
    Ok(found_at(path)?.is_some_and(|found| found.is_dir()))
}

/// Returns whether there is anything at a path, where links are followed.
///
/// # Errors
/// Returns an error if that cannot be determined.
pub fn is_there(path: &Path) -> Result<bool, Error> {
    Ok(found_at(path)?.is_some())
}

/// Returns whether an error says that nothing is at a path: also if a directory on the way is a file, or if nothing can have such a name.
#[must_use]
pub fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_missing_is_not_there() {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let at = |name: &str| scratch.path().join(name);
        std::fs::write(at("file"), "").expect("a file");
        for name in ["loop", "nowhere"] {
            std::os::unix::fs::symlink(name.replace("nowhere", "none"), at(name)).expect("a link");
        }
        assert!(is_directory(scratch.path()).expect("it is there") && !is_directory(&at("file")).expect("it is there"));
        for missing in ["none", "file/below", "nowhere", &"n".repeat(300)] {
            assert!(!is_there(&at(missing)).expect("it is known"), "{missing}");
        }
        assert!(named_at(&at("nowhere")).expect("it is known").is_some_and(|found| found.is_symlink()));
        is_there(&at("loop")).expect_err("it cannot be told");
    }
}
