//! Directories of `objects` that a repository lacks. Their objects wait in a directory of the stage, which is moved to its
//! place as a whole: one rename for hundreds of objects. The kernel makes renames between directories one at a time, even for several threads.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Mode as Permissions, fgetxattr, fstat, mkdirat};
use rustix::io::Errno;

use super::read::XATTR_LEN_MAX;
use crate::fs::confined::names_in;
use crate::fs::own_store::FOLDER_MODE;

/// For each first byte of a checksum, whether the repository has the directory, and whether the stage does.
#[derive(Debug)]
pub(crate) struct Folders {
    is_there: [bool; 256],
    is_staged: [AtomicBool; 256],
    /// Whether directories of the stage get the same attributes as those of `objects`.
    are_alike: bool,
}

impl Folders {
    /// Examines a repository's `objects`, and the stage.
    pub(crate) fn of(objects: BorrowedFd<'_>, stage: BorrowedFd<'_>) -> Result<Self, Errno> {
        let names = names_in(objects)?;
        let is_there = std::array::from_fn(|byte| {
            let name = name_of(byte);
            names.iter().any(|(there, _)| *there == name.as_bytes())
        });
        Ok(Self {
            is_there,
            is_staged: [const { AtomicBool::new(false) }; 256],
            are_alike: heritage(objects)? == heritage(stage)?,
        })
    }

    /// Returns whether the repository may have an object whose checksum begins with this byte: it had the directory when it was examined.
    pub(crate) fn has(&self, first: u8) -> bool {
        self.is_there[usize::from(first)]
    }

    /// Returns the directory of the stage for an object, created on demand; `None` if the object waits in the stage itself.
    pub(crate) fn wait_in(&self, stage: BorrowedFd<'_>, first: u8) -> Result<Option<String>, Errno> {
        let Some(folder) = self.folder_of(first) else { return Ok(None) };
        let is_staged = &self.is_staged[usize::from(first)];
        if !is_staged.load(Ordering::Acquire) {
            match mkdirat(stage, &*folder, Permissions::from_raw_mode(FOLDER_MODE)) {
                // Another thread was first.
                Ok(()) | Err(Errno::EXIST) => is_staged.store(true, Ordering::Release),
                Err(error) => return Err(error),
            }
        }
        Ok(Some(folder))
    }

    /// Returns the directory of the stage where an object would wait. Its name begins with a dot: libostree examines only directories with two-letter
    /// names.
    pub(crate) fn folder_of(&self, first: u8) -> Option<String> {
        let is_new = self.are_alike && !self.has(first);
        is_new.then(|| format!(".{first:02x}"))
    }

    /// Returns the directories of the stage, with their final names.
    pub(crate) fn staged(&self) -> impl Iterator<Item = (String, String)> {
        let staged = self.is_staged.iter().enumerate().filter(|(_, is_staged)| is_staged.load(Ordering::Acquire));
        staged.map(|(byte, _)| (format!(".{}", name_of(byte)), name_of(byte)))
    }
}

fn name_of(byte: usize) -> String {
    format!("{byte:02x}")
}

/// What a directory passes on to new directories in it.
#[derive(PartialEq, Eq)]
struct Heritage {
    /// The group, if it is set-group-ID.
    group: Option<u32>,
    acl: Vec<u8>,
    label: Vec<u8>,
}

fn heritage(directory: BorrowedFd<'_>) -> Result<Heritage, Errno> {
    let stat = fstat(directory)?;
    let group = (stat.st_mode & 0o2000 != 0).then_some(stat.st_gid);
    let xattr = |name: &str| {
        let mut value = vec![0; XATTR_LEN_MAX];
        let len = match fgetxattr(directory, name, &mut value[..]) {
            Err(Errno::NODATA | Errno::NOTSUP) => 0,
            read => read?,
        };
        value.truncate(len);
        Ok(value)
    };
    Ok(Heritage { group, acl: xattr("system.posix_acl_default")?, label: xattr("security.selinux")? })
}
