//! A folder in memory.

use std::path::Path;

use rustix::fs::{XattrFlags, setxattr};
use tempfile::TempDir;

/// Returns an empty folder for a test in which very many files come and go: in memory where files there have what they have on a disk, which for
/// attributes of users is since Linux 6.6. On ext4 without a journal each new file makes the kernel look at all those that were removed within a
/// minute (`recently_deleted` in its fs/ext4/ialloc.c).
///
/// # Panics
///
/// Panics if it cannot be created.
#[must_use]
pub fn folder_in_memory() -> TempDir {
    let has_attributes = |folder: &Path| setxattr(folder, "user.sealift", b"", XattrFlags::empty()).is_ok();
    let memory = tempfile::tempdir_in("/dev/shm").ok().filter(|folder| has_attributes(folder.path()));
    memory.unwrap_or_else(|| tempfile::tempdir().expect("a temporary folder"))
}
