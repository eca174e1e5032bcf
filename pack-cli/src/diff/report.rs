//! The result of a comparison.

use sealift_format::{Device, FileType};
use serde::Serialize;

use std::sync::Arc;

use super::TreePath;
use crate::{Aspect, LeftRun, Metadata};

/// All differences between two sides.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Diff {
    /// The differences, ref by ref, sorted by path component.
    pub differences: Vec<PathDifference>,
    /// Numbers of differences and of bytes.
    pub counts: Counts,
    /// Only paths at or below this one were compared; empty for everything.
    pub prefix: Vec<u8>,
    /// Whether the kernel was asked for digests, since the new side was sealed.
    pub is_sealed: bool,
    /// Whether the index in the record is sealed with a signature for the kernel.
    pub is_index_signed: bool,
    /// Whether the record beside an audited directory belongs to another directory, from which it was copied or moved. That is a difference.
    pub is_of_another: bool,
    /// Paths of an audited directory at which another file system is mounted, or which are subvolumes: neither they nor what lies below was compared.
    pub mounts: Vec<Vec<u8>>,
    /// What a run does beside an audited directory, or left there. A half-done update is a difference.
    pub run: Option<LeftRun>,
    /// The version that this device installed in an audited directory, if that has gone back to an older one together with its record. That is a
    /// difference.
    pub gone_back_from: Option<u64>,
    /// What the audited directory does not keep of the metadata of the bundle, which was therefore not compared.
    pub lacks: Vec<Aspect>,
    /// What a holder of the old side must transfer to get the new one, if that is a bundle.
    pub take: Option<Take>,
}

/// A path at which the sides differ.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathDifference {
    /// The kind of change.
    pub change: Change,
    /// The ref that contains the path, where several are compared.
    pub reference: Option<Arc<str>>,
    /// The path below the root; empty for the root.
    pub path: TreePath,
    /// The previous path of a moved file, in the same ref.
    pub from: Option<TreePath>,
    /// The old side's file.
    pub old: Option<Arc<File>>,
    /// The new side's file.
    pub new: Option<Arc<File>>,
    /// The fields that differ, where both sides have the file.
    pub fields: Vec<Field>,
    /// Whether this is a result of unpacking without root: a missing device, or a user's file without its owner, its set-id bits or the extended
    /// attributes that only root may set, and otherwise as expected.
    pub privileged: bool,
}

/// How a path differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a caller shows each")]
pub enum Change {
    /// Only the new side has it.
    Added,
    /// Only the old side has it.
    Removed,
    /// Its content, target, device number or type differs.
    Changed,
    /// The same content, found elsewhere on the old side and not at this path.
    Moved,
    /// The content is the same, but the file is not sealed as it should be.
    Unsealed,
    /// Only the metadata differs.
    Metadata,
}

/// A field of a file that differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(clippy::exhaustive_enums, reason = "a caller shows each")]
pub enum Field {
    /// The type. If it differs, nothing else is compared.
    Type,
    /// The content of a regular file.
    Content,
    /// Whether the file is sealed by the kernel.
    Seal,
    /// The target of a symbolic link.
    Target,
    /// The numbers of a device.
    Device,
    /// The permission bits.
    Mode,
    /// The owner or group.
    Owner,
    /// The modification time.
    Mtime,
    /// Extended attributes.
    Xattrs,
    /// The other names of the file.
    Links,
}

/// A file of one side.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct File {
    /// The file's type.
    pub file_type: FileType,
    /// The size of a regular file.
    pub size: Option<u64>,
    /// The object id of a regular file. In a directory it is known only for files that had to be read.
    pub id: Option<[u8; 32]>,
    /// Whether a regular file is sealed, if the kernel was asked.
    pub is_sealed: Option<bool>,
    /// The target of a symbolic link.
    pub target: Option<Box<[u8]>>,
    /// The numbers of a device.
    pub device: Option<Device>,
    /// All other metadata. In a directory, the extended attributes of regular files are known only where they had to be read.
    pub metadata: Metadata,
    /// The first name of the file in the order of the differences, if this is another one.
    pub link: Option<TreePath>,
}

/// Numbers of differences. Bytes are those of regular files, counted once per file, however many names it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Counts {
    /// Paths of either side that were compared.
    pub compared: u64,
    /// Paths that only the new side has.
    pub added: u64,
    /// Bytes of their files, except files with another name that both sides have.
    pub added_bytes: u64,
    /// Paths that only the old side has.
    pub removed: u64,
    /// Bytes of their files, except files with another name that both sides have.
    pub removed_bytes: u64,
    /// Paths whose content, target, device number or type differs.
    pub changed: u64,
    /// Bytes of their files on the old side.
    pub changed_old_bytes: u64,
    /// Bytes of their files on the new side.
    pub changed_new_bytes: u64,
    /// Files that were moved.
    pub moved: u64,
    /// Bytes of the moved files.
    pub moved_bytes: u64,
    /// Paths with the expected content that are not sealed, which only an audit finds.
    #[serde(skip)]
    pub unsealed: u64,
    /// Paths that differ only in metadata.
    pub metadata: u64,
    /// Differences that result from unpacking without root.
    pub privileged: u64,
}

/// What a bundle has and the other side lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
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
    /// Returns whether there is no difference.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let is_as_installed = !self.is_of_another && self.gone_back_from.is_none();
        self.differences.is_empty() && is_as_installed && !self.run.is_some_and(LeftRun::is_half)
    }
}
