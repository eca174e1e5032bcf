//! Walks an installed tree that others may change meanwhile: it follows no link, enters no other file system, and checks that `..` leads back to the
//! directory from which it came.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, IFlags, Mode, OFlags, Statx, StatxAttributes, fstat, ioctl_getflags};
use rustix::io::Errno;
use sealift_format::num;
use sealift_format::{Directory, Index, Row};

use crate::fs::confined::{open_on_same_device, open_within};
use crate::fs::mount::{holds_mount, is_elsewhere, look, may_hold_mounts};
use crate::fs::mount_id::mount_id;
use crate::fs::own_dir::is_own;
use crate::{Error, InodeId, Site, inode_id};

/// An installed tree that an index describes.
#[derive(Debug)]
pub(crate) struct Target<'a> {
    pub(crate) path: &'a Path,
    pub(crate) index: &'a Index,
    root: OwnedFd,
    device: u64,
    mount: u64,
    /// Whether something may be mounted inside.
    may_hold_mounts: bool,
    /// The place of an installed tree, which is none in a stage.
    site: Option<&'a Site>,
}

/// A thread's position in the tree.
#[derive(Debug, Default)]
pub(crate) struct TargetWalk {
    /// The directories from the root down to the position.
    trail: Vec<Step>,
    /// The last of them, kept open: going back to one of these needs no look-up.
    open: VecDeque<OwnedFd>,
}

/// A directory of a trail.
#[derive(Debug)]
struct Step {
    number: Row<Directory>,
    inode_id: InodeId,
    /// Whether only this user and root can rename in it and in all directories above it.
    is_safe: bool,
}

/// The most directories of a trail that stay open.
const OPEN_MAX: usize = 8;

/// Returns the file system of an open file.
fn device_of(fd: BorrowedFd<'_>) -> Result<u64, Errno> {
    fstat(fd).map(|stat| stat.st_dev)
}

const MOUNTED: &str =
    "or a directory above it is a mount point or a subvolume, and the bundle changes what lies under it";
const FOLDS: &str = "ignores case (chattr(1), +F), so that the update could replace the wrong file";
const HOLDS_MOUNT: &str = "is a directory in which something is mounted, and the bundle has another kind of file there";
const FIXED: &str = "is immutable or append-only (chattr(1)), and the update would have to change it";

/// Returns whether a directory treats names that differ only in case as equal, as chattr(1) makes some. File systems without flags have no such ones.
///
/// # Errors
/// Returns an error if it cannot be opened, except for a lack of rights.
fn folds_names(directory: BorrowedFd<'_>) -> Result<bool, Errno> {
    // FS_CASEFOLD_FL (linux/fs.h)
    let folds = IFlags::from_bits_retain(0x4000_0000);
    match open_within(directory, b".", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()) {
        Err(Errno::ACCESS) => Ok(false),
        opened => Ok(ioctl_getflags(opened?).is_ok_and(|flags| flags.contains(folds))),
    }
}

impl<'a> Target<'a> {
    pub(crate) fn open(site: &'a Site, index: &'a Index) -> Result<Self, Error> {
        let (path, root) = (site.path(), site.reopen()?);
        let failed = |error| Error::io("look at", path, error);
        let device = device_of(root.as_fd()).map_err(failed)?;
        let mount = mount_id(&root).map_err(failed)?;
        Ok(Self { path, index, root, device, mount, may_hold_mounts: may_hold_mounts(mount), site: Some(site) })
    }

    /// As [`Self::open`], for a tree in a stage, open as `root`.
    pub(crate) fn staged(path: &'a Path, root: BorrowedFd<'_>, index: &'a Index) -> Result<Self, Error> {
        let failed = |error| Error::io("look at", path, error);
        let root = open_within(root, b".", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).map_err(failed)?;
        let (device, mount) = (device_of(root.as_fd()).map_err(failed)?, mount_id(&root).map_err(failed)?);
        Ok(Self { path, index, root, device, mount, may_hold_mounts: false, site: None })
    }

    /// Returns whether files can be renamed from this directory into it.
    pub(crate) fn is_beside(&self, directory: BorrowedFd<'_>) -> Result<bool, Errno> {
        Ok(device_of(directory)? == self.device && mount_id(directory)? == self.mount)
    }

