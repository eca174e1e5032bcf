//! How a directory is read.

use std::sync::Arc;

use sealift_format::{Index, Ref};

use super::{Exclude, OmitOutput, XattrFilter};
use crate::{Progress, Site};

/// Options of reading a directory.
#[derive(Clone, Debug, Default)]
pub struct DirectoryOptions {
    /// The extended attributes to pack.
    pub xattrs: XattrFilter,
    /// Leave out other file systems; their mount points become empty directories.
    pub one_file_system: bool,
    /// Files to leave out.
    pub exclude: Option<Exclude>,
    /// The output being packed into, which is left out as well.
    pub omit_output: Option<OmitOutput>,
    /// Leave out, at the root of a mount point, the directory that the file system created there for fsck(8).
    pub omit_lost_and_found: bool,
    /// Do not enter what is mounted inside, nor subvolumes, and list it as [`DirectorySource::mounts`](super::DirectorySource::mounts).
    pub leave_mounts: bool,
    /// Receives the files as they are listed; may request a stop.
    pub progress: Option<Arc<Progress>>,
}

impl DirectoryOptions {
    /// Leaves out `lost+found` at the root of a mount point, unless a tree of the index has that name.
    #[must_use]
    pub fn unless_in(self, index: &Index) -> Self {
        let is_root = |tree: &&Ref| tree.ostree.is_none();
        let has = |tree: &Ref| {
            let root = index.directory(tree.directory);
            index.find_entry(root, Site::LOST_AND_FOUND.as_bytes()).is_some()
        };
        Self { omit_lost_and_found: !index.refs().iter().filter(is_root).any(has), ..self }
    }

    pub(super) fn excludes(&self, path: impl Fn() -> Vec<u8>, is_directory: bool) -> bool {
        self.exclude.as_ref().is_some_and(|exclude| exclude.takes(&path(), is_directory))
    }
}
