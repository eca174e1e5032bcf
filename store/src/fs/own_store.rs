//! Repositories and stores: folders of objects, in which root must not write what another user could then change, or what another user has led
//! elsewhere.

use std::collections::BTreeSet;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags, mkdirat};
use rustix::io::Errno;

use crate::fs::confined::{names_in, open_beneath, open_name};
use crate::{Error, check_own};

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);
/// The mode of a repository's new folders, of which the umask may take more: everybody may read, and nobody else may write.
pub(crate) const FOLDER_MODE: u32 = 0o755;

/// Checks that a store at `path` belongs to this user or root, and that no other user can write to it: the store itself, `folders` below it, and
/// the folders of its objects, as far as they exist.
///
/// # Errors
/// Returns [`Error::Foreign`]; also returns an error if a folder is a link, or cannot be opened.
pub(crate) fn check_own_store(root: BorrowedFd<'_>, folders: &[&str], path: &Path) -> Result<(), Error> {
    check_own(root, path)?;
    folders.iter().try_for_each(|folder| check_folder(root, folder, path))?;
    let objects = path.join("objects");
    let Some(open) = open_folder(root, "objects", path)? else { return Ok(()) };
    check_own(open.as_fd(), &objects)?;
    for (name, _) in names_in(open.as_fd()).map_err(|error| Error::io("read", &objects, error))? {
        match str::from_utf8(&name) {
            Ok(name) if name.len() == 2 => check_folder(open.as_fd(), name, &objects)?,
            _ => {}
        }
    }
    Ok(())
}

/// As [`check_own_store`], of the folders in which the files at these paths are, as far as they exist.
pub(crate) fn check_own_folders(root: BorrowedFd<'_>, paths: &[String], path: &Path) -> Result<(), Error> {
    let folders = paths.iter().flat_map(|file| file.match_indices('/').map(|(at, _)| &file[..at]));
    let folders: BTreeSet<&str> = folders.collect();
    folders.into_iter().try_for_each(|folder| check_folder(root, folder, path))
}

fn check_folder(root: BorrowedFd<'_>, name: &str, path: &Path) -> Result<(), Error> {
    open_folder(root, name, path)?.map_or(Ok(()), |folder| check_own(folder.as_fd(), &path.join(name)))
}

fn open_folder(root: BorrowedFd<'_>, name: &str, path: &Path) -> Result<Option<OwnedFd>, Error> {
    match open_beneath(root, name.as_bytes(), DIRECTORY, Mode::empty()) {
        Err(Errno::NOENT) => Ok(None),
        Err(Errno::LOOP | Errno::NOTDIR) => {
            Err(Error::foreign(path.join(name), "is not a directory, and is not followed"))
        }
        opened => opened.map(Some).map_err(|error| Error::io("open", path.join(name), error)),
    }
}

/// Opens a directory of a store without following a link, and creates it if it is missing.
///
/// # Errors
/// As mkdirat(2) and openat(2); a link gives ENOTDIR.
pub(crate) fn make_folder(at: BorrowedFd<'_>, name: &str, mode: u32) -> Result<OwnedFd, Errno> {
    match mkdirat(at, name, Mode::from_raw_mode(mode)) {
        Ok(()) | Err(Errno::EXIST) => open_name(at, name.as_bytes(), DIRECTORY, Mode::empty()),
        Err(error) => Err(error),
    }
}
