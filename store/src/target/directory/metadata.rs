//! Owner, extended attributes, mode and time of unpacked files.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{
    AtFlags, Gid, Mode, Stat, Statx, Timespec, Timestamps, Uid, XattrFlags, chownat, fchmod, fchown, fremovexattr,
    fsetxattr, fstat, futimens, utimensat,
};
use rustix::io::Errno;
use sealift_format::{Attributes, FileType, Inode, Xattr, XattrRef};

use crate::xattrs::XattrFilter;

/// What this process may set, and the defaults of new files.
#[derive(Debug)]
pub(super) struct Privilege {
    root: bool,
    /// Owner and group of this process.
    own: (u32, u32),
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
    /// Determines the privilege of this process: root is privileged, as owners and devices require.
    pub(super) fn of_process(stage: BorrowedFd<'_>) -> Result<Self, Errno> {
        let mut privilege = Self::of_this_process();
        let stat = fstat(stage)?;
        privilege.group_is_own = stat.st_gid == privilege.own.1 && stat.st_mode & 0o2000 == 0;
        Ok(privilege)
    }

    /// As [`Self::of_process`], but regardless of where files are made.
    pub(super) fn of_this_process() -> Self {
        let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        Self { root: own.0 == 0, own, group_is_own: false, umask: umask(), skipped: Skipped::default() }
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
        self.group_is_own && (attributes.uid, attributes.gid) == self.own
    }

    pub(super) fn is_root(&self) -> bool {
        self.root
    }

    /// Returns whether this process may change the metadata of a file of this user.
    pub(super) fn may_change(&self, user: u32) -> bool {
        self.root || user == self.own.0
    }

    /// Returns whether this process may set an extended attribute of its files.
    pub(super) fn may_set(&self, xattr: &[u8]) -> bool {
        self.root || is_own_xattr(xattr)
    }

    pub(super) fn skipped(&self) -> &Skipped {
        &self.skipped
    }

    /// Returns whether a file with the attributes `a` needs no change to have `b`, as far as this process may set them.
    pub(super) fn would_be_equal(&self, a: &Attributes, b: &Attributes) -> bool {
        if self.root {
            return a == b;
        }
        let is_own = |xattr: &XattrRef<'_>| is_own_xattr(xattr.name);
        a.mode & !SET_IDS == b.mode & !SET_IDS && a.xattrs.iter().filter(is_own).eq(b.xattrs.iter().filter(is_own))
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
    ) -> Result<(), Errno> {
        let present = XattrFilter::default().read(file)?;
        if !(self.root || present.is_empty() && attributes.xattrs.is_empty()) {
            // A file that its owner may not write does not let the owner change its attributes either.
            fchmod(file, Mode::RWXU)?;
        }
        for xattr in present {
            if !attributes.xattrs.iter().any(|wanted| wanted.name == xattr.name) {
                match fremovexattr(file, &*xattr.name) {
                    Err(Errno::PERM) if !self.root => {}
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
    ) -> Result<(), Errno> {
        // A file that was just created has the process's own owner.
        if self.root && (made.is_none() || !self.has_own_owner(attributes)) {
            fchown(file, Some(Uid::from_raw(attributes.uid)), Some(Gid::from_raw(attributes.gid)))?;
        }
        for xattr in &attributes.xattrs {
            match fsetxattr(file, xattr.name, xattr.value, XattrFlags::empty()) {
                Err(Errno::PERM | Errno::NOTSUP) if !self.root => {
                    self.skipped.xattrs.fetch_add(1, Ordering::Relaxed);
                }
                other => other?,
            }
        }
        let mode = self.mode(attributes);
        // Setting an access ACL changes the mode's group bits.
        if made != Some(mode) || !attributes.xattrs.is_empty() {
            fchmod(file, mode)?;
        }
        futimens(file, &times(inode))
    }

    /// Returns whether a file that was made here has everything that [`Self::apply`] sets, except extended attributes, which are not checked.
    pub(super) fn has_all(&self, stat: &Stat, attributes: &Attributes, inode: &Inode) -> bool {
        let owner = (attributes.uid, attributes.gid);
        attributes.xattrs.is_empty()
            && (!self.root || (stat.st_uid, stat.st_gid) == owner)
            && attributes.mode & SET_IDS == 0
            && stat.st_mode & 0o7777 == u32::from(attributes.mode & 0o7777)
            && (stat.st_mtime, u32::try_from(stat.st_mtime_nsec)) == (inode.mtime, Ok(inode.mtime_ns))
    }

    /// Returns whether a file of an installed tree has everything that this process sets, except its time.
    pub(super) fn is_as_set(&self, stat: &Statx, xattrs: &[Xattr], attributes: &Attributes) -> bool {
        let set_ids = if self.root { 0 } else { SET_IDS };
        // A symbolic link's own mode is never set.
        let is_link = attributes.file_type() == FileType::Symlink;
        let is_own = |xattr: &XattrRef<'_>| self.may_set(xattr.name);
        let found = xattrs.iter().map(|xattr| XattrRef { name: &xattr.name, value: &xattr.value });
        // Only root sets or removes capabilities: an unexpected one was added later, and is lost when the file is rebuilt.
        let is_counted = |xattr: &XattrRef<'_>| is_own(xattr) || xattr.name == b"security.capability";
        let mut found: Vec<XattrRef<'_>> = found.filter(is_counted).collect();
        found.sort_unstable_by_key(|xattr| xattr.name);
        (is_link || stat.stx_mode & 0o7777 == attributes.mode & 0o7777 & !set_ids)
            && (!self.root || (stat.stx_uid, stat.stx_gid) == (attributes.uid, attributes.gid))
            && found.into_iter().eq(attributes.xattrs.iter().filter(is_own))
    }

    /// Sets the metadata of a symbolic link, device, fifo or socket, which is not opened.
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

    /// Returns the permission bits to set: without owners, set-id bits would grant the unpacking user's rights, and are left out.
    pub(super) fn mode(&self, attributes: &Attributes) -> Mode {
        let mut bits = attributes.mode & 0o7777;
        if !self.root && bits & SET_IDS != 0 {
            bits &= !SET_IDS;
            self.skipped.set_ids.fetch_add(1, Ordering::Relaxed);
        }
        Mode::from_raw_mode(bits.into())
    }

    /// Counts a file that did not get its owner.
    pub(super) fn count_owner(&self, attributes: &Attributes) {
        if !self.root && (attributes.uid, attributes.gid) != self.own {
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

/// Returns whether every owner of a file may set this extended attribute.
fn is_own_xattr(name: &[u8]) -> bool {
    name.starts_with(b"user.") || name.starts_with(b"system.posix_acl_")
}

pub(super) fn times(inode: &Inode) -> Timestamps {
    let time = Timespec { tv_sec: inode.mtime, tv_nsec: inode.mtime_ns.into() };
    Timestamps { last_access: time, last_modification: time }
}
