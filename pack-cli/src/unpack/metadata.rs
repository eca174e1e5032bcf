//! Owner, extended attributes, mode and time of what was unpacked.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{
    AtFlags, Gid, Mode, Timespec, Timestamps, Uid, XattrFlags, chownat, fchmod, fchown, fsetxattr, futimens, utimensat,
};
use rustix::io::Errno;
use sealift_format::{Attributes, Inode};

/// What this process may set.
#[derive(Debug)]
pub(super) struct Privilege {
    root: bool,
    skipped: Skipped,
}

/// What was left out for want of privilege.
#[derive(Debug, Default)]
pub(super) struct Skipped {
    pub(super) owners: AtomicU64,
    pub(super) set_ids: AtomicU64,
    pub(super) xattrs: AtomicU64,
    pub(super) devices: AtomicU64,
}

/// The bits that set the user or the group that a program runs as.
const SET_IDS: u16 = 0o6000;

impl Privilege {
    /// Privileged is who runs as root: owners and devices need it.
    pub(super) fn of_process() -> Self {
        Self { root: rustix::process::geteuid().is_root(), skipped: Skipped::default() }
    }

    pub(super) fn is_root(&self) -> bool {
        self.root
    }

    pub(super) fn skipped(&self) -> &Skipped {
        &self.skipped
    }

    /// Sets all metadata of an open file or directory. The mode comes after the owner, whose change clears set-id bits, and the time last.
    pub(super) fn apply(&self, file: BorrowedFd<'_>, attributes: &Attributes, inode: &Inode) -> Result<(), Errno> {
        if self.root {
            fchown(file, Some(Uid::from_raw(attributes.uid)), Some(Gid::from_raw(attributes.gid)))?;
        }
        for xattr in &attributes.xattrs {
            match fsetxattr(file, &*xattr.name, &xattr.value, XattrFlags::empty()) {
                Err(Errno::PERM | Errno::NOTSUP) if !self.root => {
                    self.skipped.xattrs.fetch_add(1, Ordering::Relaxed);
                }
                other => other?,
            }
        }
        fchmod(file, self.mode(attributes))?;
        futimens(file, &times(inode))
    }

    /// Sets the metadata of a symbolic link, device, fifo or socket, whose name is not opened.
    pub(super) fn apply_at(
        &self,
        directory: BorrowedFd<'_>,
        name: &[u8],
        attributes: &Attributes,
        inode: &Inode,
    ) -> Result<(), Errno> {
        if self.root {
            let (uid, gid) = (Uid::from_raw(attributes.uid), Gid::from_raw(attributes.gid));
            chownat(directory, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
        }
        utimensat(directory, name, &times(inode), AtFlags::SYMLINK_NOFOLLOW)
    }

    /// The permission bits that are set: without owners, set-id bits would be the unpacking user's, and are left out.
    pub(super) fn mode(&self, attributes: &Attributes) -> Mode {
        let mut bits = attributes.mode & 0o7777;
        if !self.root && bits & SET_IDS != 0 {
            bits &= !SET_IDS;
            self.skipped.set_ids.fetch_add(1, Ordering::Relaxed);
        }
        Mode::from_raw_mode(bits.into())
    }

    /// Notes that a file did not get its owner.
    pub(super) fn count_owner(&self, attributes: &Attributes) {
        let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        if !self.root && (attributes.uid, attributes.gid) != own {
            self.skipped.owners.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn times(inode: &Inode) -> Timestamps {
    let time = Timespec { tv_sec: inode.mtime, tv_nsec: inode.mtime_ns.into() };
    Timestamps { last_access: time, last_modification: time }
}
