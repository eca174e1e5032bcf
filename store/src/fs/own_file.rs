//! Files of the administrator, which decide what is trusted: they count only if no other user can change or replace them.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags, fstat};

use crate::fs::confined::open_name;
use crate::fs::own_dir::{check_own, check_owner};
use crate::{Error, Place};

/// The bit by which only the owner of a name in a directory removes or replaces it.
const STICKY: u32 = 0o1000;

/// Reads a file that decides what is trusted; `None` if there is none. Links of this user and of root are followed.
///
/// # Errors
/// Returns an error if it is not a regular file, if another user owns it or may write to it or replace it, or if it cannot be read.
pub fn read_own_file(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    let failed = |error: std::io::Error| Error::io("read", path, error);
    match std::fs::metadata(path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        // A fifo could make this wait for ever, and what comes through one cannot be judged by its owner.
        Ok(found) if !found.is_file() => return Err(Error::unexpected(path, NOT_A_FILE)),
        Ok(_) => {}
        Err(error) => return Err(failed(error)),
    }
    let place = Place::resolve(path)?;
    check_own_folder(place.parent(), &place.parent_path())?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    let opened = open_name(place.parent(), place.name().as_bytes(), flags, Mode::empty());
    let mut file = File::from(opened.map_err(|error| failed(error.into()))?);
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(Error::unexpected(path, NOT_A_FILE));
    }
    check_own(file.as_fd(), path)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(failed)?;
    Ok(Some(bytes))
}

const NOT_A_FILE: &str = "is not a regular file";

/// Checks that no other user can replace a file of this user or root in this directory.
fn check_own_folder(folder: BorrowedFd<'_>, path: &Path) -> Result<(), Error> {
    let stat = fstat(folder).map_err(|error| Error::io("look at", path, error))?;
    if stat.st_mode & STICKY == 0 { check_own(folder, path) } else { check_owner(stat.st_uid, path) }
}

/// Checks that a private key in an open file is its owner's secret: this user or root owns it, and no other user can read it. ssh, too, refuses a
/// key of one's own that others can read.
///
/// # Errors
/// Returns [`Error::Foreign`] otherwise.
pub fn check_secret(file: BorrowedFd<'_>, path: &Path) -> Result<(), Error> {
    let stat = fstat(file).map_err(|error| Error::io("look at", path, error))?;
    check_owner(stat.st_uid, path)?;
    let mode = stat.st_mode & 0o7777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    let problem = format!("has a private key that other users can read or change (mode {mode:04o})");
    Err(Error::foreign(path, problem))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
    use std::path::PathBuf;

    use super::*;

    fn scratch() -> (tempfile::TempDir, PathBuf) {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let path = scratch.path().join("config/allowed");
        std::fs::create_dir(scratch.path().join("config")).expect("a folder");
        std::fs::write(&path, "me").expect("a file");
        set_mode(&path, 0o644);
        (scratch, path)
    }

    fn set_mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
    }

    fn is_refused(path: &Path) -> bool {
        matches!(read_own_file(path), Err(Error::Foreign { .. }))
    }

    #[test]
    fn what_this_user_and_root_alone_change_is_read() {
        let (scratch, path) = scratch();
        let link = scratch.path().join("link");
        symlink("config/allowed", &link).expect("a link");
        for path in [&path, &link] {
            assert_eq!(read_own_file(path).expect("it is ours").as_deref(), Some(&b"me"[..]));
        }
        for missing in ["none", "none/none", "link/none"] {
            assert_eq!(read_own_file(&scratch.path().join(missing)).expect("it is missing"), None);
        }
    }

    #[test]
    fn what_others_can_change_or_replace_is_refused() {
        let (_scratch, path) = scratch();
        let folder = path.parent().expect("a folder");
        for mode in [0o666, 0o646] {
            set_mode(&path, mode);
            assert!(is_refused(&path), "{mode:o}");
        }
        set_mode(&path, 0o600);
        set_mode(folder, 0o777);
        assert!(is_refused(&path), "it can be replaced");
        set_mode(folder, 0o1777);
        assert!(!is_refused(&path), "others cannot replace it");
        set_mode(folder, 0o755);
        if !rustix::process::geteuid().is_root() {
            return sealift_desk::skipped("needs root: gives files away");
        }
        for other in [&*path, folder] {
            chown(other, Some(12345), None).expect("root may");
            assert!(is_refused(&path), "{}", other.display());
            chown(other, Some(0), None).expect("root may");
        }
        assert!(!is_refused(&path));
    }

    #[test]
    fn a_fifo_ends_in_an_error_at_once() {
        let (scratch, _) = scratch();
        let fifo = scratch.path().join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status();
        assert!(made.is_ok_and(|status| status.success()));
        assert!(matches!(read_own_file(&fifo), Err(Error::Unexpected { .. })));
    }
}
