//! Renames that some file systems refuse: without the flags of renameat2(2), as on FUSE and NFS, and of directories, as on overlayfs.

use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, RenameFlags, renameat, renameat_with, statat};
use rustix::io::Errno;
use rustix::path::Arg;

/// Returns whether the error says that the file system does not know a flag of renameat2(2).
pub(crate) fn lacks_flag(error: Errno) -> bool {
    matches!(error, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)
}

/// Returns whether the error says that a directory cannot be renamed, although its files can: overlayfs refuses it for a directory of a lower layer,
/// and so do file systems that join others or keep objects elsewhere.
pub(crate) fn moves_no_directory(error: Errno) -> bool {
    matches!(error, Errno::XDEV | Errno::NOSYS | Errno::OPNOTSUPP)
}

/// Renames to a name that does not exist. A file system that cannot check this is asked for the name beforehand: what appears in between is
/// replaced, if it is a file or an empty directory.
///
/// # Errors
/// As renameat2(2); EEXIST if the name exists.
pub(crate) fn rename_new(
    from: BorrowedFd<'_>,
    name: impl Arg + Copy,
    to: BorrowedFd<'_>,
    new: impl Arg + Copy,
) -> Result<(), Errno> {
    match renameat_with(from, name, to, new, RenameFlags::NOREPLACE) {
        Err(error) if lacks_flag(error) => match statat(to, new, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Err(Errno::EXIST),
            Err(Errno::NOENT) => renameat(from, name, to, new),
            Err(error) => Err(error),
        },
        renamed => renamed,
    }
}