    /// Returns why a name in a directory cannot be replaced or moved; for an empty name, why names in the directory cannot be.
    pub(crate) fn obstacle(&self, directory: BorrowedFd<'_>, name: &[u8]) -> Result<Option<&'static str>, Errno> {
        let (mount, attributes) = match look(directory, name) {
            Err(Errno::NOENT) => return Ok(None),
            found => found?,
        };
        Ok(match attributes.intersects(StatxAttributes::IMMUTABLE | StatxAttributes::APPEND) {
            _ if mount != self.mount => Some(MOUNTED),
            true => Some(FIXED),
            false => None,
        })
    }

    /// Returns whether a name with this stat is on another mount or subvolume.
    pub(crate) fn is_elsewhere(&self, found: &Statx) -> bool {
        is_elsewhere(found, self.mount, self.device)
    }

    /// Returns whether something may be mounted inside.
    pub(crate) fn may_hold_mounts(&self) -> bool {
        self.may_hold_mounts
    }

    /// Returns whether something is mounted at a name in a directory, or below.
    pub(crate) fn holds_mount(&self, directory: BorrowedFd<'_>, name: &[u8]) -> Result<bool, Errno> {
        if self.may_hold_mounts { holds_mount(directory, name, self.mount) } else { Ok(false) }
    }

    /// Checks that a directory that a file replaces can be moved away.
    pub(crate) fn check_movable(
        &self,
        directory: Row<Directory>,
        here: BorrowedFd<'_>,
        name: &[u8],
    ) -> Result<(), Error> {
        match self.holds_mount(here, name).map_err(self.failed("look at", directory, name))? {
            true => Err(Error::unexpected(self.path_in(directory, name), HOLDS_MOUNT)),
            false => Ok(()),
        }
    }

    /// Checks that a name in a directory can be replaced or moved; for an empty name, that names in the directory can be.
    pub(crate) fn check_free(&self, directory: Row<Directory>, here: BorrowedFd<'_>, name: &[u8]) -> Result<(), Error> {
        let failed = self.failed("look at", directory, name);
        let obstacle = match self.obstacle(here, name).map_err(&failed)? {
            None if name.is_empty() && folds_names(here).map_err(&failed)? => Some(FOLDS),
            obstacle => obstacle,
        };
        match obstacle {
            Some(problem) => Err(Error::unexpected(self.path_in(directory, name), problem)),
            None => Ok(()),
        }
    }

    /// Returns whether a name in a directory is no part of the tree ([`Site::leaves_alone`]).
    ///
    /// # Errors
    /// As `kind`.
    pub(crate) fn leaves_alone(
        &self,
        directory: Row<Directory>,
        name: &[u8],
        kind: impl FnOnce() -> Result<FileType, Errno>,
    ) -> Result<bool, Errno> {
        match self.site {
            Some(site) if self.index.directory(directory).parent.is_none() => site.leaves_alone(name, kind),
            _ => Ok(false),
        }
    }

    /// Returns which of these directories, parents first, are missing.
    pub(crate) fn missing(&self, directories: &[Row<Directory>]) -> Vec<Row<Directory>> {
        let mut walk = TargetWalk::default();
        let is_missing = |directory: &Row<Directory>| {
            matches!(walk.go(self, *directory), Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP))
        };
        directories.iter().copied().filter(is_missing).collect()
    }

    pub(crate) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Returns the error for a change on another mount or subvolume: an update does not enter it.
    pub(crate) fn is_mounted(&self, directory: Row<Directory>) -> Error {
        Error::unexpected(self.path_in(directory, b""), MOUNTED)
    }

    /// Returns the path of a name in a directory, or of the directory for an empty name.
    pub(crate) fn path_in(&self, directory: Row<Directory>, name: &[u8]) -> PathBuf {
        let mut path = self.path_of(&self.index.directory_path(directory));
        if !name.is_empty() {
            path.push(crate::error::path_of(name));
        }
        path
    }

    pub(crate) fn path_of(&self, below: &[u8]) -> PathBuf {
        self.path.join(crate::error::path_of(below))
    }

