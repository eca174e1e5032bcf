//! Files inside the target that the run itself needs, and that no deletion may take: the device's state, the administrator's files, the bundle, and
//! what the bases of a delta are read from.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, statat};
use rustix::io::Errno;
use std::os::fd::BorrowedFd;

use crate::fs::found::{is_missing, named_at};
use crate::fs::parent::{parent_of, shown_directory};
use crate::{Error, InodeId, Site};

/// The identities of these files, and of the directories in the target that hold them.
#[derive(Debug, Default)]
pub(super) struct Needed(HashMap<InodeId, PathBuf>);

impl Needed {
    /// Finds out which of these paths lie inside the target at `site`. Missing ones do not count.
    pub(super) fn within(site: &Site, paths: &[PathBuf]) -> Result<Self, Error> {
        let (root, mut needed) = (site.inode_id()?, Self::default());
        for path in paths {
            // A link inside the target is needed as well, wherever it leads.
            for place in [named(path)?, real(path)?].into_iter().flatten() {
                needed.add(root, &place, path)?;
            }
        }
        Ok(needed)
    }

    fn add(&mut self, root: InodeId, place: &Path, path: &Path) -> Result<(), Error> {
        let mut ids = Vec::new();
        for above in place.ancestors() {
            let Some(found) = named_at(above)? else { return Ok(()) };
            let id = (found.dev(), found.ino());
            if id == root {
                self.0.extend(ids.into_iter().map(|id| (id, path.to_owned())));
                return Ok(());
            }
            ids.push(id);
        }
        Ok(())
    }

    /// Returns whether a name in an open directory is one of these files, or holds one.
    pub(super) fn has(&self, here: BorrowedFd<'_>, name: &[u8]) -> Result<bool, Errno> {
        self.at(here, name).map(|needed| needed.is_some())
    }

    fn at(&self, here: BorrowedFd<'_>, name: &[u8]) -> Result<Option<&PathBuf>, Errno> {
        if self.0.is_empty() {
            return Ok(None);
        }
        match statat(here, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(None),
            found => found.map(|found| self.0.get(&(found.st_dev, found.st_ino))),
        }
    }

    /// Refuses the deletion of a name in an open directory; `path` is that of the name, for messages.
    ///
    /// # Errors
    /// Returns [`Error::Needed`] if it is one of these files, or holds one; also returns an error if that cannot be determined.
    pub(super) fn check(&self, here: BorrowedFd<'_>, name: &[u8], path: impl FnOnce() -> PathBuf) -> Result<(), Error> {
        match self.at(here, name) {
            Ok(None) => Ok(()),
            Ok(Some(needed)) => Err(Error::Needed { path: path(), needed: needed.clone() }),
            Err(error) => Err(Error::io("look at", path(), error)),
        }
    }
}

/// Returns a path whose last name is not followed if it is a link; `None` if it leads nowhere.
fn named(path: &Path) -> Result<Option<PathBuf>, Error> {
    let Some(name) = path.file_name() else { return Ok(None) };
    Ok(real(parent_of(path))?.map(|above| above.join(name)))
}

/// Returns a path without links; `None` if nothing is there.
fn real(path: &Path) -> Result<Option<PathBuf>, Error> {
    match path.canonicalize() {
        Err(error) if is_missing(&error) => Ok(None),
        real => real.map(Some).map_err(|error| Error::io("find", shown_directory(path), error)),
    }
}
