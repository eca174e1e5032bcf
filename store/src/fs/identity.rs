//! What tells the file system that lies at a path from others that are mounted there at other times.

use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, StatxFlags, fstatvfs, statx};

use super::kind_of;

/// Returns the id of the file system of an open file; `None` if it has none. On btrfs, it would be that of the subvolume, and a snapshot that takes
/// the place of an older state of it has another one.
pub(crate) fn id_of_system(file: BorrowedFd<'_>) -> Option<String> {
    let id = fstatvfs(file).ok()?.f_fsid;
    (id != 0 && kind_of(file) != "btrfs").then(|| format!("filesystem-{id:x}"))
}

/// Returns when a directory was created: a snapshot of its file system has the same time, and another file system has another one. `None` if that is
/// unknown.
pub(crate) fn birth_of(directory: BorrowedFd<'_>) -> Option<String> {
    let found = statx(directory, "", AtFlags::EMPTY_PATH, StatxFlags::BTIME).ok()?;
    let has_time = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME);
    let birth = found.stx_btime;
    has_time.then(|| format!("created-{}.{:09}", birth.tv_sec, birth.tv_nsec))
}
