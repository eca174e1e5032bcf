//! The directory beside a target, or in a mount point, in which new files are built until they are complete.

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock, syncfs};
use rustix::io::Errno;
use serde::Serialize;

use super::heritage::disinherit;
use crate::{Error, OwnDir, Place, Record};

/// `.NAME.sealift-partial` beside a target, or `.sealift/partial` in a mount point: no other user accesses it, and one run at a time holds it.
#[derive(Debug)]
pub struct Stage {
    place: Place,
    /// Its lock ends with the process.
    own: OwnDir,
}

/// What a run does beside a target, or left there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(clippy::exhaustive_enums, reason = "callers have to word each")]
pub enum LeftRun {
    /// A run is working on the target.
    Running,
    /// A run ended before it changed the target.
    Unfinished,
    /// An update ended while it changed the target: some files are old, and some new. Its stage has what is needed to finish it.
    HalfUpdated,
    /// The same, without a stage: the record says so.
    #[serde(rename = "half-updated")]
    Mixed,
    /// There is a stage that this user may not open.
    Hidden,
}

impl LeftRun {
    /// Returns its word in JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Unfinished => "unfinished",
            Self::HalfUpdated | Self::Mixed => "half-updated",
            Self::Hidden => "hidden",
        }
    }

    /// Returns whether the target has parts of two bundles.
    #[must_use]
    pub fn is_half(self) -> bool {
        matches!(self, Self::HalfUpdated | Self::Mixed)
    }

    /// Adds what the record says to what was found in place of a stage.
    pub(crate) fn or_mixed(found: Option<Self>, record: Option<&OwnDir>) -> Option<Self> {
        let is_mixed = record.is_some_and(|record| record.has(Record::MIXED).unwrap_or(false));
        match found {
            None | Some(Self::Unfinished) if is_mixed => Some(Self::Mixed),
            found => found,
        }
    }
}

impl Stage {
    /// The file in it that says that an update has begun to change the target.
    pub const MARK: &str = "journal";
    /// The target's next record in it.
    pub const STATE: &str = "state";
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

    /// Returns what a run does in the stage at `place`, or left there; `None` if there is no stage.
    pub fn look(place: &Place) -> Result<Option<LeftRun>, Error> {
        let own = match OwnDir::open(place) {
            Ok(None) => return Ok(None),
            Ok(Some(own)) => own,
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::PermissionDenied => {
                return Ok(Some(LeftRun::Hidden));
            }
            // What another user put there is no stage. A run that needs one refuses it.
            Err(Error::Unusable { .. } | Error::Foreign { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        // A file system without locks does not tell.
        let is_held = flock(own.fd(), FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK);
        Ok(Some(match () {
            () if is_held => LeftRun::Running,
            () if own.has(Self::MARK)? => LeftRun::HalfUpdated,
            () => LeftRun::Unfinished,
        }))
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
