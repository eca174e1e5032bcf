//! File counts by kind.

use rustix::fs::FileType;
use serde::Serialize;

/// The number of entries of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[allow(clippy::exhaustive_structs, reason = "there are no other kinds of files")]
pub struct Census {
    /// Regular files.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// Symbolic links.
    pub symlinks: u64,
    /// Devices, fifos and sockets.
    pub others: u64,
}

impl Census {
    /// Counts one entry.
    pub(super) fn add(&mut self, kind: FileType) {
        let count = match kind {
            FileType::RegularFile => &mut self.files,
            FileType::Directory => &mut self.directories,
            FileType::Symlink => &mut self.symlinks,
            _ => &mut self.others,
        };
        *count += 1;
    }

    /// Returns the sum of both.
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            files: self.files + other.files,
            directories: self.directories + other.directories,
            symlinks: self.symlinks + other.symlinks,
            others: self.others + other.others,
        }
    }

    /// Returns whether all counts are zero.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
