//! On which mount a name is: a file system may be mounted in many places, so its device does not tell. Between subvolumes of one mount it does.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Statx, StatxAttributes, StatxFlags, fstat, makedev, statx};
use rustix::io::{Errno, retry_on_intr};

use crate::fs::confined::{known_type, names_in, open_name, open_on_same_device};
use crate::fs::mount_id::mount_id;

/// Returns the mount and the attributes of a name in a directory, or of the directory itself for an empty name.
pub(crate) fn look(directory: BorrowedFd<'_>, name: &[u8]) -> Result<(u64, StatxAttributes), Errno> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH | AtFlags::NO_AUTOMOUNT;
    let found = match retry_on_intr(|| statx(directory, name, flags, StatxFlags::MNT_ID)) {
        Err(Errno::NOSYS | Errno::PERM) => None,
        found => Some(found?),
    };
    let attributes = found.as_ref().map_or(StatxAttributes::empty(), |found| found.stx_attributes);
    let mount = match found {
        Some(found) if StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID) => found.stx_mnt_id,
        _ if name.is_empty() => mount_id(directory)?,
        _ => mount_id(open_name(directory, name, OFlags::PATH, Mode::empty())?)?,
    };
    Ok((mount, attributes))
}

/// Returns whether nothing can be renamed from one directory to the other: they are on two mounts, or on two subvolumes of one.
pub(crate) fn are_apart(a: BorrowedFd<'_>, b: BorrowedFd<'_>) -> Result<bool, Errno> {
    Ok(fstat(a)?.st_dev != fstat(b)?.st_dev || mount_id(a)? != mount_id(b)?)
}

/// Returns whether a name with this stat is on another mount or subvolume than its directory. The stat must be one that asked for the mount.
pub(crate) fn is_elsewhere(found: &Statx, mount: u64, device: u64) -> bool {
    let says = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID);
    let is_directory = FileType::from_raw_mode(found.stx_mode.into()) == FileType::Directory;
    // A file has a device of its own in some layers of overlayfs.
    says && found.stx_mnt_id != mount || is_directory && makedev(found.stx_dev_major, found.stx_dev_minor) != device
}

/// Returns whether something may be mounted below a directory of this mount: whether any mount lies on it (proc_pid_mountinfo(5)).
pub(crate) fn may_hold_mounts(mount: u64) -> bool {
    let Ok(mounts) = std::fs::read("/proc/self/mountinfo") else { return true };
    let lies_on = |line: &[u8]| line.split(|byte| *byte == b' ').nth(1) == Some(mount.to_string().as_bytes());
    mounts.split(|byte| *byte == b'\n').any(lies_on)
}

type Names = Vec<(Vec<u8>, FileType)>;

/// Levels that are examined, each with an open file.
const LEVELS: usize = 256;

/// Returns whether something is mounted at a name in a directory of this mount, or below. A directory that cannot be examined to its end counts as
/// such: it must not be moved away with what is mounted in it.
pub(crate) fn holds_mount(directory: BorrowedFd<'_>, name: &[u8], mount: u64) -> Result<bool, Errno> {
    let is_mounted = |at: BorrowedFd<'_>, name: &[u8]| match look(at, name) {
        Err(Errno::NOENT) => Ok(false),
        found => found.map(|(found, _)| found != mount),
    };
    if is_mounted(directory, name)? {
        return Ok(true);
    }
    let mut levels: Vec<(OwnedFd, Names)> = Vec::new();
    let mut next = (known_type(directory, name, FileType::Unknown)? == FileType::Directory).then(|| name.to_vec());
    loop {
        if let Some(name) = next.take() {
            let at = levels.last().map_or(directory, |(at, _)| at.as_fd());
            match open_on_same_device(at, &name, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()) {
                _ if levels.len() >= LEVELS => return Ok(true),
                Err(Errno::XDEV) => return Ok(true),
                // What this user may not enter is no place that this user can empty.
                Err(Errno::NOENT | Errno::ACCESS) => {}
                opened => {
                    let opened = opened?;
                    let names = names_in(opened.as_fd())?;
                    levels.push((opened, names));
                }
            }
        }
        let Some((at, names)) = levels.last_mut() else { return Ok(false) };
        match names.pop() {
            None => drop(levels.pop()),
            Some((name, listed)) => match known_type(at.as_fd(), &name, listed)? {
                FileType::Directory => next = Some(name),
                _ if is_mounted(at.as_fd(), &name)? => return Ok(true),
                _ => {}
            },
        }
    }
}
