//! Owner, extended attributes, mode and time of unpacked files.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{
    AtFlags, Gid, Mode, Stat, Statx, Timespec, Timestamps, Uid, XattrFlags, chownat, fchmod, fchown, fremovexattr,
    fsetxattr, fstat, futimens, utimensat,
};
use rustix::io::Errno;
use sealift_format::num;
use sealift_format::{Attributes, FileType, Inode, Xattr, XattrRef};

use crate::fs::place::is_writable;
use crate::fs::stat_cache::{FileStat, FileTime};
use crate::fs::{Aspect, Keeps, Rights, Unset};
use crate::xattrs::XattrFilter;

/// What this process sets, and the defaults of new files.
#[derive(Debug)]
pub(super) struct Privilege {
    /// What the target keeps.
    keeps: Keeps,
    rights: Rights,
    /// Whether new files in the stage get that group: not below a directory with the set-group-ID bit.
    group_is_own: bool,
    /// Permission bits that new files do not get.
    umask: u16,
    skipped: Skipped,
}

/// What was skipped for lack of privilege.
#[derive(Debug, Default)]
pub(super) struct Skipped {
    pub(super) owners: AtomicU64,
    pub(super) set_ids: AtomicU64,
    pub(super) xattrs: AtomicU64,
    pub(super) devices: AtomicU64,
}

/// The bits that set the user or the group of a running program.
const SET_IDS: u16 = 0o6000;

impl Privilege {
    /// Returns the privilege of this process in a target that keeps this much, wherever files are made.
    pub(super) fn new(keeps: Keeps) -> Self {
        let rights = Rights::of_process();
        Self { keeps, rights, group_is_own: false, umask: umask(), skipped: Skipped::default() }
    }

    /// Returns the same for files that are made in `stage`, with nothing skipped yet.
    pub(super) fn within(&self, stage: BorrowedFd<'_>) -> Result<Self, Errno> {
        let stat = fstat(stage)?;
        let group_is_own = stat.st_gid == self.rights.own.1 && stat.st_mode & 0o2000 == 0;
        Ok(Self { group_is_own, ..Self::new(self.keeps) })
    }

    /// Returns the creation mode of a regular file, chosen so that most files need no further call for their mode. It never includes set-id bits:
    /// they are set once the content and the owner are correct.
    pub(super) fn creation_mode(&self, attributes: &Attributes) -> Mode {
        let bits = attributes.mode & 0o777;
        // The stage's own mode keeps other users out of incomplete files.
        if bits & self.umask == 0 && bits & 0o600 == 0o600 {
            Mode::from_raw_mode(bits.into())
        } else {
            Mode::RUSR | Mode::WUSR
        }
    }

    fn has_own_owner(&self, attributes: &Attributes) -> bool {
        self.group_is_own && (attributes.uid, attributes.gid) == self.rights.own
    }

    /// Returns what the target keeps.
    pub(super) fn keeps(&self) -> &Keeps {
        &self.keeps
    }

    /// Returns whether this process may change the metadata of a file of this user.
    pub(super) fn may_change(&self, user: u32) -> bool {
        self.rights.may_change(user)
    }

    /// Returns whether this process may change the metadata of any file.
    pub(super) fn may_change_all(&self) -> bool {
        self.rights.may_change_all()
    }

    /// Returns whether this process may do anything with the files and directories of this user.
    pub(super) fn commands(&self, user: u32) -> bool {
        self.rights.commands(user)
    }

    /// Returns whether this process may create and remove names in an open directory, or may give itself the right to.
    pub(super) fn may_write_in(&self, directory: BorrowedFd<'_>) -> Result<bool, Errno> {
        if self.overrides_modes() || fstat(directory)?.st_uid == self.rights.own.0 {
            return Ok(true);
        }
        is_writable(directory)
    }

    /// Returns whether permission bits do not restrict this process.
    pub(super) fn overrides_modes(&self) -> bool {
        self.rights.overrides_modes()
    }

