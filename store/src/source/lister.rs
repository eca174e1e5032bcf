//! Lists directories on several threads.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex, MutexGuard};
use rustix::fs::{AtFlags, Mode, OFlags, Stat, StatxFlags, openat, readlinkat, statat, statx};
use rustix::io::{Errno, retry_on_intr};
use sealift_format::name::join;
use sealift_format::num;
use sealift_format::{FileType, Xattr};

use super::directory_options::DirectoryOptions;
use crate::Error;
use crate::Site;
use crate::error::path_of;
use crate::fs::kind_of;
use crate::fs::mount::{are_apart, look, may_hold_mounts};
use crate::fs::mount_id::mount_id;
use crate::threads::panic_guard::OnPanic;
use crate::threads::team::team;

/// The listing of a directory.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) entries: Vec<Listed>,
    pub(super) xattrs: Vec<Xattr>,
}

/// A file in a listing.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) name: CString,
    pub(super) stat: Stat,
    pub(super) xattrs: Vec<Xattr>,
    pub(super) found: EntryKind,
}

/// What a file is.
#[derive(Debug)]
pub(super) enum EntryKind {
    /// The slot of its own listing, unless it is on another file system.
    Directory(Option<usize>),
    Symlink(Box<[u8]>),
    Other(FileType),
}

/// Lists directories on several threads. The last directory found is listed first, so that few are open at a time.
pub(super) struct Lister<'a> {
    path: &'a Path,
    options: &'a DirectoryOptions,
    device: u64,
    /// The mount of the root, if what is mounted inside is left and there may be any.
    mount: Option<u64>,
    /// Whether stats are asked of the file system itself: FUSE may give those from before the last change for a while.
    is_cached: bool,
    state: Mutex<ListerState>,
    changed: Condvar,
}

#[derive(Default)]
struct ListerState {
    pending: Vec<ListTask>,
    busy: usize,
    listings: Vec<Listing>,
    mounts: Vec<Vec<u8>>,
    failed: Option<Error>,
    /// Whether a thread panicked, which ends the run: no thread waits for it.
    is_over: bool,
}

/// A directory to list.
struct ListTask {
    slot: usize,
    parent: Arc<OwnedFd>,
    name: CString,
    /// Its path below the root.
    path: Vec<u8>,
}

