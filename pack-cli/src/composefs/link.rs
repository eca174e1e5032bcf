//! The symbolic links of a store: `images/DIGEST`, by which an image is known to be one, and `images/refs/NAME`.

use std::os::fd::AsFd as _;
use std::path::PathBuf;

use rustix::fs::{AtFlags, fsync, readlinkat, renameat, symlinkat, unlinkat};
use rustix::io::Errno;
use sealift_format::verity::FileDigest;

use super::repo::{Repo, object_name};
use super::transaction::Transaction;
use crate::Error;
use crate::ostree::hex;

/// The name of the link in the stage.
const STAGED: &str = "link";

/// Says of an object that it is an image.
///
/// # Errors
/// The store cannot be written to.
pub(super) fn link_image(transaction: &Transaction<'_>, repo: &Repo, digest: &FileDigest) -> Result<(), Error> {
    link(
        transaction,
        repo,
        &format!("images/{}", hex(digest.as_bytes())),
        &format!("../objects/{}", object_name(digest)),
    )
}

/// Lets a name be that of an image, whatever it was before.
///
/// # Errors
/// The store cannot be written to, or has names below this one.
pub(super) fn link_ref(
    transaction: &Transaction<'_>,
    repo: &Repo,
    name: &str,
    digest: &FileDigest,
) -> Result<(), Error> {
    let up = "../".repeat(name.split('/').count());
    link(transaction, repo, &format!("images/refs/{name}"), &format!("{up}{}", hex(digest.as_bytes())))
}

/// Makes a link, or lets it lead elsewhere, by one rename. It is on the medium then.
fn link(transaction: &Transaction<'_>, repo: &Repo, path: &str, to: &str) -> Result<(), Error> {
    let failed = |error: Errno| Error::io("create", path_of(repo, path), error);
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let folder = repo.make_directories(folder, 0o755).map_err(failed)?;
    let is_there = readlinkat(&folder, name, Vec::new()).is_ok_and(|found| found.as_bytes() == to.as_bytes());
    if !is_there {
        match unlinkat(transaction.stage(), STAGED, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(failed(error)),
        }
        symlinkat(to, transaction.stage(), STAGED).map_err(failed)?;
        renameat(transaction.stage(), STAGED, &folder, name).map_err(failed)?;
    }
    // Also what is there may be of a run that was killed before it was on the medium.
    fsync(folder.as_fd()).map_err(failed)
}

fn path_of(repo: &Repo, path: &str) -> PathBuf {
    repo.path().join(path)
}
