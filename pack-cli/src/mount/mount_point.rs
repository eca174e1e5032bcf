//! Where a mount is in the tree, and what else is mounted there.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

/// The place of a mount: a path, at which others can mount as well.
#[derive(Clone, Debug)]
pub(super) struct MountPoint {
    pub(super) path: PathBuf,
    /// The number of the mount; `None` on kernels before 5.8, and in sandboxes that block the call.
    number: Option<u64>,
}

/// What is mounted at a place.
#[derive(Debug)]
pub(super) enum Top {
    /// The mount itself, as far as is known.
    Itself,
    /// Another one, which hides it.
    Other(String),
    /// The mount is no longer in the tree.
    Gone,
}

impl MountPoint {
    /// Returns the place of the mount that has just been mounted at a path.
    pub(super) fn of(path: PathBuf) -> Self {
        let number = mount_at(&path);
        Self { path, number }
    }

    /// Returns what is mounted at the place now.
    ///
    /// # Errors
    /// Returns an error if the mounts cannot be listed.
    pub(super) fn top(&self) -> io::Result<Top> {
        let (Some(own), Some(top)) = (self.number, mount_at(&self.path)) else { return Ok(Top::Itself) };
        if own == top {
            return Ok(Top::Itself);
        }
        // Of this thread: another one may be in another namespace.
        let list = std::fs::read("/proc/thread-self/mountinfo")?;
        let list = String::from_utf8_lossy(&list);
        Ok(match described(&list, own) {
            Some(_) => Top::Other(described(&list, top).unwrap_or_else(|| "something else".into())),
            None => Top::Gone,
        })
    }
}

/// Returns the number of the topmost mount at a path.
fn mount_at(path: &Path) -> Option<u64> {
    // Asks no file system: the caller may be the one that has to answer.
    let flags = AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
    let found = statx(CWD, path, flags, StatxFlags::MNT_ID).ok()?;
    let says = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID);
    says.then_some(found.stx_mnt_id)
}

/// Returns the type and source of a mount in a list of mountinfo.
fn described(list: &str, number: u64) -> Option<String> {
    let number = number.to_string();
    let line = list.lines().find(|line| line.split(' ').next() == Some(&number))?;
    let (_, kind) = line.split_once(" - ")?;
    let mut words = kind.split(' ');
    Some(format!("{} ({})", words.next()?, words.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_described_by_its_type_and_source() {
        let list = "136 35 98:0 /a /b rw,noatime master:1 - ext3 /dev/sda rw\n36 35 0:40 / /b rw - tmpfs none rw\n";
        assert_eq!(described(list, 36).as_deref(), Some("tmpfs (none)"));
        assert_eq!(described(list, 136).as_deref(), Some("ext3 (/dev/sda)"));
        assert_eq!(described(list, 35), None);
    }
}