impl<'a> Lister<'a> {
    pub(super) fn new(path: &'a Path, options: &'a DirectoryOptions, root: &OwnedFd, device: u64) -> Self {
        let mount = options.leave_mounts.then(|| mount_id(root).ok()).flatten().filter(|mount| may_hold_mounts(*mount));
        let is_cached = kind_of(root.as_fd()) == "FUSE";
        Self { path, options, device, mount, is_cached, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Returns the listings, and the paths at which something is mounted.
    pub(super) fn run(self, root: &OwnedFd, jobs: usize) -> Result<(Vec<Listing>, Vec<Vec<u8>>), Error> {
        let parent = root.try_clone().map_err(|error| Error::io("read", self.path, error))?;
        {
            let mut state = self.lock();
            state.pending.push(ListTask { slot: 0, parent: Arc::new(parent), name: c".".into(), path: Vec::new() });
            state.listings.push(Listing::default());
        }
        team(jobs, || self.work());
        let mut state = self.state.into_inner();
        state.mounts.sort_unstable();
        state.failed.map_or(Ok((state.listings, state.mounts)), Err)
    }

    fn lock(&self) -> MutexGuard<'_, ListerState> {
        self.state.lock()
    }

    fn work(&self) {
        let _guard = self.ending_on_panic();
        loop {
            let mut state = self.lock();
            let job = loop {
                if state.is_over || state.failed.is_some() || (state.pending.is_empty() && state.busy == 0) {
                    self.changed.notify_all();
                    return;
                }
                if let Some(job) = state.pending.pop() {
                    break job;
                }
                self.changed.wait(&mut state);
            };
            state.busy += 1;
            drop(state);
            let result = self.list(&job).and_then(|listed| self.advance(listed));
            let mut state = self.lock();
            state.busy -= 1;
            match result {
                Ok((fd, listing)) => {
                    if let Err(error) = self.take_listing(&mut state, &job, Arc::new(fd), listing) {
                        state.failed = Some(error);
                    }
                }
                Err(error) => state.failed = Some(error),
            }
            self.changed.notify_all();
        }
    }

    fn ending_on_panic(&self) -> OnPanic<impl FnMut()> {
        OnPanic(|| {
            self.lock().is_over = true;
            self.changed.notify_all();
        })
    }

    fn advance<T>(&self, listed: (T, Listing)) -> Result<(T, Listing), Error> {
        if let Some(progress) = &self.options.progress {
            progress.add(0, num::wide(listed.1.entries.len()));
            progress.check()?;
        }
        Ok(listed)
    }

    fn take_listing(
        &self,
        state: &mut ListerState,
        job: &ListTask,
        fd: Arc<OwnedFd>,
        mut listing: Listing,
    ) -> Result<(), Error> {
        for entry in &mut listing.entries {
            let failed = |error| {
                let path = join(&job.path, entry.name.to_bytes());
                Error::io("look at", self.path.join(path_of(&path)), error)
            };
            if self.is_left(fd.as_fd(), entry).map_err(failed)? {
                state.mounts.push(join(&job.path, entry.name.to_bytes()));
                continue;
            }
            let EntryKind::Directory(slot) = &mut entry.found else { continue };
            if self.options.one_file_system && entry.stat.st_dev != self.device {
                let path = join(&job.path, entry.name.to_bytes());
                tracing::info!(path = ?path_of(&path), "left empty: on another file system");
                continue;
            }
            *slot = Some(state.listings.len());
            state.pending.push(ListTask {
                slot: state.listings.len(),
                parent: Arc::clone(&fd),
                name: entry.name.clone(),
                path: join(&job.path, entry.name.to_bytes()),
            });
            state.listings.push(Listing::default());
        }
        state.listings[job.slot] = listing;
        Ok(())
    }

    fn list(&self, job: &ListTask) -> Result<(OwnedFd, Listing), Error> {
        let failed = |path: &[u8], error: Errno| Error::io("read", self.path.join(path_of(path)), error);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = retry_on_intr(|| openat(&*job.parent, &job.name, flags, Mode::empty()));
        let fd = opened.map_err(|error| failed(&job.path, error))?;
        let mut listing = Listing {
            entries: Vec::new(),
            xattrs: self.options.xattrs.read(fd.as_fd()).map_err(|error| failed(&job.path, error))?,
        };
        let omit = match &self.options.omit_output {
            Some(omit) if omit.is_in(fd.as_fd()).map_err(|error| failed(&job.path, error))? => Some(omit),
            _ => None,
        };
        let is_mount_point =
            job.path.is_empty() && is_mount_point(fd.as_fd()).map_err(|error| failed(&job.path, error))?;
        let names = retry_on_intr(|| rustix::fs::Dir::read_from(&fd)).map_err(|error| failed(&job.path, error))?;
        for name in names {
            let name = name.map_err(|error| failed(&job.path, error))?.file_name().to_owned();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let path = || join(&job.path, name.to_bytes());
            if self.is_cached {
                let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::STATX_FORCE_SYNC;
                let _ = statx(&fd, &name, flags, StatxFlags::BASIC_STATS);
            }
            let stat = statat(&fd, &name, AtFlags::SYMLINK_NOFOLLOW).map_err(|error| failed(&path(), error))?;
            let file_type = u16::try_from(stat.st_mode).ok().and_then(FileType::of_mode);
            let is_directory = file_type == Some(FileType::Directory);
            if self.options.excludes(path, is_directory) {
                tracing::debug!(path = ?path_of(&path()), "excluded by a pattern");
                continue;
            }
            if omit.is_some_and(|omit| omit.takes(fd.as_fd(), &name, &stat, &path())) {
                continue;
            }
            if is_directory
                && is_mount_point
                && self.is_no_part(fd.as_fd(), &name).map_err(|error| failed(&path(), error))?
            {
                continue;
            }
            let found = match file_type {
                Some(FileType::Directory) => EntryKind::Directory(None),
                Some(FileType::Symlink) => {
                    let target = readlinkat(&fd, &name, Vec::new()).map_err(|error| failed(&path(), error))?;
                    EntryKind::Symlink(target.to_bytes().into())
                }
                Some(other) => EntryKind::Other(other),
                None => return Err(failed(&path(), Errno::INVAL)),
            };
            let xattrs = match found {
                // Read when the file or directory is opened.
                EntryKind::Directory(_) | EntryKind::Other(FileType::Regular) => Vec::new(),
                _ => self.options.xattrs.read_link(fd.as_fd(), &name).map_err(|error| failed(&path(), error))?,
            };
            listing.entries.push(Listed { name, stat, xattrs, found });
        }
        Ok((fd, listing))
    }
}

impl Lister<'_> {
    /// Returns whether an entry is left, with what lies below, since it is on another mount or subvolume.
    fn is_left(&self, directory: BorrowedFd<'_>, entry: &Listed) -> Result<bool, Errno> {
        let is_subvolume = || matches!(entry.found, EntryKind::Directory(_)) && entry.stat.st_dev != self.device;
        let is_mounted = || match look(directory, entry.name.to_bytes()) {
            Err(Errno::NOENT) => Ok(false), // removed since it was listed
            found => found.map(|(mount, _)| Some(mount) != self.mount),
        };
        Ok(self.options.leave_mounts && (is_subvolume() || self.mount.is_some() && is_mounted()?))
    }

    /// Returns whether a directory at the root of a mount point is no part of the tree there.
    fn is_no_part(&self, root: BorrowedFd<'_>, name: &CStr) -> Result<bool, Errno> {
        let is_omitted = self.options.omit_lost_and_found && name.to_bytes() == Site::LOST_AND_FOUND.as_bytes();
        Ok(is_omitted || Site::holds_record(root, name.to_bytes())?)
    }
}

/// Returns whether nothing beside a directory can be renamed into it.
fn is_mount_point(directory: BorrowedFd<'_>) -> Result<bool, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match retry_on_intr(|| openat(directory, "..", flags, Mode::empty())) {
        Err(Errno::ACCESS) => Ok(false),
        above => match are_apart(directory, above?.as_fd()) {
            // The kernel does not tell on which mount it is.
            Err(Errno::NOSYS) => Ok(false),
            apart => apart,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::panic_guard::assert_panics;

    #[test]
    fn nobody_waits_for_a_lister_that_panicked() {
        assert_panics(|| {
            let folder = tempfile::tempdir().expect("a folder");
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let parent = Arc::new(rustix::fs::open(folder.path(), flags, Mode::empty()).expect("it is there"));
            let options = DirectoryOptions::default();
            let lister = Lister::new(folder.path(), &options, &parent, 0);
            // There is no such slot for the listing.
            lister.lock().pending.push(ListTask { slot: 7, parent, name: c".".into(), path: Vec::new() });
            team(2, || lister.work());
        });
    }
}
