//! What a comparison finds.

use sealift_format::{Device, FileType};

use std::sync::Arc;

use super::TreePath;
use crate::Metadata;

/// All differences between two sides.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Diff {
    /// The differences, ref by ref, sorted by their paths' components.
    pub differences: Vec<Difference>,
    /// How many there are, and of how many bytes.
    pub counts: Counts,
    /// What was compared lies at or below this path; empty for everything.
    pub prefix: Vec<u8>,
    /// Whether the kernel was asked, since the new side was sealed.
    pub is_sealed: bool,
    /// Whether the index that is kept beside it is sealed with a signature for the kernel.
    pub is_index_signed: bool,
    /// Whether what is kept beside an audited directory is of another one, which it was copied or moved from: that is a difference.
    pub is_of_another: bool,
    /// What one would have to take who has the old side and wants the new one, where that is a bundle.
    pub take: Option<Take>,
}

/// A path at which the sides differ.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// In which way.
    pub change: Change,
    /// The ref whose tree it stands in, where several are compared.
    pub reference: Option<Arc<str>>,
    /// The path below the root; empty for the root.
    pub path: TreePath,
    /// Where the file was, if it was moved: a path of the same ref.
    pub from: Option<TreePath>,
    /// The old side's file.
    pub old: Option<Arc<File>>,
    /// The new side's file.
    pub new: Option<Arc<File>>,
    /// What differs, where both sides have the file.
    pub fields: Vec<Field>,
    /// Whether this is what unpacking without root leaves: no device, or a file of a user's without its owner, its set-id bits or the
    /// extended attributes that only root may set, and otherwise as it is to be.
    pub privileged: bool,
}

/// In which way a path differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a caller shows each")]
pub enum Change {
    /// Only the new side has it.
    Added,
    /// Only the old side has it.
    Removed,
    /// It has another content, target, device number or type.
    Changed,
    /// The old side has the same content elsewhere, and not here.
    Moved,
    /// Its content is the same, and it is not sealed, as it was to be.
    Unsealed,
    /// Only its metadata differ.
    Metadata,
}

/// What of a file differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a caller shows each")]
pub enum Field {
    /// Its type; nothing else is compared then.
    Type,
    /// A regular file's content.
    Content,
    /// Whether the kernel keeps its content as it is.
    Seal,
    /// A symbolic link's target.
    Target,
    /// A device's numbers.
    Device,
    /// The permission bits.
    Mode,
    /// Owner or group.
    Owner,
    /// The time of modification.
    Mtime,
    /// Extended attributes.
    Xattrs,
    /// Which other names it has.
    Links,
}

/// A file of one side.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct File {
    /// What it is.
    pub file_type: FileType,
    /// A regular file's size.
    pub size: Option<u64>,
    /// A regular file's object id. Of a directory's files it is known as far as they had to be read.
    pub id: Option<[u8; 32]>,
    /// Whether a regular file is sealed, as far as that was asked.
    pub is_sealed: Option<bool>,
    /// A symbolic link's target.
    pub target: Option<Box<[u8]>>,
    /// A device's numbers.
    pub device: Option<Device>,
    /// Everything else. Of a directory's regular files, extended attributes are known as far as they had to be read.
    pub metadata: Metadata,
    /// The first of its names in the order of the differences, if that is another one.
    pub link: Option<TreePath>,
}

/// How many differences there are. Bytes are those of regular files, once for each, however many names it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Paths that were compared: those of either side.
    pub compared: u64,
    /// Paths that only the new side has.
    pub added: u64,
    /// Bytes of their files, unless these have another name that both sides have.
    pub added_bytes: u64,
    /// Paths that only the old side has.
    pub removed: u64,
    /// Bytes of their files, unless these have another name that both sides have.
    pub removed_bytes: u64,
    /// Paths with another content, target, device number or type.
    pub changed: u64,
    /// Bytes that their files had.
    pub changed_old_bytes: u64,
    /// Bytes that their files have.
    pub changed_new_bytes: u64,
    /// Files that have another path.
    pub moved: u64,
    /// Bytes of the files that have another path.
    pub moved_bytes: u64,
    /// Paths with the content that they are to have, which are not sealed.
    pub unsealed: u64,
    /// Paths with other metadata alone.
    pub metadata: u64,
    /// Differences that are what unpacking without root leaves.
    pub privileged: u64,
}

/// What a bundle has and the other side lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Take {
    /// Objects.
    pub objects: u64,
    /// Bytes of these objects.
    pub logical_bytes: u64,
    /// Stored bytes of the chunks that hold at least one of them.
    pub stored_bytes: u64,
}

impl Diff {
    /// Whether there is no difference.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.differences.is_empty() && !self.is_of_another
    }
}
