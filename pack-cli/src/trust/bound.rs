//! A target is bound to the first name that it took.

use std::io::{self, Read as _};
use std::path::Path;

use sealift_format::Head;

use crate::Error;
use crate::beneath::open_own_file;
use crate::unpack::sibling;

/// Returns the name of the bundle that `target` took, from the head that is kept beside it; `None` where it took none, or is not
/// there any more.
///
/// # Errors
/// The kept head cannot be read or is damaged.
pub fn bound_name(target: &Path) -> Result<Option<String>, Error> {
    match std::fs::symlink_metadata(target) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(|error| Error::io("read", target, error))?,
    };
    let path = sibling(target, ".sealift-state")?.join("head");
    let mut bytes = Vec::new();
    match open_own_file(&path).and_then(|mut file| file.read_to_end(&mut bytes)) {
        Ok(_) => match Head::parse(&bytes) {
            Ok(head) => Ok(Some(head.root().identity.name.clone())),
            Err(error) => Err(Error::State { path, problem: error.to_string() }),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("read", path, error)),
    }
}

/// Refuses a bundle of another name than the one that `target` is bound to: a key that may sign an app must not get to replace the
/// system by a slip of the administrator's hand.
///
/// # Errors
/// [`Error::OtherName`] where it is another; else as [`bound_name`].
pub fn check_bound(target: &Path, head: &Head) -> Result<(), Error> {
    let name = &head.root().identity.name;
    match bound_name(target)? {
        Some(bound) if bound != *name => Err(Error::OtherName { target: target.to_owned(), bound, name: name.clone() }),
        _ => Ok(()),
    }
}
