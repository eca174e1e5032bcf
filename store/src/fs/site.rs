//! The place of a target directory, and what is there.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags, fstat, openat};
use rustix::io::{Errno, retry_on_intr};

use super::{Identity, OwnDir, Place, identity, stage};
use crate::Error;
use crate::fs::confined::names_in;

/// The place of a directory that is a target, and that directory, held open, where it is there.
#[derive(Debug)]
pub struct Site {
    place: Place,
    root: Option<OwnedFd>,
}

impl Site {
    /// What is behind the target's name in that of its install record.
    pub const RECORD_SUFFIX: &str = ".sealift-state";

    /// Resolves a path that the user gave, and opens the directory that is there.
    ///
    /// # Errors
    /// As [`Place::resolve`]; there is something that is no directory, or it cannot be opened.
    pub fn resolve(path: &Path) -> Result<Self, Error> {
        Self::of(Place::resolve(path)?)
    }

    /// Opens the directory that is at a place.
    ///
    /// # Errors
    /// There is something that is no directory, or it cannot be opened.
    pub fn of(place: Place) -> Result<Self, Error> {
        let root = place.open_directory()?;
        Ok(Self { place, root })
    }

    /// Where it is.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Its path without links, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.place.path()
    }

    /// The directory, where it is there.
    #[must_use]
    pub fn root(&self) -> Option<BorrowedFd<'_>> {
        self.root.as_ref().map(OwnedFd::as_fd)
    }

    /// Whether there is something in the directory: an empty one counts as nothing.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn is_nonempty_dir(&self) -> Result<bool, Error> {
        let Some(root) = self.root() else { return Ok(false) };
        names_in(root).map(|names| !names.is_empty()).map_err(|error| Error::io("read", self.path(), error))
    }

    /// What tells the directory from all others.
    ///
    /// # Errors
    /// It is not there.
    pub fn identity(&self) -> Result<Identity, Error> {
        let root = self.root().ok_or(Errno::NOENT);
        root.and_then(identity).map_err(|error| Error::io("look at", self.path(), error))
    }

    /// Whether the directory is a mount point, which nothing can be renamed over.
    ///
    /// # Errors
    /// It cannot be looked at.
    pub fn is_mount_point(&self) -> Result<bool, Error> {
        let Some(root) = self.root() else { return Ok(false) };
        let failed = |error| Error::io("look at", self.path(), error);
        let (here, above) = (fstat(root).map_err(failed)?, fstat(self.place.parent()).map_err(failed)?);
        Ok(here.st_dev != above.st_dev)
    }

    /// Keeps other runs away from the directory, by whatever name they know it.
    ///
    /// # Errors
    /// [`Error::Busy`] where another run is at work on it.
    pub fn lock(&self) -> Result<(), Error> {
        self.root().map_or(Ok(()), |root| match stage::lock(root, self.path()) {
            // A file system that has no locks: those who know it by this name are kept away by the stage's.
            Err(Error::Io { .. }) => Ok(()),
            locked => locked,
        })
    }

    /// Sees to it that the name still leads to the directory that is held.
    ///
    /// # Errors
    /// [`Error::Exchanged`] where it does not.
    pub fn check(&self) -> Result<(), Error> {
        match self.root() {
            Some(root) => self.place.check_same(root),
            None => Ok(()),
        }
    }

    /// The install record beside the target; `None` where there is none.
    ///
    /// # Errors
    /// As [`OwnDir::open`].
    pub fn record(&self) -> Result<Option<OwnDir>, Error> {
        OwnDir::open(&self.record_place()?)
    }

    /// Sees to it that the install record is still the one that was opened before.
    ///
    /// # Errors
    /// [`Error::Exchanged`] where it is not.
    pub fn check_record(&self, before: Option<&OwnDir>) -> Result<(), Error> {
        let place = self.record_place()?;
        match before {
            Some(before) => place.check_same(before.fd()),
            None if place.is_missing()? => Ok(()),
            None => Err(Error::Exchanged { path: place.path().to_owned() }),
        }
    }

    /// Where the install record is.
    ///
    /// # Errors
    /// As [`Place::sibling`].
    pub fn record_place(&self) -> Result<Place, Error> {
        self.place.sibling(Self::RECORD_SUFFIX)
    }

    /// The directory, opened again, so that its names can be listed from the start.
    ///
    /// # Errors
    /// It is not there, or cannot be opened.
    pub fn reopen(&self) -> Result<OwnedFd, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = self.root().ok_or(Errno::NOENT);
        root.and_then(|root| retry_on_intr(|| openat(root, ".", flags, Mode::empty())))
            .map_err(|error| Error::io("open", self.path(), error))
    }
}
