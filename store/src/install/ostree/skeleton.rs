//! Creates an empty repository on a medium, at `.ostree/repo`, as `ostree create-usb` does.
//!
//! `objects` is made last: clients do not take a folder without it for a repository, and the next run completes what a killed one began.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode as Permissions, OFlags, fchmod, fdatasync, fsync, mkdirat, renameat, statat, unlinkat};
use rustix::io::Errno;

use crate::Error;
use crate::fs::confined::{open_beneath, open_name, open_user_dir};
use crate::ostree::look_for_stages;
use crate::ostree::repo::Repo;

/// Where clients look for a repository on a medium.
pub const PATH: &str = ".ostree/repo";

/// It has no collection of its own, so that all refs are mirrored.
const CONFIG: &[u8] = b"[core]\nrepo_version=1\nmode=archive-z2\nindexed-deltas=true\n";
/// The temporary name of the configuration in the repository.
const NEW_CONFIG: &str = ".sealift-config";

const DIRECTORIES: [&str; 8] =
    ["tmp", "tmp/cache", "extensions", "state", "refs", "refs/heads", "refs/mirrors", "refs/remotes"];

/// The repository of a medium, and the parts of it that were created.
#[derive(Debug)]
pub(super) struct Skeleton {
    medium: OwnedFd,
    path: PathBuf,
    /// Created paths below the medium, in order.
    made: Vec<String>,
    has_made_config: bool,
}

impl Skeleton {
    /// Creates an empty repository in the directory `medium`, unless there is one.
    ///
    /// # Errors
    /// Returns an error if the medium cannot be written to, or if a link is in the way.
    pub(super) fn make(medium: &Path) -> Result<Self, Error> {
        let path = medium.join(PATH);
        let opened = open_user_dir(medium).map_err(|error| Error::io("open", medium, error))?;
        let mut skeleton = Self { medium: opened, path, made: Vec::new(), has_made_config: false };
        match skeleton.fill() {
            Ok(()) => Ok(skeleton),
            Err(error) => {
                let error = Error::io("make", &skeleton.path, error);
                skeleton.remove();
                Err(error)
            }
        }
    }

    /// Opens the repository.
    ///
    /// # Errors
    /// Returns an error if its version or mode is unknown.
    pub(super) fn open(&self) -> Result<Repo, Error> {
        let root = self.root().map_err(|error| Error::io("open", &self.path, error))?;
        Repo::of(root, &self.path)
    }

    /// Returns whether a run left objects there for the next one.
    pub(super) fn has_stage(&self) -> bool {
        self.root().is_ok_and(|root| look_for_stages(root.as_fd(), "tmp").is_ok_and(|left| left.is_some()))
    }

    /// Removes what [`Self::make`] created, if it is still empty. What cannot be removed is an empty repository, and does no harm.
    pub(super) fn remove(self) {
        let remove = |path: String, flags| {
            let (above, name) = split(&path);
            self.below(above).and_then(|above| unlinkat(above, name, flags)).is_ok()
        };
        for path in self.made.iter().rev() {
            // Without `objects`, the remaining files belong to no repository.
            if !remove(path.clone(), AtFlags::REMOVEDIR) {
                return;
            }
            if path.ends_with("/objects") {
                remove(format!("{PATH}/.lock"), AtFlags::empty());
            }
            if path.ends_with("/tmp") && self.has_made_config {
                remove(format!("{PATH}/config"), AtFlags::empty());
            }
        }
    }

    fn root(&self) -> Result<OwnedFd, Errno> {
        self.below(PATH)
    }

    fn below(&self, path: &str) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        open_beneath(self.medium.as_fd(), path.as_bytes(), flags, Permissions::empty())
    }

    fn fill(&mut self) -> Result<(), Errno> {
        for path in [".ostree", PATH] {
            self.directory(path.to_owned(), 0o755)?;
        }
        let root = self.root()?;
        if exists(&root, "objects")? {
            return Ok(());
        }
        if !exists(&root, "config")? {
            write_config(&root)?;
            self.has_made_config = true;
        }
        for name in DIRECTORIES {
            self.directory(format!("{PATH}/{name}"), 0o775)?;
        }
        fsync(&root)?;
        self.directory(format!("{PATH}/objects"), 0o775)?;
        fsync(&root)
    }

    fn directory(&mut self, path: String, bits: u32) -> Result<(), Errno> {
        let (above, name) = split(&path);
        match mkdirat(self.below(above)?, name, Permissions::from_raw_mode(bits)) {
            Err(Errno::EXIST) => Ok(()),
            made => {
                made?;
                self.made.push(path);
                Ok(())
            }
        }
    }
}

/// Returns the path of the folder that holds a name, and the name.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or((".", path))
}

fn exists(root: &OwnedFd, name: &str) -> Result<bool, Errno> {
    match statat(root, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error),
    }
}

fn write_config(root: &OwnedFd) -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let mode = Permissions::from_raw_mode(0o644);
    match unlinkat(root, NEW_CONFIG, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {} // left by a killed run
        Err(error) => return Err(error),
    }
    let mut file = File::from(open_name(root.as_fd(), NEW_CONFIG.as_bytes(), flags, mode)?);
    file.write_all(CONFIG).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    fchmod(&file, mode)?;
    fdatasync(&file)?;
    renameat(root, NEW_CONFIG, root, "config")
}
