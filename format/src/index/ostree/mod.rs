//! OSTree commits in an index (ostree 2): their objects, and how these refer to each other.

mod columns;
mod numbers;
mod parents;
mod section;

use alloc::string::String;
use alloc::vec::Vec;

use crate::Row;
use crate::attributes::Attributes;
use crate::ostree::Checksum;

use super::InodeKind;

pub(super) use columns::Columns;
pub(crate) use numbers::Numbers;
pub use parents::OfParents;
pub(super) use parents::OfRefs;
pub(super) use section::{Resolved, Section, Tree};
pub(crate) use section::{parse_collection, parse_file_rows};

/// The objects of the refs of kind 1, which are OSTree commits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OsTree {
    objects: Vec<OsTreeObject>,
    files: Vec<OsTreeFile>,
    pub(super) of_parents: OfParents,
}

/// A metadata object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OsTreeObject {
    /// Its type.
    pub kind: OsTreeKind,
    /// The SHA-256 of its bytes; for a commitmeta, that of its commit.
    pub checksum: Checksum,
    at: u32,
    len: u32,
}

/// The types of metadata objects, with OSTree's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::exhaustive_enums, reason = "ostree 2 lists the types")]
pub enum OsTreeKind {
    /// The names in a directory.
    DirTree,
    /// The attributes of a directory.
    DirMeta,
    /// A commit.
    Commit,
    /// Detached metadata of a commit, such as its signatures.
    CommitMeta,
}

/// A file object: a regular file or a symbolic link with its attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OsTreeFile {
    /// The SHA-256 of its header and content.
    pub checksum: Checksum,
    /// Its attributes.
    pub attributes: Row<Attributes>,
    /// Its object, or its row in the table of symbolic links.
    pub kind: InodeKind,
}

/// What a ref of kind 1 has besides its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OsTreeRef {
    /// The number of its commit among [`OsTree::objects`].
    pub commit: u32,
    /// Whether an earlier ref names that commit.
    pub is_known: bool,
    /// Its collection id; empty if it has none.
    pub collection: String,
}

impl OsTreeKind {
    const ALL: [Self; 4] = [Self::DirTree, Self::DirMeta, Self::Commit, Self::CommitMeta];

    /// Returns OSTree's number for it.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::DirTree => 2,
            Self::DirMeta => 3,
            Self::Commit => 4,
            Self::CommitMeta => 6,
        }
    }
}

impl OsTree {
    /// Returns the metadata objects in the order of ostree 4.
    #[must_use]
    pub fn objects(&self) -> &[OsTreeObject] {
        &self.objects
    }

    /// Returns the file objects in the order in which dirtrees first name them.
    #[must_use]
    pub fn files(&self) -> &[OsTreeFile] {
        &self.files
    }

    /// Returns what belongs to no ref (ostree 6.1).
    #[must_use]
    pub fn of_parents(&self) -> &OfParents {
        &self.of_parents
    }

    pub(super) fn span(object: &OsTreeObject) -> (u32, u32) {
        (object.at, object.len)
    }
}
