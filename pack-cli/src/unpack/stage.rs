//! The directory in which a tree grows until it is complete.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    CWD, FlockOperation, Mode, OFlags, RenameFlags, flock, mkdirat, openat, renameat, renameat_with, syncfs,
};
use rustix::io::Errno;

use crate::Error;

/// `.NAME.sealift-partial` beside the target; it becomes the target by one rename.
#[derive(Debug)]
pub(super) struct Stage {
    target: PathBuf,
    path: PathBuf,
    root: OwnedFd,
    finished: bool,
}

impl Drop for Stage {
    fn drop(&mut self) {
        if !self.finished {
            // What cannot be removed is a rest that is named as one, and the next run removes it.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

impl Stage {
    /// Makes the stage; a rest of a killed run is removed first.
    ///
    /// # Errors
    /// The target exists already, another run is unpacking to it, or the directory cannot be made.
    pub(super) fn create(target: &Path) -> Result<Self, Error> {
        refuse_existing(target)?;
        let path = sibling(target, ".sealift-partial")?;
        for _ in 0..2 {
            match mkdirat(CWD, &path, Mode::RWXU) {
                Ok(()) => {
                    let root = open_stage(&path)?;
                    return Ok(Self { target: target.to_owned(), path, root, finished: false });
                }
                Err(Errno::EXIST) => {
                    // The lock is held until the rest is gone.
                    let rest = open_stage(&path)?;
                    std::fs::remove_dir_all(&path).map_err(|error| Error::io("remove", &path, error))?;
                    drop(rest);
                }
                Err(error) => return Err(Error::io("create", &path, error)),
            }
        }
        Err(Error::Usage(format!("another run is unpacking to {}", target.display())))
    }

    pub(super) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// The path of a file in the stage, for messages: the name that it is going to have.
    pub(super) fn path_of(&self, below: &[u8]) -> PathBuf {
        self.target.join(crate::error::path_of(below))
    }

    /// Waits until the medium has everything.
    pub(super) fn sync(&self) -> Result<(), Error> {
        syncfs(&self.root).map_err(|error| Error::io("sync", &self.target, error))
    }

    /// Makes the target appear.
    pub(super) fn finish(mut self, durable: bool) -> Result<(), Error> {
        let failed = |error| Error::io("create", &self.target, error);
        match renameat_with(CWD, &self.path, CWD, &self.target, RenameFlags::NOREPLACE) {
            // An empty directory that was there before is replaced.
            Err(Errno::EXIST | Errno::INVAL | Errno::NOSYS) => {
                renameat(CWD, &self.path, CWD, &self.target).map_err(failed)?;
            }
            other => other.map_err(failed)?,
        }
        self.finished = true;
        if durable {
            let parent = parent_of(&self.target);
            File::open(parent)
                .and_then(|parent| parent.sync_all())
                .map_err(|error| Error::io("sync", parent, error))?;
        }
        Ok(())
    }
}

/// Opens a stage and takes its lock, which ends with the process.
fn open_stage(path: &Path) -> Result<OwnedFd, Error> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = openat(CWD, path, flags, Mode::empty()).map_err(|error| Error::io("open", path, error))?;
    match flock(&fd, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(fd),
        Err(Errno::WOULDBLOCK) => Err(Error::Usage(format!("another run has {} in use", path.display()))),
        Err(error) => Err(Error::io("lock", path, error)),
    }
}

fn refuse_existing(target: &Path) -> Result<(), Error> {
    match std::fs::symlink_metadata(target) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::io("read", target, error)),
        Ok(metadata) if metadata.is_dir() => {
            let mut entries = std::fs::read_dir(target).map_err(|error| Error::io("read", target, error))?;
            if entries.next().is_none() {
                return Ok(());
            }
            Err(Error::Usage(format!("{} exists and is not empty: unpack to a new directory", target.display())))
        }
        Ok(_) => Err(Error::Usage(format!("{} exists and is not a directory: unpack to a new one", target.display()))),
    }
}

/// `.NAME` and a suffix, beside the target.
pub(crate) fn sibling(target: &Path, suffix: &str) -> Result<PathBuf, Error> {
    let Some(name) = target.file_name() else {
        return Err(Error::Usage(format!("{} does not name a directory that can be made", target.display())));
    };
    let mut sibling = std::ffi::OsString::from(".");
    sibling.push(name);
    sibling.push(suffix);
    Ok(target.with_file_name(sibling))
}

pub(super) fn parent_of(target: &Path) -> &Path {
    target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