    /// Returns whether devices are created.
    pub(super) fn makes_devices(&self) -> bool {
        self.keeps.has(Aspect::Devices)
    }

    pub(super) fn skipped(&self) -> &Skipped {
        &self.skipped
    }

    /// Returns whether a file with the attributes `a` needs no change to have `b`, as far as the target keeps them.
    pub(super) fn would_be_equal(&self, a: &Attributes, b: &Attributes) -> bool {
        self.keeps.are_alike(a, b)
    }

    /// Returns whether a file with the attributes `a` gets `b` as a new inode, from verified content. An existing file is granted nothing: its owner
    /// may have replaced it, may hold it open, or may have linked it from elsewhere.
    pub(super) fn makes_anew(&self, a: &Attributes, b: &Attributes) -> bool {
        !self.would_be_equal(a, b)
    }

    /// Sets all metadata of an open file or directory of an installed tree, and removes unwanted extended attributes.
    pub(super) fn apply_again(
        &self,
        file: BorrowedFd<'_>,
        attributes: &Attributes,
        inode: &Inode,
    ) -> Result<(), Unset> {
        let present = XattrFilter::default().read(file)?;
        if !(self.overrides_modes() || present.is_empty() && attributes.xattrs.is_empty()) {
            // A file that its owner may not write does not let the owner change its attributes either.
            fchmod(file, Mode::RWXU)?;
        }
        for xattr in present {
            if !attributes.xattrs.iter().any(|wanted| wanted.name == xattr.name) {
                match fremovexattr(file, &*xattr.name) {
                    Err(Errno::PERM) if !self.keeps.has_xattr(&xattr.name) => {}
                    removed => removed?,
                }
            }
        }
        self.apply(file, attributes, inode, None)
    }

    /// Sets all metadata of an open file or directory; `made` is its mode if it was just created. The mode is set after the owner, since changing the
    /// owner clears set-id bits, and the time last.
    pub(super) fn apply(
        &self,
        file: BorrowedFd<'_>,
        attributes: &Attributes,
        inode: &Inode,
        made: Option<Mode>,
    ) -> Result<(), Unset> {
        // A file that was just created has the process's own owner.
        if self.keeps.has(Aspect::Owners) && (made.is_none() || !self.has_own_owner(attributes)) {
            fchown(file, Some(Uid::from_raw(attributes.uid)), Some(Gid::from_raw(attributes.gid)))?;
        }
        for xattr in self.counted(attributes) {
            let set = fsetxattr(file, xattr.name, xattr.value, XattrFlags::empty());
            set.map_err(Unset::xattr(xattr, &attributes.xattrs))?;
        }
        // Setting an access ACL changes the mode's group bits.
        if let Some(mode) = self.mode(attributes)
            && (made != Some(mode) || !attributes.xattrs.is_empty())
        {
            fchmod(file, mode)?;
        }
        self.set_time(futimens(file, &times(inode)))
    }

