//! Whom a test runs as.

use rustix::process::geteuid;

use crate::skipped;

/// A user who is not root, and the group.
pub const NOBODY: u32 = 65534;

/// Whether the test runs as root.
#[must_use]
pub fn is_root() -> bool {
    geteuid().is_root()
}

/// Makes what a test needs if it runs as root; otherwise reports that it skips what only root can do.
pub fn as_root<T>(what: &str, make: impl FnOnce() -> T) -> Option<T> {
    if !is_root() {
        skipped(&format!("needs root: {what}"));
    }
    is_root().then(make)
}

/// Whether the test can give files to other users, as only root can; otherwise reports that it skips them.
#[must_use]
pub fn can_chown() -> bool {
    if !is_root() {
        skipped("needs root: files of other owners");
    }
    is_root()
}
