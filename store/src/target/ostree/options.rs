//! How commits are imported, and as which refs.

use crate::Error;
use crate::ostree::refs::{RefName, RefPlace};
use crate::ostree::repo::Repo;
use crate::seal::Seal;

/// How a bundle is taken into a repository.
#[derive(Clone, Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "callers fill it in")]
pub struct ImportOptions {
    /// The refs; none is all that are OSTree commits.
    pub refs: Vec<String>,
    /// Where they go.
    pub destination: Destination,
    /// Whether the kernel is to keep new objects as they are: [`Seal::AsBefore`] is as it was done for the last bundle of this name.
    pub seal: Seal,
    /// Read and hash the objects that the repository has, and do not rely on what the file system says of them.
    pub rehash: bool,
    /// Do not look at objects of commits that the repository has.
    pub trust_record: bool,
    /// The moment at which a summary that is written anew is said to be written, in seconds since 1970.
    pub now: u64,
    /// Find out what would be done, and do nothing.
    pub dry_run: bool,
    /// Threads; 0 is 1.
    pub jobs: usize,
}

/// Where refs go in a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a caller chooses one")]
pub enum Destination {
    /// `refs/heads`: they are the repository's own, and no remote has a say.
    #[default]
    Heads,
    /// `refs/remotes/NAME`: as if they were pulled from that remote, which the repository has to have, and whose signatures it asks for.
    Remote(String),
    /// `refs/mirrors/COLLECTION` for those of a collection, `refs/heads` for others, as `ostree pull --mirror` does. Of all refs, the summary
    /// that the bundle carries comes along, if it names no others.
    Mirror,
}

/// Where the ref of a name and a collection, which may be none, goes.
pub(super) fn destination(
    repo: &Repo,
    name: &str,
    collection: &str,
    destination: &Destination,
) -> Result<RefName, Error> {
    let place = match destination {
        Destination::Remote(remote) => RefPlace::Remote(remote.clone()),
        // A collection that is the repository's own is not mirrored.
        Destination::Mirror if !collection.is_empty() && repo.config().collection_id.as_deref() != Some(collection) => {
            RefPlace::Mirror(collection.to_owned())
        }
        Destination::Heads | Destination::Mirror => RefPlace::Heads,
    };
    RefName::new(place, name).map_err(|fault| repo.fault(fault))
}
