//! The directory in which a tree, or what is new of one, grows until it is complete.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, RenameFlags, fchmod, flock, fstat, mkdirat, renameat,
    renameat_with, statat, syncfs,
};
use rustix::io::Errno;
use sealift_format::Index;

use super::walk::Walk;
use crate::Error;
use crate::beneath::{known_type, names_in, open_name, open_to_empty, remove_tree};

/// `.NAME.sealift-partial` beside the target. In it are `tree` or `files`, the `state` that the target is going to have, and, once an update
/// may not be given up any more, a `journal`.
#[derive(Debug)]
pub(crate) struct Stage {
    target: PathBuf,
    path: PathBuf,
    /// The stage itself, whose lock ends with the process.
    lock: OwnedFd,
    layout: Layout,
    root: OwnedFd,
    is_resumed: bool,
    /// Directories that went out of the target.
    taken_away: AtomicU64,
}

/// Where the files of a stage lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// In `tree`, which becomes the target: each where it is going to be.
    Tree,
    /// In `files`, from which each is moved: all in one directory, by the numbers of their entries.
    Files,
}

/// A name in a stage of [`Layout::Files`].
pub(super) struct StagedFile {
    /// The entry that it stands for, if it is a number.
    pub(super) entry: Option<u32>,
    pub(super) name: Vec<u8>,
    pub(super) file_type: FileType,
}

/// What a stage takes of its file system.
#[derive(Debug, Default)]
pub(super) struct Held {
    pub(super) bytes: u64,
    pub(super) inodes: u64,
    /// Those of more than one name, which count once.
    linked: HashSet<u64>,
}

impl Held {
    fn add(&mut self, directory: BorrowedFd<'_>, target: &Path) -> Result<(), Error> {
        for (name, _) in names_in(directory).map_err(|error| Error::io("read", target, error))? {
            let Ok(stat) = statat(directory, &*name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            if stat.st_nlink == 1 || self.linked.insert(stat.st_ino) {
                self.inodes += 1;
                let blocks = u64::try_from(stat.st_blocks).unwrap_or(0);
                self.bytes = self.bytes.saturating_add(blocks.saturating_mul(512));
            }
        }
        Ok(())
    }
}

impl Layout {
    fn name(self) -> &'static str {
        match self {
            Self::Tree => "tree",
            Self::Files => "files",
        }
    }

    fn other(self) -> Self {
        match self {
            Self::Tree => Self::Files,
            Self::Files => Self::Tree,
        }
    }
}

