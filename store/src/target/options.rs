//! Options of an import into a repository or a store.

use crate::base::GivenBases;
use crate::seal::Seal;

/// Options of an import into an OSTree repository or a composefs store.
#[derive(Clone, Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "callers fill it in")]
pub struct ImportOptions {
    /// The refs; if empty, all that are OSTree commits, or have a composefs image.
    pub refs: Vec<String>,
    /// Where the bases of a delta bundle are, unless the target holds them.
    pub bases: GivenBases,
    /// Where the refs go in an OSTree repository; on a medium always to their collections.
    pub destination: Destination,
    /// Whether to seal new objects; [`Seal::AsBefore`] does as for the last bundle of this name, or as the store does. On a medium none is sealed.
    pub seal: Seal,
    /// Read and hash the objects that the target has instead of relying on the file system's metadata.
    pub rehash: bool,
    /// Do not check objects that the target already had.
    pub trust_record: bool,
    /// The time to put into a rewritten summary of an OSTree repository, in seconds since 1970.
    pub now: u64,
    /// Report what would be done, and do nothing.
    pub dry_run: bool,
    /// Threads; 0 counts as 1.
    pub jobs: usize,
}

/// Where refs go in an OSTree repository.
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