    pub(crate) fn failed<'n>(
        &'n self,
        doing: &'static str,
        directory: Row<Directory>,
        name: &'n [u8],
    ) -> impl Fn(Errno) -> Error + 'n {
        move |error| Error::io(doing, self.path_in(directory, name), error)
    }
}

impl TargetWalk {
    /// Moves to a directory of the index.
    ///
    /// # Errors
    /// Returns ENOENT if it does not exist, ELOOP or ENOTDIR if something else is on the way, EXDEV if another file system is, and ESTALE if a
    /// directory was moved meanwhile.
    pub(crate) fn go(&mut self, target: &Target<'_>, to: Row<Directory>) -> Result<BorrowedFd<'_>, Errno> {
        if self.trail.last().is_none_or(|step| step.number != to)
            && let Err(error) = self.walk(target, to)
        {
            *self = Self::default();
            return Err(error);
        }
        self.open.back().map(AsFd::as_fd).ok_or(Errno::BADF)
    }

    /// As [`Self::go`], and returns whether only this user and root can have put a directory there.
    pub(crate) fn go_seeing(
        &mut self,
        target: &Target<'_>,
        to: Row<Directory>,
    ) -> Result<(BorrowedFd<'_>, bool), Errno> {
        self.go(target, to)?;
        let is_safe = self.trail.last().is_some_and(|step| step.is_safe);
        self.go(target, to).map(|at| (at, is_safe))
    }

    /// Returns the directories to go through, the last first, and how much of the trail stays.
    fn way(&self, target: &Target<'_>, to: Row<Directory>) -> (Vec<Row<Directory>>, usize) {
        let mut way = Vec::new();
        let mut next = Some(to);
        while let Some(number) = next {
            let row = target.index.directory(number);
            // A directory's depth is its position in the trail.
            let depth = num::at(row.depth);
            if self.trail.get(depth).is_some_and(|step| step.number == number) {
                return (way, depth + 1);
            }
            way.push(number);
            next = row.parent;
        }
        (way, 0)
    }

    fn walk(&mut self, target: &Target<'_>, to: Row<Directory>) -> Result<(), Errno> {
        let (way, common) = self.way(target, to);
        self.go_back(common)?;
        for &number in way.iter().rev() {
            let row = target.index.directory(number);
            let at = match row.parent {
                None => target.root.try_clone().map_err(|_| Errno::MFILE)?,
                Some(_) => {
                    let above = self.open.back().ok_or(Errno::BADF)?;
                    let name = target.index.name(target.index.entry(row.entry));
                    open_on_same_device(above.as_fd(), name, OFlags::PATH | OFlags::DIRECTORY, Mode::empty())?
                }
            };
            let stat = fstat(&at)?;
            if stat.st_dev != target.device {
                return Err(Errno::XDEV); // a subvolume, which is not a mount
            }
            let is_safe = is_own(&stat) && self.trail.last().is_none_or(|above| above.is_safe);
            self.trail.push(Step { number, inode_id: (stat.st_dev, stat.st_ino), is_safe });
            self.open.push_back(at);
            if self.open.len() > OPEN_MAX {
                self.open.pop_front();
            }
        }
        Ok(())
    }

    /// Moves up until this many directories of the trail are left.
    fn go_back(&mut self, left: usize) -> Result<(), Errno> {
        let closed = self.trail.len() - self.open.len();
        if left > closed {
            self.open.truncate(left - closed);
        } else {
            let first = self.open.pop_front();
            self.open.clear();
            if let (Some(from), Some(step)) = (first, self.trail[..left].last()) {
                self.open.push_back(back(from, closed + 1 - left, step.inode_id)?);
            }
        }
        self.trail.truncate(left);
        Ok(())
    }
}

/// Moves up to a directory of known inode_id.
fn back(mut at: OwnedFd, mut levels: usize, known: InodeId) -> Result<OwnedFd, Errno> {
    while levels > 0 {
        let step = levels.min(1000);
        at = open_within(at.as_fd(), &b"../".repeat(step), OFlags::PATH | OFlags::DIRECTORY, Mode::empty())?;
        levels -= step;
    }
    if inode_id(at.as_fd())? == known { Ok(at) } else { Err(Errno::STALE) }
}
