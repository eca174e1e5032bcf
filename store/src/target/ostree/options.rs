//! Options of an import into a repository, and the refs it creates.

use crate::Error;
use crate::ostree::refs::{RefName, RefPlace};
use crate::ostree::repo::Repo;
use crate::seal::Seal;

/// Options of an import.
#[derive(Clone, Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "callers fill it in")]
pub struct ImportOptions {
    /// The refs; if empty, all OSTree commits.
    pub refs: Vec<String>,
    /// Where the refs go.
    pub destination: Destination,
    /// Whether to seal new objects; [`Seal::AsBefore`] does as for the last bundle of this name.
    pub seal: Seal,
    /// Read and hash the objects that the repository has instead of relying on the file system's metadata.
    pub rehash: bool,
    /// Do not check objects of commits that the repository has.
    pub trust_record: bool,
    /// The time to put into a rewritten summary, in seconds since 1970.
    pub now: u64,
    /// Report what would be done, and do nothing.
    pub dry_run: bool,
    /// Threads; 0 counts as 1.
    pub jobs: usize,
}

/// Where refs go in a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a caller chooses one")]
pub enum Destination {
    /// `refs/heads`: the repository's own refs, independent of any remote.
    #[default]
    Heads,
    /// `refs/remotes/NAME`: as if pulled from that remote, which must exist in the repository and whose required signatures are checked.
    Remote(String),
    /// `refs/mirrors/COLLECTION` for refs of a collection, `refs/heads` for others, as in `ostree pull --mirror`. If all refs are imported, so is
    /// the bundle's summary, unless it names others.
    Mirror,
}

/// Returns the destination of a ref, by its name and its collection, which may be empty.
pub(super) fn destination(
    repo: &Repo,
    name: &str,
    collection: &str,
    destination: &Destination,
) -> Result<RefName, Error> {
    let place = match destination {
        Destination::Remote(remote) => RefPlace::Remote(remote.clone()),
        // Refs of the repository's own collection are not mirrored.
        Destination::Mirror if !collection.is_empty() && repo.config().collection_id.as_deref() != Some(collection) => {
            RefPlace::Mirror(collection.to_owned())
        }
        Destination::Heads | Destination::Mirror => RefPlace::Heads,
    };
    RefName::new(place, name).map_err(|fault| repo.fault(fault))
}
