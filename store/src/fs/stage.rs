//! The directory beside a target, or in a mount point, in which new files are built until they are complete.

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock, syncfs};
use rustix::io::Errno;

use super::heritage::disinherit;
use crate::{Error, OwnDir, Place};

/// `.NAME.sealift-partial` beside a target, or `.sealift/partial` in a mount point: no other user accesses it, and one run at a time holds it.
#[derive(Debug)]
pub struct Stage {
    place: Place,
    /// Its lock ends with the process.
    own: OwnDir,
}

impl Stage {
    /// The suffix of the stage's name, after the target's.
    pub const SUFFIX: &str = ".sealift-partial";

    /// Creates the stage at `place`, or opens the one that an interrupted run left.
    ///
    /// # Errors
    /// Returns an error if another run holds it, if it is not this user's alone, or if it cannot be created.
    pub fn open(place: Place) -> Result<Self, Error> {
        let own = OwnDir::create(&place)?;
        disinherit(own.fd()).map_err(|error| Error::io("change the mode of", own.path(), error))?;
        lock(own.fd(), own.path())?;
        // A run that ended in between removed the name.
        match place.check_same(own.fd()) {
            Err(Error::Exchanged { path }) => Err(Error::Busy { path }),
            checked => checked.map(|()| Self { place, own }),
        }
    }

    /// Returns the directory.
    #[must_use]
    pub fn own(&self) -> &OwnDir {
        &self.own
    }

    /// Returns its path, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.own.path()
    }

    /// Checks that the stage's name still leads to it.
    ///
    /// # Errors
    /// Returns [`Error::Exchanged`] if it does not.
    pub fn check(&self) -> Result<(), Error> {
        self.place.check_same(self.own.fd())
    }

    /// Waits until its whole file system is durable.
    ///
    /// # Errors
    /// As syncfs(2).
    pub fn sync(&self) -> Result<(), Error> {
        syncfs(self.own.fd()).map_err(|error| Error::io("sync", self.path(), error))
    }

    /// Removes the stage and everything in it.
    ///
    /// # Errors
    /// Returns an error if something cannot be removed, or if its name leads elsewhere.
    pub fn remove(self) -> Result<(), Error> {
        self.own.remove_from(&self.place)
    }
}

/// Locks an open directory; the lock ends with the process.
///
/// # Errors
/// Returns [`Error::Busy`] if another run has it.
pub fn lock(fd: BorrowedFd<'_>, path: &Path) -> Result<(), Error> {
    // A program that another thread of ours starts holds a copy of each lock until its exec, which takes a moment on a busy machine.
    for _ in 0..200 {
        match flock(fd, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK) => std::thread::sleep(Duration::from_millis(5)),
            Err(error) => return Err(Error::io("lock", path, error)),
        }
    }
    Err(Error::Busy { path: path.to_owned() })
}
