//! The directory in which objects wait for the end of a transaction: `tmp/staging-BOOT-ID-sealift-…`, with a lock beside it, so that
//! libostree leaves it alone. libostree takes none of its files for objects.

use std::collections::BTreeSet;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode as Permissions, OFlags, fstat, mkdirat, unlinkat};
use rustix::io::Errno;

use super::lock::{LockKind, try_lock};
use crate::fs::LeftRun;
use crate::fs::confined::{known_type, names_in, open_beneath, open_name, open_to_empty, remove_tree};
use crate::fs::heritage::disinherit;
use sealift_format::hex;

/// A stage, which is removed when dropped.
#[derive(Debug)]
pub(crate) struct ObjectStage {
    directory: OwnedFd,
    made: Made,
    _name: Name,
}

/// The name of a stage and of its lock, which are removed with everything below when dropped.
#[derive(Debug)]
struct Name {
    tmp: OwnedFd,
    name: String,
    /// Held as long as the stage is in use.
    _lock: OwnedFd,
}

/// The attributes that new files in the stage get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    /// Permission bits that they do not get.
    pub(crate) masked: u16,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// Marks the names of our stages, as opposed to libostree's.
const OURS: &str = "-sealift-";

impl ObjectStage {
    /// Creates a stage in a repository's `tmp`, and removes those of our killed runs.
    pub(crate) fn create(tmp: OwnedFd) -> Result<Self, Errno> {
        remove_abandoned(tmp.as_fd())?;
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let (name, lock) = loop {
            let mut random = [0; 6];
            rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
            let name = format!("staging-{}{OURS}{}", boot_id.trim(), hex(&random));
            match create_lock(tmp.as_fd(), &name) {
                Ok(lock) => break (name, lock),
                Err(Errno::EXIST | Errno::AGAIN) => {}
                Err(error) => return Err(error),
            }
        };
        let name = Name { tmp, name, _lock: lock };
        mkdirat(&name.tmp, &*name.name, Permissions::RWXU)?;
        let directory = open_to_empty(name.tmp.as_fd(), name.name.as_bytes())?;
        disinherit(directory.as_fd())?;
        let made = Made::in_directory(directory.as_fd())?;
        Ok(Self { directory, made, _name: name })
    }

    pub(crate) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    pub(crate) fn made(&self) -> Made {
        self.made
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        // If something cannot be removed, the lock stays too, and the next run removes both.
        if remove_tree(self.tmp.as_fd(), self.name.as_bytes()).is_ok() {
            let _ = unlinkat(&self.tmp, format!("{}-lock", self.name), AtFlags::empty());
        }
    }
}

impl Made {
    /// Creates a file to find them out: they depend on the process and, on some file systems, on the directory's group.
    fn in_directory(directory: BorrowedFd<'_>) -> Result<Self, Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let all = Permissions::RWXU | Permissions::RWXG | Permissions::RWXO;
        let stat = fstat(open_name(directory, b"probe", flags, all)?)?;
        unlinkat(directory, "probe", AtFlags::empty())?;
        let bits = u16::try_from(stat.st_mode & 0o777).unwrap_or(0);
        Ok(Self { masked: 0o777 & !bits, uid: stat.st_uid, gid: stat.st_gid })
    }
}

fn create_lock(tmp: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
    let lock = open_name(tmp, format!("{name}-lock").as_bytes(), flags, Permissions::RUSR | Permissions::WUSR)?;
    // A run that considers it abandoned removes it, and may have released it by now.
    let is_ours = try_lock(&lock, LockKind::Exclusive)? && fstat(&lock)?.st_nlink > 0;
    if is_ours { Ok(lock) } else { Err(Errno::AGAIN) }
}

/// Returns the names of our stages.
fn stages_in(tmp: BorrowedFd<'_>) -> Result<BTreeSet<String>, Errno> {
    // After a power loss, a stage or its lock may exist alone.
    let mut stages = BTreeSet::new();
    for (name, _) in names_in(tmp)? {
        let Ok(name) = String::from_utf8(name) else { continue };
        if name.starts_with("staging-") && name.contains(OURS) {
            stages.insert(name.strip_suffix("-lock").unwrap_or(&name).to_owned());
        }
    }
    Ok(stages)
}

/// Returns what our runs do in the stages in the folder `tmp` of an open repository or store, or left there; `None` if there is no stage.
pub(crate) fn look_for_stages(root: BorrowedFd<'_>, tmp: &str) -> Result<Option<LeftRun>, Errno> {
    let tmp = match open_beneath(root, tmp.as_bytes(), OFlags::RDONLY | OFlags::DIRECTORY, Permissions::empty()) {
        // Who may not list it does not know.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => return Ok(None),
        tmp => tmp?,
    };
    let mut found = None;
    for stage in stages_in(tmp.as_fd())? {
        let name = format!("{stage}-lock");
        found = Some(match open_name(tmp.as_fd(), name.as_bytes(), OFlags::RDONLY, Permissions::empty()) {
            Err(Errno::NOENT) => LeftRun::Unfinished,
            Err(Errno::ACCESS) => LeftRun::Hidden,
            Err(error) => return Err(error),
            Ok(lock) if try_lock(&lock, LockKind::Shared)? => LeftRun::Unfinished,
            Ok(_) => return Ok(Some(LeftRun::Running)),
        });
    }
    Ok(found)
}

/// Removes our stages whose lock is free.
fn remove_abandoned(tmp: BorrowedFd<'_>) -> Result<(), Errno> {
    stages_in(tmp)?.iter().try_for_each(|stage| remove_if_abandoned(tmp, stage))
}

fn remove_if_abandoned(tmp: BorrowedFd<'_>, stage: &str) -> Result<(), Errno> {
    let name = format!("{stage}-lock");
    let flags = OFlags::RDWR | OFlags::CREATE;
    let lock = match open_name(tmp, name.as_bytes(), flags, Permissions::RUSR | Permissions::WUSR) {
        Ok(lock) => lock,
        Err(Errno::ACCESS | Errno::LOOP) => return Ok(()),
        Err(error) => return Err(error),
    };
    // A run that has created the file and not locked it yet has no directory, and picks another name if the file vanishes.
    if known_type(tmp, name.as_bytes(), FileType::Unknown)? != FileType::RegularFile
        || !try_lock(&lock, LockKind::Exclusive)?
    {
        return Ok(());
    }
    remove_tree(tmp, stage.as_bytes())?;
    match unlinkat(tmp, &*name, AtFlags::empty()) {
        // Its owner removed it meanwhile.
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error),
    }
}
