//! The directory in which objects wait for the end of a transaction: `tmp/staging-BOOT-ID-sealift-…`, with a lock beside it, so that
//! libostree leaves it alone. libostree takes none of its files for objects. What a killed or failed run leaves there is the next one's.

use std::collections::BTreeSet;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode as Permissions, OFlags, fstat, mkdirat, unlinkat};
use rustix::io::{Errno, fcntl_dupfd_cloexec};

use super::lock::{LockKind, try_lock};
use crate::fs::LeftRun;
use crate::fs::confined::{known_type, names_in, open_beneath, open_name, open_to_empty, remove_tree};
use crate::fs::heritage::disinherit;
use crate::fs::own_dir::is_own;
use sealift_format::hex;

/// A stage, which is removed when dropped, unless it is kept.
#[derive(Debug)]
pub(crate) struct ObjectStage {
    directory: OwnedFd,
    made: Made,
    name: Name,
}

/// The stages that killed or failed runs left. This run alone may use them; they stay until they are removed.
#[derive(Debug, Default)]
pub(crate) struct LeftStages(Vec<LeftStage>);

#[derive(Debug)]
struct LeftStage {
    /// `None` if it cannot be used.
    directory: Option<OwnedFd>,
    name: Name,
}

/// A file in one of [`LeftStages`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LeftFile {
    /// The number of the stage.
    stage: usize,
    /// Its path in the stage: its name, or with the directory before it.
    pub(crate) path: String,
}

/// The name of a stage and of its lock, which are removed with everything below when dropped.
#[derive(Debug)]
struct Name {
    tmp: OwnedFd,
    name: String,
    is_kept: bool,
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
    /// Creates a stage in a repository's `tmp`.
    pub(crate) fn create(tmp: OwnedFd) -> Result<Self, Errno> {
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
        let name = Name { tmp, name, is_kept: false, _lock: lock };
        mkdirat(&name.tmp, &*name.name, Permissions::RWXU)?;
        let directory = open_to_empty(name.tmp.as_fd(), name.name.as_bytes())?;
        disinherit(directory.as_fd())?;
        let made = Made::in_directory(directory.as_fd())?;
        Ok(Self { directory, made, name })
    }

    pub(crate) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    pub(crate) fn made(&self) -> Made {
        self.made
    }

    /// Leaves the stage to the next run.
    pub(crate) fn keep(&mut self) {
        self.name.is_kept = true;
    }
}

impl LeftStages {
    /// Finds the stages in `tmp` that no run uses.
    pub(crate) fn find(tmp: BorrowedFd<'_>) -> Result<Self, Errno> {
        let mut left = Vec::new();
        for name in stages_in(tmp)? {
            let Some(lock) = lock_left(tmp, &name)? else { continue };
            let opened = open_to_empty(tmp, name.as_bytes());
            // A lock alone is of no use.
            let is_kept = !matches!(opened, Err(Errno::NOENT));
            let name = Name { tmp: fcntl_dupfd_cloexec(tmp, 0)?, name, is_kept, _lock: lock };
            let directory = match opened {
                Err(Errno::NOENT) => continue,
                // Something else has its name.
                Err(Errno::NOTDIR | Errno::LOOP) => None,
                opened => Some(opened?).filter(|directory| fstat(directory).is_ok_and(|stat| is_own(&stat))),
            };
            left.push(LeftStage { directory, name });
        }
        Ok(Self(left))
    }

    /// Finds those in the folder `tmp` of an open repository or store, if it is there.
    pub(crate) fn find_below(root: BorrowedFd<'_>, tmp: &str) -> Result<Self, Errno> {
        match open_beneath(root, tmp.as_bytes(), OFlags::RDONLY | OFlags::DIRECTORY, Permissions::empty()) {
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(Self::default()),
            opened => Self::find(opened?.as_fd()),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the files in the stages and in their directories.
    pub(crate) fn files(&self) -> Result<Vec<LeftFile>, Errno> {
        let mut files = Vec::new();
        for (stage, left) in self.0.iter().enumerate() {
            let Some(top) = &left.directory else { continue };
            for (name, listed) in names_in(top.as_fd())? {
                let Ok(name) = String::from_utf8(name) else { continue };
                match known_type(top.as_fd(), name.as_bytes(), listed)? {
                    FileType::RegularFile => files.push(LeftFile { stage, path: name }),
                    FileType::Directory => {
                        let folder = open_to_empty(top.as_fd(), name.as_bytes())?;
                        for (below, listed) in names_in(folder.as_fd())? {
                            let is_file = known_type(folder.as_fd(), &below, listed)? == FileType::RegularFile;
                            if let (true, Ok(below)) = (is_file, String::from_utf8(below)) {
                                files.push(LeftFile { stage, path: format!("{name}/{below}") });
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
        Ok(files)
    }

    /// Returns the directory in which the path of a file begins.
    pub(crate) fn directory_of(&self, file: &LeftFile) -> Result<BorrowedFd<'_>, Errno> {
        let left = self.0.get(file.stage).and_then(|left| left.directory.as_ref());
        left.map(|directory| directory.as_fd()).ok_or(Errno::NOENT)
    }

    /// Removes a file.
    pub(crate) fn discard(&self, file: &LeftFile) -> Result<(), Errno> {
        match unlinkat(self.directory_of(file)?, &*file.path, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            removed => removed,
        }
    }

    /// Removes the stages with everything in them. What cannot be removed stays for the next run.
    pub(crate) fn remove(self) -> Result<(), Errno> {
        self.0.iter().try_for_each(|left| left.name.remove())
    }
}

impl Name {
    fn remove(&self) -> Result<(), Errno> {
        // If something cannot be removed, the lock stays too, and the next run removes both.
        remove_tree(self.tmp.as_fd(), self.name.as_bytes())?;
        match unlinkat(&self.tmp, format!("{}-lock", self.name), AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            removed => removed,
        }
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = self.remove(); // the next run does
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

/// Takes the lock of a stage; `None` if a run has it.
fn lock_left(tmp: BorrowedFd<'_>, stage: &str) -> Result<Option<OwnedFd>, Errno> {
    let name = format!("{stage}-lock");
    let flags = OFlags::RDWR | OFlags::CREATE;
    let lock = match open_name(tmp, name.as_bytes(), flags, Permissions::RUSR | Permissions::WUSR) {
        Ok(lock) => lock,
        Err(Errno::ACCESS | Errno::LOOP) => return Ok(None),
        Err(error) => return Err(error),
    };
    // A run that has created the file and not locked it yet has no directory, and picks another name if the file vanishes.
    let is_file = known_type(tmp, name.as_bytes(), FileType::Unknown)? == FileType::RegularFile;
    // Its owner may have removed it meanwhile.
    let is_ours = is_file && try_lock(&lock, LockKind::Exclusive)? && fstat(&lock)?.st_nlink > 0;
    Ok(is_ours.then_some(lock))
}
