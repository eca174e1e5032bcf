//! The directory beside a target in which new files are built until they are complete.

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock, syncfs};
use rustix::io::Errno;

use crate::{Error, OwnDir, Place};

/// `.NAME.sealift-partial` beside a target: nobody else reads or writes it, and one run at a time holds it.
#[derive(Debug)]
pub struct Stage {
    place: Place,
    /// Its lock ends with the process.
    own: OwnDir,
}

impl Stage {
    /// What is behind the target's name in the stage's.
    pub const SUFFIX: &str = ".sealift-partial";

    /// Makes the stage of `target`, or opens the one that a run left which did not end.
    ///
    /// # Errors
    /// Another run holds it, it is not this user's alone, or it cannot be made.
    pub fn open(target: &Place) -> Result<Self, Error> {
        let place = target.sibling(Self::SUFFIX)?;
        let own = OwnDir::create(&place)?;
        lock(own.fd(), own.path())?;
        // A run that ended in between took the name away.
        match place.check_same(own.fd()) {
            Err(Error::Exchanged { path }) => Err(Error::Busy { path }),
            checked => checked.map(|()| Self { place, own }),
        }
    }

    /// Whether a run left a stage of `target`.
    ///
    /// # Errors
    /// It cannot be told.
    pub fn is_left(target: &Place) -> Result<bool, Error> {
        target.sibling(Self::SUFFIX)?.is_missing().map(|missing| !missing)
    }

    /// The directory.
    #[must_use]
    pub fn own(&self) -> &OwnDir {
        &self.own
    }

    /// Its path, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.own.path()
    }

    /// Sees to it that the stage's name still leads to it.
    ///
    /// # Errors
    /// [`Error::Exchanged`] where it does not.
    pub fn check(&self) -> Result<(), Error> {
        self.place.check_same(self.own.fd())
    }

    /// Waits until the medium has all of its file system.
    ///
    /// # Errors
    /// As syncfs(2).
    pub fn sync(&self) -> Result<(), Error> {
        syncfs(self.own.fd()).map_err(|error| Error::io("sync", self.path(), error))
    }

    /// Removes the stage and all in it.
    ///
    /// # Errors
    /// Something cannot be removed, or its name leads elsewhere.
    pub fn remove(self) -> Result<(), Error> {
        self.own.remove_from(&self.place)
    }
}

/// Takes the lock of an open directory, which ends with the process.
///
/// # Errors
/// [`Error::Busy`] where another run has it.
pub fn lock(fd: BorrowedFd<'_>, path: &Path) -> Result<(), Error> {
    // A program that another thread of ours starts has a copy of each lock until it runs: that is over at once.
    for _ in 0..10 {
        match flock(fd, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK) => std::thread::sleep(Duration::from_millis(5)),
            Err(error) => return Err(Error::io("lock", path, error)),
        }
    }
    Err(Error::Busy { path: path.to_owned() })
}
