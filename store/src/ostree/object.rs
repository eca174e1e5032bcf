//! Types of objects, and their paths.

use sealift_format::ostree::Checksum;
use sealift_format::{hex, unhex};

use super::config::Mode;

/// The type of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ObjectType {
    /// A regular file or a symbolic link.
    File,
    /// The contents of a directory.
    DirTree,
    /// Owner, mode and extended attributes of a directory.
    DirMeta,
    /// A tree with its history.
    Commit,
    /// Detached metadata of a commit, such as signatures: it has the commit's name, and may be replaced.
    CommitMeta,
}

impl ObjectType {
    fn suffix(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::DirTree => "dirtree",
            Self::DirMeta => "dirmeta",
            Self::Commit => "commit",
            Self::CommitMeta => "commitmeta",
        }
    }
}

/// Returns the name of an object for messages: its checksum and type.
pub(crate) fn object_name(kind: ObjectType, checksum: &Checksum) -> String {
    format!("{}.{}", hex(checksum), kind.suffix())
}

/// Returns the directory below `objects` that holds an object.
pub(crate) fn prefix(checksum: &Checksum) -> String {
    hex(&checksum[..1])
}

/// Returns the object's name in that directory.
pub(crate) fn rest(kind: ObjectType, checksum: &Checksum, mode: Mode) -> String {
    let z = if kind == ObjectType::File && mode == Mode::Archive { "z" } else { "" };
    format!("{}.{}{z}", hex(&checksum[1..]), kind.suffix())
}

/// Returns the object's path below `objects`.
pub(crate) fn loose_path(kind: ObjectType, checksum: &Checksum, mode: Mode) -> String {
    format!("{}/{}", prefix(checksum), rest(kind, checksum, mode))
}

/// Parses a checksum of 64 lowercase hexadecimal digits; `None` for any other text.
pub(crate) fn parse_checksum(text: &str) -> Option<Checksum> {
    let checksum: Checksum = unhex(text)?.try_into().ok()?;
    (hex(&checksum) == text).then_some(checksum)
}
