//! The symbolic links of a store: `images/DIGEST`, which marks an object as an image, and `images/refs/NAME`.

use std::os::fd::AsFd as _;
use std::path::PathBuf;

use rustix::fs::{AtFlags, Mode as Permissions, OFlags, fsync, readlinkat, renameat, symlinkat, unlinkat};
use rustix::io::Errno;
use sealift_format::hex;
use sealift_format::verity::FileDigest;

use crate::Error;
use crate::composefs::repo::{Repo, object_name};
use crate::composefs::transaction::Transaction;
use crate::fs::confined::open_beneath;

/// The link's name in the stage.
const STAGED: &str = "link";

/// The expected link.
#[derive(Debug)]
pub(crate) struct Link {
    /// The link's path in the store.
    pub(crate) path: String,
    /// The link's target.
    pub(crate) to: String,
}

/// What is found in the place of a link.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The expected link.
    Right,
    Missing,
    /// A link to another target; `None` for anything that is not a link.
    Other(Option<String>),
}

impl Link {
    /// Returns the link that marks an object as an image.
    pub(crate) fn of_image(digest: &FileDigest) -> Self {
        Self { path: format!("images/{}", hex(digest.as_bytes())), to: format!("../objects/{}", object_name(digest)) }
    }

    /// Returns the link that gives an image a name.
    pub(crate) fn of_ref(name: &str, digest: &FileDigest) -> Self {
        let up = "../".repeat(name.split('/').count());
        Self { path: format!("images/refs/{name}"), to: format!("{up}{}", hex(digest.as_bytes())) }
    }

    /// Checks what is in its place.
    pub(crate) fn look(&self, repo: &Repo) -> Result<Standing, Error> {
        let (folder, name) = self.path.rsplit_once('/').unwrap_or(("", &self.path));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let opened = open_beneath(repo.root(), folder.as_bytes(), flags, Permissions::empty());
        match opened.and_then(|folder| readlinkat(folder, name, Vec::new())) {
            Ok(to) if to.as_bytes() == self.to.as_bytes() => Ok(Standing::Right),
            Ok(to) => Ok(Standing::Other(Some(to.to_string_lossy().into_owned()))),
            Err(Errno::INVAL) => Ok(Standing::Other(None)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(Standing::Missing),
            Err(error) => Err(Error::io("read", path_of(repo, &self.path), error)),
        }
    }
}

/// Marks an object as an image.
pub(crate) fn link_image(transaction: &Transaction<'_>, repo: &Repo, digest: &FileDigest) -> Result<(), Error> {
    link(transaction, repo, &Link::of_image(digest))
}

/// Points a name to an image, whatever it was before.
///
/// # Errors
/// Returns an error if the store cannot be written to, or has names below this one.
pub(crate) fn link_ref(
    transaction: &Transaction<'_>,
    repo: &Repo,
    name: &str,
    digest: &FileDigest,
) -> Result<(), Error> {
    link(transaction, repo, &Link::of_ref(name, digest))
}

/// Creates or replaces a link by one rename, durably.
fn link(transaction: &Transaction<'_>, repo: &Repo, Link { path, to }: &Link) -> Result<(), Error> {
    let failed = |error: Errno| Error::io("create", path_of(repo, path), error);
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let folder = repo.make_directories(folder, 0o755).map_err(failed)?;
    let is_there = readlinkat(&folder, name, Vec::new()).is_ok_and(|found| found.as_bytes() == to.as_bytes());
    if !is_there {
        match unlinkat(transaction.stage(), STAGED, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(failed(error)),
        }
        symlinkat(&**to, transaction.stage(), STAGED).map_err(failed)?;
        renameat(transaction.stage(), STAGED, &folder, name).map_err(failed)?;
    }
    // An existing link may also be from a run that was killed before it was durable.
    fsync(folder.as_fd()).map_err(failed)
}

fn path_of(repo: &Repo, path: &str) -> PathBuf {
    repo.path().join(path)
}