impl Stage {
    /// Makes the stage, or opens the one that a run left which did not end. What a run of the other layout left goes.
    ///
    /// # Errors
    /// Another run is at work on the target, or the directory cannot be made.
    pub(super) fn open(target: &Path, layout: Layout) -> Result<Self, Error> {
        let path = sibling(target, ".sealift-partial")?;
        let failed = |error| Error::io("create", &path, error);
        match mkdirat(CWD, &path, Mode::RWXU) {
            Err(Errno::EXIST) => {}
            other => other.map_err(failed)?,
        }
        let lock = lock(&path)?;
        let stat = fstat(&lock).map_err(failed)?;
        // What others may have put there is not built upon.
        let problem = match stat {
            _ if stat.st_uid != rustix::process::geteuid().as_raw() => "belongs to somebody else",
            _ if stat.st_mode & 0o022 != 0 => "may be written to by others, and what is in it may be theirs",
            _ => "",
        };
        if !problem.is_empty() {
            return Err(Error::Usage(format!("{} {problem}: remove it", path.display())));
        }
        remove_tree(lock.as_fd(), layout.other().name().as_bytes()).map_err(failed)?;
        let is_resumed = match mkdirat(&lock, layout.name(), Mode::RWXU) {
            Err(Errno::EXIST) => true,
            other => other.map(|()| false).map_err(failed)?,
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let root = open_name(lock.as_fd(), layout.name().as_bytes(), flags, Mode::empty()).map_err(failed)?;
        fchmod(&root, Mode::RWXU).map_err(failed)?;
        Ok(Self { target: target.to_owned(), path, lock, layout, root, is_resumed, taken_away: AtomicU64::new(0) })
    }

    /// Opens the stage that a run left, for what it may hold of an update; `None` where there is none.
    pub(crate) fn find(target: &Path) -> Result<Option<Self>, Error> {
        let path = sibling(target, ".sealift-partial")?;
        if path.symlink_metadata().is_ok() { Self::open(target, Layout::Files).map(Some) } else { Ok(None) }
    }

    /// Removes the stage of a run that was killed after its tree had become the target.
    pub(super) fn remove_finished(target: &Path) -> Result<(), Error> {
        let path = sibling(target, ".sealift-partial")?;
        let is_there = |name: &str| path.join(name).symlink_metadata().is_ok();
        if path.symlink_metadata().is_err() || is_there("tree") || is_there("files") {
            return Ok(());
        }
        Self::open(target, Layout::Tree)?.remove()
    }

    /// The directory in which files are made.
    pub(super) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    pub(super) fn layout(&self) -> Layout {
        self.layout
    }

    /// Whether this directory takes names for the same that differ in case.
    pub(super) fn folds_names(&self) -> bool {
        statat(&self.lock, self.layout.name().to_uppercase(), AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Whether a run before this one left something.
    pub(super) fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    pub(super) fn target(&self) -> &Path {
        &self.target
    }

    /// Where the target's next state is written.
    pub(super) fn state(&self) -> PathBuf {
        self.path.join("state")
    }

    /// What a stage of [`Layout::Files`] holds.
    pub(super) fn files(&self) -> Result<Vec<StagedFile>, Error> {
        let names = names_in(self.root()).map_err(|error| Error::io("read", &self.path, error))?;
        let of = |name: &[u8]| std::str::from_utf8(name).ok().and_then(|name| name.parse().ok());
        Ok(names
            .into_iter()
            .map(|(name, listed)| {
                let file_type = known_type(self.root(), &name, listed);
                StagedFile { entry: of(&name), name, file_type }
            })
            .collect())
    }

    /// Calls `visit` for each of these directories of an index, parents first, that the tree has. They are made accessible to their owner.
    pub(super) fn visit(
        &self,
        index: &Index,
        directories: &[u32],
        mut visit: impl FnMut(u32, BorrowedFd<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut walk = Walk::default();
        let mut present: HashSet<u32> = HashSet::new();
        for &number in directories {
            let row = index.directory(number);
            let opened = match row.parent {
                None => open_to_empty(self.root(), b"."),
                Some(parent) if !present.contains(&parent) => continue,
                Some(parent) => walk
                    .go(index, self.root(), parent)
                    .and_then(|parent| open_to_empty(parent, index.name(index.entry(row.entry)))),
            };
            match opened {
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(Error::io("read", self.path_of(&index.directory_path(number)), error)),
                Ok(directory) => visit(number, directory.as_fd())?,
            }
            present.insert(number);
        }
        Ok(())
    }

    /// What its files take so far, as far as this index knows them: what the next run builds takes its place.
    pub(super) fn held(&self, index: &Index, directories: &[u32]) -> Result<Held, Error> {
        let mut held = Held::default();
        match self.layout {
            Layout::Tree => self.visit(index, directories, |_, directory| held.add(directory, &self.target))?,
            Layout::Files => held.add(self.root(), &self.target)?,
        }
        Ok(held)
    }

    /// Takes a directory, and all in it, out of the target: it goes with the stage. Its place in the target is empty at once.
    pub(super) fn take_away(&self, directory: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
        match mkdirat(&self.lock, "removed", Mode::RWXU) {
            Err(Errno::EXIST) => {}
            made => made?,
        }
        loop {
            let number = self.taken_away.fetch_add(1, Ordering::Relaxed);
            let to = format!("removed/{number}");
            match renameat_with(directory, name, &self.lock, &*to, RenameFlags::NOREPLACE) {
                // Of a run that was killed.
                Err(Errno::EXIST) => {}
                // Who is not root may move a directory only if it is open to changes.
                Err(Errno::ACCESS) if open_to_empty(directory, name).is_ok() => {
                    return renameat_with(directory, name, &self.lock, &*to, RenameFlags::NOREPLACE);
                }
                renamed => return renamed,
            }
        }
    }

    /// Where the target's last state goes when it gets the next.
    pub(super) fn old_state(&self) -> PathBuf {
        self.path.join("old-state")
    }

    /// The mark that an update is not given up any more.
    pub(super) fn journal(&self) -> PathBuf {
        self.path.join("journal")
    }

    /// The path of a file in the stage, for messages: the name that it is going to have.
    pub(super) fn path_of(&self, below: &[u8]) -> PathBuf {
        self.target.join(crate::error::path_of(below))
    }

    /// Waits until the medium has everything.
    pub(super) fn sync(&self) -> Result<(), Error> {
        syncfs(&self.lock).map_err(|error| Error::io("sync", &self.target, error))
    }

    /// Makes the tree the target, which is not there or an empty directory, and removes the stage.
    pub(super) fn finish(self, durable: bool) -> Result<(), Error> {
        let failed = |error| Error::io("create", &self.target, error);
        match renameat_with(&self.lock, "tree", CWD, &self.target, RenameFlags::NOREPLACE) {
            // An empty directory that was there before is replaced.
            Err(Errno::EXIST | Errno::INVAL | Errno::NOSYS) => {
                renameat(&self.lock, "tree", CWD, &self.target).map_err(failed)?;
            }
            other => other.map_err(failed)?,
        }
        let target = self.target.clone();
        self.remove()?;
        if durable { sync_parent(&target) } else { Ok(()) }
    }

    /// The name of an entry's file in a stage of [`Layout::Files`].
    pub(super) fn file_name(entry: u32) -> Vec<u8> {
        entry.to_string().into_bytes()
    }

    /// Removes the stage and all in it.
    pub(crate) fn remove(self) -> Result<(), Error> {
        let parent = parent_of(&self.path);
        let failed = |error| Error::io("remove", &self.path, error);
        let directory = crate::beneath::open_user_dir(parent).map_err(failed)?;
        let name = self.path.file_name().unwrap_or_default();
        remove_tree(directory.as_fd(), name.as_encoded_bytes()).map_err(failed)
    }
}

/// Opens a stage and takes its lock.
fn lock(path: &Path) -> Result<OwnedFd, Error> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let opened = open_name(CWD, path.as_os_str().as_encoded_bytes(), flags, Mode::empty());
    let fd = match opened {
        Err(Errno::NOTDIR | Errno::LOOP) => {
            let what = if path.is_symlink() { "a link, which is not followed" } else { "not a directory" };
            return Err(Error::Usage(format!("{} is {what}: remove it", path.display())));
        }
        opened => opened.map_err(|error| Error::io("open", path, error))?,
    };
    let busy = || Error::Busy { path: path.to_owned() };
    match flock(&fd, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Err(busy()),
        Err(error) => return Err(Error::io("lock", path, error)),
    }
    // A run that ended in between took the name away.
    let failed = |error| Error::io("look at", path, error);
    let held = fstat(&fd).map_err(failed)?;
    match statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(named) if (held.st_dev, held.st_ino) == (named.st_dev, named.st_ino) => Ok(fd),
        Ok(_) | Err(Errno::NOENT) => Err(busy()),
        Err(error) => Err(failed(error)),
    }
}

/// Waits until the medium has the names beside the target.
pub(super) fn sync_parent(target: &Path) -> Result<(), Error> {
    let parent = parent_of(target);
    File::open(parent).and_then(|parent| parent.sync_all()).map_err(|error| Error::io("sync", parent, error))
}

/// Refuses a target that a rename does not replace, before anything is built beside it.
pub(super) fn check_replaceable(target: &Path, given: &Path) -> Result<(), Error> {
    let Ok(present) = target.symlink_metadata() else { return Ok(()) };
    let parent = parent_of(target);
    let beside = parent.metadata().map_err(|error| Error::io("look at", parent, error))?;
    if present.dev() != beside.dev() {
        return Err(Error::Usage(format!(
            "{} is a mount point, which a new tree cannot replace: unpack to a directory within",
            target.display()
        )));
    }
    if given.file_name().is_none() {
        return Err(Error::Usage(format!(
            "{} would be replaced, and whoever stands in it would be nowhere: unpack to another name",
            given.display()
        )));
    }
    Ok(())
}

/// Whether there is something at `target`: an empty directory counts as nothing.
///
/// # Errors
/// It is not a directory, or cannot be read.
pub(crate) fn is_taken(target: &Path) -> Result<bool, Error> {
    match std::fs::symlink_metadata(target) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io("read", target, error)),
        Ok(metadata) if metadata.is_dir() => {
            let mut entries = std::fs::read_dir(target).map_err(|error| Error::io("read", target, error))?;
            Ok(entries.next().is_some())
        }
        Ok(_) => Err(Error::Usage(format!("{} exists and is not a directory", target.display()))),
    }
}

/// The target by a path that ends with its name, as `.` and `..` do not.
pub(crate) fn named(target: &Path) -> Result<Cow<'_, Path>, Error> {
    if target.file_name().is_some() {
        return Ok(target.into());
    }
    let real = std::fs::canonicalize(target).map_err(|error| Error::io("read", target, error))?;
    match real.file_name() {
        Some(_) => Ok(real.into()),
        None => Err(Error::Usage(format!("{} has nothing beside it: name a directory within", target.display()))),
    }
}

/// `.NAME` and a suffix, beside the target.
pub(crate) fn sibling(target: &Path, suffix: &str) -> Result<PathBuf, Error> {
    let target = named(target)?;
    let name = target.file_name().unwrap_or_default();
    let mut sibling = std::ffi::OsString::from(".");
    sibling.push(name);
    sibling.push(suffix);
    Ok(target.with_file_name(sibling))
}

pub(super) fn parent_of(target: &Path) -> &Path {
    target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