    /// Returns the extended attributes that are set, and counts the others.
    pub(super) fn counted<'a>(&self, attributes: &'a Attributes) -> impl Iterator<Item = XattrRef<'a>> {
        let left_out = attributes.xattrs.iter().filter(|xattr| !self.keeps.has_xattr(xattr.name)).count();
        if left_out > 0 {
            self.skipped.xattrs.fetch_add(num::wide(left_out), Ordering::Relaxed);
        }
        self.keeps.xattrs(&attributes.xattrs)
    }

    /// Passes over a time that was not set where times are not kept.
    pub(super) fn set_time(&self, set: Result<(), Errno>) -> Result<(), Unset> {
        if self.keeps.has(Aspect::Times) { set.map_err(Unset::Call) } else { Ok(()) }
    }

    /// Returns whether a file that was made here has everything that [`Self::apply`] sets, except extended attributes, which are not checked.
    pub(super) fn has_all(&self, stat: &Stat, attributes: &Attributes, inode: &Inode) -> bool {
        let owner = (attributes.uid, attributes.gid);
        let permissions = self.keeps.permissions(attributes.mode, &attributes.xattrs);
        attributes.xattrs.is_empty()
            && (!self.keeps.has(Aspect::Owners) || (stat.st_uid, stat.st_gid) == owner)
            && attributes.mode & SET_IDS == 0
            && permissions.is_none_or(|permissions| stat.st_mode & 0o7777 == u32::from(permissions))
            && self.has_time(FileStat::from(stat).mtime, inode)
    }

    /// Returns whether a file has the time that it should have, as precisely as the target keeps it.
    pub(super) fn has_time(&self, found: FileTime, inode: &Inode) -> bool {
        self.keeps.time((inode.mtime, inode.mtime_ns)).is_none_or(|time| time == found)
    }

    /// Returns whether a file of an installed tree has everything that the target keeps, except its time.
    pub(super) fn is_as_set(&self, stat: &Statx, xattrs: &[Xattr], attributes: &Attributes) -> bool {
        // A symbolic link's own mode is never set.
        let is_link = attributes.file_type() == FileType::Symlink;
        let permissions = self.keeps.permissions(attributes.mode, &attributes.xattrs).filter(|_| !is_link);
        let found = xattrs.iter().map(|xattr| XattrRef { name: &xattr.name, value: &xattr.value });
        let mut found: Vec<XattrRef<'_>> = found.filter(|xattr| self.keeps.counts_xattr(xattr.name)).collect();
        found.sort_unstable_by_key(|xattr| xattr.name);
        permissions.is_none_or(|permissions| stat.stx_mode & 0o7777 == permissions)
            && (!self.keeps.has(Aspect::Owners) || (stat.stx_uid, stat.stx_gid) == (attributes.uid, attributes.gid))
            && found.into_iter().eq(self.keeps.xattrs(&attributes.xattrs))
    }

    /// Sets the metadata of a symbolic link, device, fifo or socket, which is not opened.
    pub(super) fn apply_at(
        &self,
        directory: BorrowedFd<'_>,
        name: &[u8],
        attributes: &Attributes,
        inode: &Inode,
    ) -> Result<(), Unset> {
        if self.keeps.has(Aspect::Owners) {
            let (uid, gid) = (Uid::from_raw(attributes.uid), Gid::from_raw(attributes.gid));
            chownat(directory, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
        }
        self.set_time(utimensat(directory, name, &times(inode), AtFlags::SYMLINK_NOFOLLOW))
    }

    /// Returns the permission bits to set, and counts set-id bits that are left out; `None` if the target keeps no modes.
    pub(super) fn mode(&self, attributes: &Attributes) -> Option<Mode> {
        if attributes.mode & SET_IDS != 0 && !self.keeps.has(Aspect::Owners) {
            self.skipped.set_ids.fetch_add(1, Ordering::Relaxed);
        }
        let bits = self.keeps.permissions(attributes.mode, &attributes.xattrs)?;
        Some(Mode::from_raw_mode(bits.into()))
    }

    /// Counts a file that did not get its owner.
    pub(super) fn count_owner(&self, attributes: &Attributes) {
        if !self.keeps.has(Aspect::Owners) && (attributes.uid, attributes.gid) != self.rights.own {
            self.skipped.owners.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Returns the process's umask without changing it (proc(5), since Linux 4.7). If it cannot be read, every mode is set by a call of its own.
fn umask() -> u16 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|octal| u16::from_str_radix(octal.trim(), 8).ok()).unwrap_or(0o777)
}

pub(super) fn times(inode: &Inode) -> Timestamps {
    let time = Timespec { tv_sec: inode.mtime, tv_nsec: inode.mtime_ns.into() };
    Timestamps { last_access: time, last_modification: time }
}
