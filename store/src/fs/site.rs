//! The place of a target directory, and what is there.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, mkdirat, openat, unlinkat};
use rustix::io::{Errno, retry_on_intr};

use super::{FreeSpace, InodeId, LeftRun, OwnDir, Place, Stage, inode_id, stage};
use crate::Error;
use crate::error::path_of;
use crate::fs::confined::{known_type, names_in};
use crate::fs::identity::{birth_of, id_of_system};
use crate::fs::mount::are_apart;
use crate::fs::place::check_writable;

/// The place of a target directory, and the directory held open, if it exists.
#[derive(Debug)]
pub struct Site {
    place: Place,
    root: Option<OwnedFd>,
    keeping: Keeping,
}

/// Where the stage and the install record of a target are.
#[derive(Debug)]
enum Keeping {
    /// Beside it, and named after it.
    Beside,
    /// In a folder at its root, once that exists: it is a mount point or a subvolume, so that nothing beside it can be renamed into it.
    Within(OnceLock<OwnDir>),
}

impl Site {
    /// The suffix of the install record's name, after the target's.
    pub const RECORD_SUFFIX: &str = ".sealift-state";
    /// The folder at the root of a mount point that has the stage and the install record. It is no part of the tree.
    pub const FOLDER: &str = ".sealift";
    /// What ext4 creates at the root of a file system for the files that fsck(8) finds. It is no part of the tree either.
    pub(crate) const LOST_AND_FOUND: &str = "lost+found";
    const RECORD_WITHIN: &str = "state";
    const STAGE_WITHIN: &str = "partial";

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
        let mut site = Self { place, root, keeping: Keeping::Beside };
        // What is mounted over itself has its record beside it.
        if site.is_apart()? && !site.has_record_beside()? {
            site.keeping = Keeping::Within(OnceLock::new());
        }
        Ok(site)
    }

    /// Returns the site with its directory, which is created for this user alone if it does not exist.
    pub(crate) fn with_directory(&self) -> Result<Self, Error> {
        match mkdirat(self.place.parent(), self.place.name(), Mode::RWXU) {
            Err(Errno::EXIST) => {}
            made => made.map_err(|error| Error::io("create", self.path(), error))?,
        }
        Self::of(self.place.again()?)
    }

    /// Removes the directory if it is empty.
    pub(crate) fn remove_empty(&self) {
        let _ = unlinkat(self.place.parent(), self.place.name(), AtFlags::REMOVEDIR); // what is in use stays
    }

    /// Returns the free space of the file system that the target is or will be on.
    ///
    /// # Errors
    /// Returns an error if the file system cannot be asked.
    pub(crate) fn free_space(&self) -> Result<FreeSpace, Error> {
        FreeSpace::of(self.ground()).map_err(|error| Error::io("look at", self.ground_path(), error))
    }

    /// Returns whether nothing beside the directory can be renamed into it.
    fn is_apart(&self) -> Result<bool, Error> {
        let Some(root) = self.root() else { return Ok(false) };
        are_apart(root, self.place.parent()).map_err(|error| Error::io("look at", self.path(), error))
    }

    /// Returns whether there is a record beside the directory, on the same file system.
    fn has_record_beside(&self) -> Result<bool, Error> {
        let beside = self.place.sibling(Self::RECORD_SUFFIX)?.stat()?;
        let (Some(beside), Some(root)) = (beside, self.root()) else { return Ok(false) };
        let root = fstat(root).map_err(|error| Error::io("look at", self.path(), error))?;
        Ok(beside.st_dev == root.st_dev)
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
    pub fn is_nonempty_dir(&self) -> Result<bool, Error> {
        let Some(root) = self.root() else { return Ok(false) };
        let names = names_in(root).map_err(|error| Error::io("read", self.path(), error))?;
        for (name, listed) in names {
            let leaves = self.leaves_alone(&name, || known_type(root, &name, listed));
            if !leaves.map_err(|error| Error::io("look at", self.path().join(path_of(&name)), error))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns whether a name at the root of the directory is no part of its tree: it is this program's, or the file system's.
    ///
    /// # Errors
    /// As `kind`.
    pub(crate) fn leaves_alone(
        &self,
        name: &[u8],
        kind: impl FnOnce() -> Result<FileType, Errno>,
    ) -> Result<bool, Errno> {
        Ok(self.is_mount_point()
            && (name == Self::FOLDER.as_bytes()
                || name == Self::LOST_AND_FOUND.as_bytes() && kind()? == FileType::Directory))
    }

    /// Returns the directory's inode_id, which no other directory has.
    ///
    /// # Errors
    /// Returns an error if it does not exist.
    pub fn inode_id(&self) -> Result<InodeId, Error> {
        let root = self.root().ok_or(Errno::NOENT);
        root.and_then(inode_id).map_err(|error| Error::io("look at", self.path(), error))
    }

    /// Returns whether the directory is a mount point or a subvolume, which cannot be replaced by a rename: its stage and its record are inside.
    #[must_use]
    pub fn is_mount_point(&self) -> bool {
        matches!(self.keeping, Keeping::Within(_))
    }

    /// Returns the directory in which the stage and the record are, or the one in which their folder is: it is on the target's file system.
    #[must_use]
    pub fn ground(&self) -> BorrowedFd<'_> {
        match self.root() {
            Some(root) if self.is_mount_point() => root,
            _ => self.place.parent(),
        }
    }

    /// Returns the path of [`Site::ground`], for messages.
    #[must_use]
    pub fn ground_path(&self) -> PathBuf {
        if self.is_mount_point() { self.path().to_owned() } else { self.place.parent_path() }
    }

    /// Checks that this process may create a stage, as far as that can be told without creating one.
    pub fn check_writable(&self) -> Result<(), Error> {
        check_writable(self.ground(), &self.ground_path())
    }

    /// Returns the folder of a mount point; `None` if it does not exist.
    fn folder(&self) -> Result<Option<&OwnDir>, Error> {
        let (Keeping::Within(folder), Some(root)) = (&self.keeping, self.root()) else { return Ok(None) };
        if folder.get().is_none()
            && let Some(opened) = OwnDir::beneath(root, Self::FOLDER, &self.path().join(Self::FOLDER))?
        {
            let _ = folder.set(opened); // another thread opened it as well
        }
        Ok(folder.get())
    }

    fn kept_place(&self, suffix: &str, within: &str) -> Result<Option<Place>, Error> {
        if !self.is_mount_point() {
            return self.place.sibling(suffix).map(Some);
        }
        self.folder()?.map(|folder| Place::within(folder.fd(), within, folder.path())).transpose()
    }

    /// Returns whether this is the name of a folder at the root of a mount point that has a stage or a record.
    ///
    /// # Errors
    /// As statx(2).
    pub(crate) fn holds_record(root: BorrowedFd<'_>, name: &[u8]) -> Result<bool, Errno> {
        let has = |within| match known_type(root, format!("{}/{within}", Self::FOLDER).as_bytes(), FileType::Unknown) {
            Err(Errno::NOTDIR) => Ok(false),
            found => found.map(|found| found != FileType::Unknown),
        };
        Ok(name == Self::FOLDER.as_bytes() && (has(Self::RECORD_WITHIN)? || has(Self::STAGE_WITHIN)?))
    }

    /// Returns the place of the stage; `None` if there is not even a folder for it.
    pub fn stage_place(&self) -> Result<Option<Place>, Error> {
        self.kept_place(Stage::SUFFIX, Self::STAGE_WITHIN)
    }

    /// As [`Site::stage_place`], but creates the folder of a mount point.
    pub fn make_stage_place(&self) -> Result<Place, Error> {
        if let (true, Some(root)) = (self.is_mount_point(), self.root()) {
            OwnDir::create_public(&Place::within(root, Self::FOLDER, self.path())?)?;
        }
        let missing = || Error::io("open", self.path().join(Self::FOLDER), Errno::NOENT);
        self.stage_place()?.ok_or_else(missing)
    }

    /// Removes the folder of a mount point if it is empty.
    pub(crate) fn remove_empty_folder(&self) {
        if let (true, Some(root)) = (self.is_mount_point(), self.root()) {
            let _ = unlinkat(root, Self::FOLDER, AtFlags::REMOVEDIR); // what has a record stays
        }
    }

    /// Returns whether a run left a stage.
    pub fn has_stage(&self) -> Result<bool, Error> {
        match self.stage_place()? {
            Some(place) => Ok(!place.is_missing()?),
            None => Ok(false),
        }
    }

    /// Returns what a run does there, or left in its stage or its record.
    pub fn run(&self) -> Result<Option<LeftRun>, Error> {
        let found = self.stage_place()?.map_or(Ok(None), |place| Stage::look(&place))?;
        // A record that is another user's says nothing; whoever reads it refuses it.
        Ok(LeftRun::or_mixed(found, self.record().ok().flatten().as_ref()))
    }

    /// Checks that no run is changing the directory, and that none has left it with files of two bundles.
    ///
    /// # Errors
    /// Returns [`Error::Busy`] or [`Error::HalfUpdated`].
    pub fn check_at_rest(&self) -> Result<(), Error> {
        match self.run()? {
            Some(LeftRun::Running) => Err(self.busy()?),
            Some(LeftRun::HalfUpdated | LeftRun::Mixed) => Err(Error::HalfUpdated { target: self.path().to_owned() }),
            Some(LeftRun::Unfinished | LeftRun::Hidden) | None => Ok(()),
        }
    }

    /// Returns the error for a run that finds another one at work.
    pub(crate) fn busy(&self) -> Result<Error, Error> {
        let place = self.stage_place()?;
        Ok(Error::Busy { path: place.as_ref().map_or(self.path(), Place::path).to_owned() })
    }

    /// Opens the next record in the stage that a run left; `None` if there is none.
    pub fn next_record(&self) -> Result<Option<OwnDir>, Error> {
        let Some(place) = self.stage_place()? else { return Ok(None) };
        OwnDir::open(&place)?.map_or(Ok(None), |own| own.directory(Stage::STATE))
    }

    /// Waits until the names of the stage and the record are durable.
    pub fn sync_names(&self) -> Result<(), Error> {
        match self.folder()? {
            Some(folder) => folder.sync(),
            None => self.place.sync_parent(),
        }
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

    /// Returns the target's install record; `None` if there is none.
    pub fn record(&self) -> Result<Option<OwnDir>, Error> {
        self.record_place()?.map_or(Ok(None), |place| OwnDir::open(&place))
    }

    /// Checks that the install record is still the one that was opened before.
    ///
    /// # Errors
    /// Returns [`Error::Exchanged`] if it is not.
    pub fn check_record(&self, before: Option<&OwnDir>) -> Result<(), Error> {
        let exchanged = || Error::Exchanged { path: self.record_path() };
        match (before, self.record_place()?) {
            (Some(before), Some(place)) => place.check_same(before.fd()),
            (Some(_), None) => Err(exchanged()),
            (None, Some(place)) if !place.is_missing()? => Err(exchanged()),
            (None, _) => Ok(()),
        }
    }

    /// Returns what tells the file system at this path from others that are mounted there at other times; `None` if that is unknown. A mount point
    /// that never had a record is like no other.
    #[must_use]
    pub fn identity(&self) -> Option<String> {
        match (self.is_mount_point(), self.folder().ok()?) {
            (true, Some(folder)) => birth_of(folder.fd()).or_else(|| id_of_system(folder.fd())),
            (true, None) => Some("new".to_owned()),
            (false, _) => id_of_system(self.ground()),
        }
    }

    /// Returns the place of the install record; `None` if there is not even a folder for it.
    pub fn record_place(&self) -> Result<Option<Place>, Error> {
        self.kept_place(Self::RECORD_SUFFIX, Self::RECORD_WITHIN)
    }

    /// Returns the path of the install record, for messages.
    #[must_use]
    pub fn record_path(&self) -> PathBuf {
        if self.is_mount_point() {
            return self.path().join(Self::FOLDER).join(Self::RECORD_WITHIN);
        }
        let mut name = std::ffi::OsString::from(".");
        name.push(self.place.name());
        name.push(Self::RECORD_SUFFIX);
        self.path().with_file_name(name)
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
