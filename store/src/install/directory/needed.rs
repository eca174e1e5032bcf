//! Files inside the target that the run itself needs, and that no deletion may take: the device's state, the administrator's files, the bundle, and
//! what the bases of a delta are read from.

use std::collections::HashMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, statat};
use std::os::fd::BorrowedFd;

use crate::{Error, InodeId, Site};

/// The identities of these files, and of the directories in the target that hold them.
#[derive(Debug, Default)]
pub(super) struct Needed(HashMap<InodeId, PathBuf>);

impl Needed {
    /// Finds out which of these paths lie inside the target at `site`. Missing ones do not count.
    pub(super) fn within(site: &Site, paths: &[PathBuf]) -> Result<Self, Error> {
        let (root, mut needed) = (site.inode_id()?, Self::default());
        for path in paths {
            let real = path.canonicalize().ok();
            // A link inside the target is needed as well, wherever it leads.
            for place in [named(path), real].into_iter().flatten() {
                needed.add(root, &place, path);
            }
        }
        Ok(needed)
    }

    fn add(&mut self, root: InodeId, place: &Path, path: &Path) {
        let id = |metadata: Metadata| (metadata.dev(), metadata.ino());
        let mut ids = Vec::new();
        for above in place.ancestors() {
            match above.symlink_metadata().map(id) {
                Ok(id) if id == root => {
                    self.0.extend(ids.into_iter().map(|id| (id, path.to_owned())));
                    return;
                }
                Ok(id) => ids.push(id),
                Err(_) => return,
            }
        }
    }

    /// Returns whether a name in an open directory is one of these files, or holds one.
    pub(super) fn has(&self, here: BorrowedFd<'_>, name: &[u8]) -> bool {
        self.at(here, name).is_some()
    }

    fn at(&self, here: BorrowedFd<'_>, name: &[u8]) -> Option<&PathBuf> {
        if self.0.is_empty() {
            return None;
        }
        let found = statat(here, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        self.0.get(&(found.st_dev, found.st_ino))
    }

    /// Refuses the deletion of a name in an open directory; `path` is that of the name, for messages.
    ///
    /// # Errors
    /// Returns [`Error::Needed`] if it is one of these files, or holds one.
    pub(super) fn check(&self, here: BorrowedFd<'_>, name: &[u8], path: impl FnOnce() -> PathBuf) -> Result<(), Error> {
        match self.at(here, name) {
            Some(needed) => Err(Error::Needed { path: path(), needed: needed.clone() }),
            None => Ok(()),
        }
    }
}

/// Returns a path whose last name is not followed if it is a link.
fn named(path: &Path) -> Option<PathBuf> {
    let (above, name) = (path.parent()?, path.file_name()?);
    let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
    Some(above.canonicalize().ok()?.join(name))
}
