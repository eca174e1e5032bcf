//! The place of a target directory, and what is there.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags, fstat, openat};
use rustix::io::{Errno, retry_on_intr};

use super::{InodeId, OwnDir, Place, inode_id, stage};
use crate::Error;
use crate::fs::confined::names_in;

/// The place of a target directory, and the directory held open, if it exists.
#[derive(Debug)]
pub struct Site {
    place: Place,
    root: Option<OwnedFd>,
}

impl Site {
    /// The suffix of the install record's name, after the target's.
    pub const RECORD_SUFFIX: &str = ".sealift-state";

    /// Resolves a path that the user gave, and opens the directory there.
    ///
    /// # Errors
    /// As [`Place::resolve`]; also returns an error if it is not a directory or cannot be opened.
    pub fn resolve(path: &Path) -> Result<Self, Error> {
        Self::of(Place::resolve(path)?)
    }

    /// Opens the directory at a place.
    ///
    /// # Errors
    /// Returns an error if it is not a directory or cannot be opened.
    pub fn of(place: Place) -> Result<Self, Error> {
        let root = place.open_directory()?;
        Ok(Self { place, root })
    }

    /// Returns its place.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Returns its path without links, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.place.path()
    }

    /// Returns the directory, if it exists.
    #[must_use]
    pub fn root(&self) -> Option<BorrowedFd<'_>> {
        self.root.as_ref().map(OwnedFd::as_fd)
    }

    /// Returns whether the directory exists and is not empty.
    ///
    /// # Errors
    /// Returns an error if it cannot be read.
    pub fn is_nonempty_dir(&self) -> Result<bool, Error> {
        let Some(root) = self.root() else { return Ok(false) };
        names_in(root).map(|names| !names.is_empty()).map_err(|error| Error::io("read", self.path(), error))
    }

    /// Returns the directory's inode_id, which no other directory has.
    ///
    /// # Errors
    /// Returns an error if it does not exist.
    pub fn inode_id(&self) -> Result<InodeId, Error> {
        let root = self.root().ok_or(Errno::NOENT);
        root.and_then(inode_id).map_err(|error| Error::io("look at", self.path(), error))
    }

    /// Returns whether the directory is a mount point, which cannot be replaced by a rename.
    ///
    /// # Errors
    /// Returns an error if it cannot be examined.
    pub fn is_mount_point(&self) -> Result<bool, Error> {
        let Some(root) = self.root() else { return Ok(false) };
        let failed = |error| Error::io("look at", self.path(), error);
        let (here, above) = (fstat(root).map_err(failed)?, fstat(self.place.parent()).map_err(failed)?);
        Ok(here.st_dev != above.st_dev)
    }

    /// Locks out other runs from the directory, by whatever name they know it.
    ///
    /// # Errors
    /// Returns [`Error::Busy`] if another run is working on it.
    pub fn lock(&self) -> Result<(), Error> {
        self.root().map_or(Ok(()), |root| match stage::lock(root, self.path()) {
            // The file system has no locks: the stage's lock excludes runs that use the same name.
            Err(Error::Io { .. }) => Ok(()),
            locked => locked,
        })
    }

    /// Checks that the name still leads to the open directory.
    ///
    /// # Errors
    /// Returns [`Error::Exchanged`] if it does not.
    pub fn check(&self) -> Result<(), Error> {
        match self.root() {
            Some(root) => self.place.check_same(root),
            None => Ok(()),
        }
    }

    /// Returns the install record beside the target; `None` if there is none.
    ///
    /// # Errors
    /// As [`OwnDir::open`].
    pub fn record(&self) -> Result<Option<OwnDir>, Error> {
        OwnDir::open(&self.record_place()?)
    }

    /// Checks that the install record is still the one that was opened before.
    ///
    /// # Errors
    /// Returns [`Error::Exchanged`] if it is not.
    pub fn check_record(&self, before: Option<&OwnDir>) -> Result<(), Error> {
        let place = self.record_place()?;
        match before {
            Some(before) => place.check_same(before.fd()),
            None if place.is_missing()? => Ok(()),
            None => Err(Error::Exchanged { path: place.path().to_owned() }),
        }
    }

    /// Returns the place of the install record.
    ///
    /// # Errors
    /// As [`Place::sibling`].
    pub fn record_place(&self) -> Result<Place, Error> {
        self.place.sibling(Self::RECORD_SUFFIX)
    }

    /// Opens the directory again, so that its names can be listed from the start.
    ///
    /// # Errors
    /// Returns an error if it does not exist or cannot be opened.
    pub fn reopen(&self) -> Result<OwnedFd, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = self.root().ok_or(Errno::NOENT);
        root.and_then(|root| retry_on_intr(|| openat(root, ".", flags, Mode::empty())))
            .map_err(|error| Error::io("open", self.path(), error))
    }
}
