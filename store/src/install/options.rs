//! Options of installing a bundle.

use std::path::PathBuf;

use crate::base::GivenBases;
use crate::seal::Seal;

/// Options of installing a bundle in a target of any kind.
#[derive(Clone, Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "callers fill it in")]
pub struct InstallOptions {
    /// The refs. A directory takes one, which must be given if the bundle has several; if empty, a repository or store takes all that are OSTree
    /// commits, or have a composefs image.
    pub refs: Vec<String>,
    /// Where the bases of a delta bundle are, unless the target holds them.
    pub bases: GivenBases,
    /// Whether to seal files or new objects; [`Seal::AsBefore`] follows the last bundle of this name, or the store. Existing files that are sealed
    /// for the first time are hashed first. On a medium, nothing is sealed.
    pub seal: Seal,
    /// Read and hash what the target has instead of relying on its install record and the file system's metadata.
    pub rehash: bool,
    /// Rely on the install record alone. Of an existing directory, only the names and kinds of files are checked.
    pub no_check: bool,
    /// Take over a target that is not shown to be this program's: a directory that an update finds without a record of its own, or a target whose
    /// record is lost or damaged.
    pub adopt: bool,
    /// Report what would be done, and do nothing.
    pub dry_run: bool,
    /// Threads; 0 counts as 1.
    pub jobs: usize,
    /// Options of directories.
    pub tree: TreeOptions,
    /// Options of OSTree repositories.
    pub ostree: OsTreeOptions,
    /// Options of slots.
    pub slot: SlotOptions,
}

/// Options of unpacking into a directory.
#[derive(Clone, Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "callers fill it in")]
pub struct TreeOptions {
    /// Unpack only what lies at or below this path, which may be escaped as listings show it.
    pub prefix: Vec<u8>,
    /// Update an existing target: it becomes the unpacked tree, and only what it lacks is read. Its files are compared with its install record by
    /// size, times and inode number; those that differ are read, and rebuilt if their content differs.
    pub update: bool,
    /// Let an update remove what the bundle does not have.
    pub delete: bool,
    /// If an update has to examine the target's files, decide by size and time whether they are the bundle's.
    pub assume_mtime: bool,
    /// When data must be durable.
    pub durability: Durability,
    /// Turn equal files with equal metadata into hard links.
    pub hardlink_duplicates: bool,
    /// Whether files get their owners, groups and set-id bits: `None` as before in an existing target, and elsewhere if this process can set all of
    /// them.
    pub owners: Option<bool>,
    /// Whether devices are created; `None` as for owners.
    pub devices: Option<bool>,
    /// List all deletions in the stats, not only their number.
    pub list_deletions: bool,
    /// Refuse a tree that is not an OCI image layout, and a target whose layout holds several images.
    pub image_layout: bool,
}

/// When data must be durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a caller chooses one")]
pub enum Durability {
    /// Whenever the system writes it back.
    None,
    /// Before the target gets its name.
    #[default]
    End,
    /// After each file, for systems where one large flush would starve others.
    Each,
}

/// Options of importing into an OSTree repository.
#[derive(Clone, Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "callers fill it in")]
pub struct OsTreeOptions {
    /// Where the refs go; on a medium always to their collections.
    pub destination: Destination,
    /// The time to put into a rewritten summary, in seconds since 1970.
    pub now: u64,
}

/// Options of writing images to slots.
#[derive(Clone, Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "callers fill it in")]
pub struct SlotOptions {
    /// Read everything again after it was written, and compare.
    pub read_back: bool,
    /// Which partitions the slots must be.
    pub expected: Vec<ExpectedPartition>,
}

/// What the partition of a slot must have; a slot may have several of these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "callers fill it in")]
pub struct ExpectedPartition {
    /// The slot, as [`SlotAddress::target`](crate::slot::SlotAddress::target) names it; `None` for all.
    pub target: Option<PathBuf>,
    /// The label.
    pub label: Option<String>,
    /// The UUID, in any case of letters.
    pub uuid: Option<String>,
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
