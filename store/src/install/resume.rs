//! What the next run can resume after an error.

use std::io;
use std::os::fd::AsFd as _;
use std::path::Path;

use rustix::io::Errno;
use sealift_format::Kind;

use crate::fs::confined::open_user_dir;
use crate::fs::own_store::check_own_store;
use crate::ostree::{LeftStages, look_for_stages};
use crate::trust::TargetKind;
use crate::{Class, Error, LeftRun};

/// Returns whether a repeated run may get further, as far as the error tells.
pub(super) fn may_get_further(error: &Error) -> bool {
    match error {
        // The system drops data that failed to sync, and may still show it: hashing would not tell.
        Error::Io { doing: "sync", .. } => false,
        // Space may be freed.
        _ if matches!(error.class(), Class::Cancelled | Class::DiskFull) => true,
        Error::Io { source, .. } => !is_lasting(source),
        Error::Format(error) => error.kind() == Kind::Truncated,
        _ => false,
    }
}

/// Returns whether a run with another copy of the bundle may get further: this one is damaged.
pub(super) fn may_with_another_copy(error: &Error) -> bool {
    error.kind().is_some() && error.class() == Class::Damaged
}

/// Returns whether a system call fails in the same way each time: the file system does not support it or has reached a limit, or it is not
/// permitted. A full disk does not count: space may be freed.
fn is_lasting(error: &io::Error) -> bool {
    let lasting = [
        Errno::MLINK,
        Errno::NOTSUP,
        Errno::OPNOTSUPP,
        Errno::NOSYS,
        Errno::INVAL,
        Errno::NAMETOOLONG,
        Errno::TOOBIG,
        Errno::RANGE,
        Errno::FBIG,
        Errno::OVERFLOW,
        Errno::ILSEQ,
        Errno::PERM,
        Errno::ACCESS,
        Errno::ROFS,
    ];
    Errno::from_io_error(error).is_some_and(|errno| lasting.contains(&errno))
}

/// Returns whether an import that ended with `error` left objects in the repository or store at `path` that the next one can use.
#[must_use]
pub fn import_may_go_on(kind: TargetKind, path: &Path, error: &Error) -> bool {
    let may_go_on = may_get_further(error) || may_with_another_copy(error);
    may_go_on && matches!(import_at(kind, path), Ok(Some(LeftRun::Unfinished)))
}

/// Returns what an import does in the repository or store at `path`, or left there.
///
/// # Errors
/// Returns an error if it cannot be read.
pub fn import_at(kind: TargetKind, path: &Path) -> Result<Option<LeftRun>, Error> {
    let Some(stages) = kind.stages() else { return Ok(None) };
    let root = open_user_dir(path).map_err(|error| Error::io("open", path, error))?;
    look_for_stages(root.as_fd(), stages).map_err(|error| Error::io("read", path.join(stages), error))
}

/// Removes what interrupted imports left in the repository or store at `path`. Returns whether there was anything.
///
/// # Errors
/// Returns an error if an import is running, if another user could change the repository or store, or if it cannot be read.
pub fn discard_imports(kind: TargetKind, path: &Path) -> Result<bool, Error> {
    let Some(stages) = kind.stages() else { return Ok(false) };
    let failed = |error| Error::io("open", path, error);
    let root = open_user_dir(path).map_err(failed)?;
    check_own_store(root.as_fd(), &[stages], path)?;
    let tmp = path.join(stages);
    let failed = |error| Error::io("read", &tmp, error);
    if look_for_stages(root.as_fd(), stages).map_err(failed)? == Some(LeftRun::Running) {
        return Err(Error::Busy { path: path.to_owned() });
    }
    let left = LeftStages::find_below(root.as_fd(), stages).map_err(failed)?;
    let is_left = !left.is_empty();
    left.remove().map_err(|error| Error::io("remove files in", &tmp, error))?;
    Ok(is_left)
}
