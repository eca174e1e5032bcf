//! The stage: the directory in which a new tree, or the new files of an update, are built until they are complete.

use std::collections::HashSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fchmod, fstat, mkdirat, renameat, statat, unlinkat};
use rustix::io::Errno;
use sealift_format::{Directory, Entry, Index, Row};

use super::walk::Walk;
use crate::Error;
use crate::error::path_of;
use crate::fs::confined::{known_type, names_in, open_name, open_to_empty, remove_tree};
use crate::fs::heritage::disinherit;
use crate::fs::rename::{moves_no_directory, rename_new};
use crate::{OwnDir, Site};

/// The stage of a directory target. It holds `tree` or `files`, the target's next `state`, and, once an update may no longer be aborted, a `journal`.
#[derive(Debug)]
pub struct TreeStage {
    dir: crate::Stage,
    /// The target's path, for messages.
    target: PathBuf,
    layout: StageKind,
    root: OwnedFd,
    is_resumed: bool,
    /// The number of directories moved out of the target.
    taken_away: AtomicU64,
}

/// How files are placed in a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageKind {
    /// In `tree`, which becomes the target: each file in its final place.
    Tree,
    /// In `files`, from which each is moved: all in one directory, named by the numbers of their entries.
    Files,
}

/// A name in a stage of `StageKind::Files`.
pub struct StagedFile {
    /// The entry that it holds, if its name is a number.
    pub entry: Option<Row<Entry>>,
    pub name: Vec<u8>,
    pub file_type: FileType,
}

/// The space that a stage uses on its file system.
#[derive(Debug, Default)]
pub struct Leftovers {
    pub bytes: u64,
    pub inodes: u64,
    /// Inodes with more than one name, which count once.
    linked: HashSet<u64>,
}

impl Leftovers {
    /// Returns what the stage beside a target has, without opening it for work. What cannot be read is left out.
    pub(crate) fn beside(site: &Site) -> Result<Self, Error> {
        let mut left = Self::default();
        let Some(place) = site.stage_place()? else { return Ok(left) };
        let Some(stage) = place.open_directory()? else { return Ok(left) };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let mut pending: Vec<OwnedFd> = [StageKind::Tree, StageKind::Files]
            .into_iter()
            .filter_map(|kind| open_name(stage.as_fd(), kind.name().as_bytes(), flags, Mode::empty()).ok())
            .collect();
        while let Some(directory) = pending.pop() {
            left.add(directory.as_fd(), site.path())?;
            for (name, listed) in names_in(directory.as_fd()).unwrap_or_default() {
                if known_type(directory.as_fd(), &name, listed) == Ok(FileType::Directory) {
                    pending.extend(open_name(directory.as_fd(), &name, flags, Mode::empty()));
                }
            }
        }
        Ok(left)
    }

    fn add(&mut self, directory: BorrowedFd<'_>, target: &Path) -> Result<(), Error> {
        for (name, _) in names_in(directory).map_err(|error| Error::io("read", target, error))? {
            let Ok(stat) = statat(directory, &*name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            if stat.st_nlink == 1 || self.linked.insert(stat.st_ino) {
                self.inodes += 1;
                let blocks = stat.st_blocks.cast_unsigned();
                self.bytes = self.bytes.saturating_add(blocks.saturating_mul(512));
            }
        }
        Ok(())
    }
}

impl StageKind {
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

/// The empty directory that shows whether directories can be moved out of the stage.
const TRIAL: &str = "trial";
/// Its name beside the target.
const TRIAL_SUFFIX: &str = ".sealift-trial";

impl TreeStage {
    /// The target's next state.
    pub const STATE: &str = crate::Stage::STATE;
    /// The new directories of an update, each named by its number.
    const DIRECTORIES: &str = "directories";
    /// Where the target's previous state is moved when the next one replaces it.
    pub const OLD_STATE: &str = "old-state";

    /// Creates the stage, or opens the one that an interrupted run left. Leftovers of the other layout are removed.
    ///
    /// # Errors
    /// Returns an error if another run is working on the target, or if the directory cannot be created.
    pub fn open(site: &Site, layout: StageKind) -> Result<Self, Error> {
        site.lock()?;
        let dir = crate::Stage::open(site.make_stage_place()?)?;
        let failed = |error| Error::io("create", dir.path(), error);
        dir.own().remove(layout.other().name())?;
        let is_resumed = match mkdirat(dir.own().fd(), layout.name(), Mode::RWXU) {
            Err(Errno::EXIST) => true,
            other => other.map(|()| false).map_err(failed)?,
        };
        let root = open_to_empty(dir.own().fd(), layout.name().as_bytes()).map_err(failed)?;
        disinherit(root.as_fd()).map_err(failed)?;
        let target = site.path().to_owned();
        Ok(Self { dir, target, layout, root, is_resumed, taken_away: AtomicU64::new(0) })
    }

    /// Opens a leftover stage, which may hold an update; `None` if there is none.
    pub fn find(site: &Site) -> Result<Option<Self>, Error> {
        if site.has_stage()? { Self::open(site, StageKind::Files).map(Some) } else { Ok(None) }
    }

    /// Removes the stage of a run that was killed after its tree had become the target.
    pub fn remove_finished(site: &Site) -> Result<(), Error> {
        if !site.has_stage()? {
            return Ok(());
        }
        let dir = crate::Stage::open(site.make_stage_place()?)?;
        if dir.own().has(StageKind::Tree.name())? || dir.own().has(StageKind::Files.name())? {
            return Ok(());
        }
        dir.remove()?;
        site.remove_empty_folder();
        Ok(())
    }

    /// Returns the stage's directory, which holds everything else.
    pub fn own(&self) -> &OwnDir {
        self.dir.own()
    }

    /// Checks that the target and this stage have not been exchanged since this run opened them.
    ///
    /// # Errors
    /// Returns an error if they have: nothing may be moved then.
    pub fn check(&self, site: &Site) -> Result<(), Error> {
        self.dir.check()?;
        site.check()
    }

    /// Returns the target's next state, if it has been written.
    pub fn state(&self) -> Result<Option<OwnDir>, Error> {
        self.own().directory(Self::STATE)
    }

    /// Returns an empty directory for the target's next state.
    pub fn new_state(&self) -> Result<OwnDir, Error> {
        self.own().new_directory(Self::STATE)
    }

    /// Returns the directory in which files are made.
    pub fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    pub(crate) fn layout(&self) -> StageKind {
        self.layout
    }

    /// Returns whether this directory treats names that differ only in case as equal.
    pub fn folds_names(&self) -> Result<bool, Error> {
        self.own().has(&self.layout.name().to_uppercase())
    }

    /// Returns whether an interrupted run left something.
    pub fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// Returns the files in a stage of `StageKind::Files`.
    pub fn files(&self) -> Result<Vec<StagedFile>, Error> {
        let names = names_in(self.root()).map_err(|error| Error::io("read", self.dir.path(), error))?;
        let of = |name: &[u8]| std::str::from_utf8(name).ok().and_then(|name| name.parse().ok()).and_then(Row::new);
        let found = names.into_iter().map(|(name, listed)| {
            let file_type = known_type(self.root(), &name, listed)
                .map_err(|error| Error::io("look at", self.dir.path().join(path_of(&name)), error))?;
            Ok(StagedFile { entry: of(&name), name, file_type })
        });
        found.collect()
    }

    /// Calls `visit` for each of these directories of an index, parents first, that the tree has. They are made accessible to their owner.
    pub fn visit(
        &self,
        index: &Index,
        directories: &[Row<Directory>],
        mut visit: impl FnMut(Row<Directory>, BorrowedFd<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut walk = Walk::default();
        let mut present: HashSet<Row<Directory>> = HashSet::new();
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

    /// Returns the folder of an update's new directories, empty.
    pub fn new_directories(&self) -> Result<OwnDir, Error> {
        self.own().new_directory(Self::DIRECTORIES)
    }

    /// Returns the folder of an update's new directories, if there is one.
    pub fn directories(&self) -> Result<Option<OwnDir>, Error> {
        self.own().directory(Self::DIRECTORIES)
    }

    /// Returns the numbers of the new directories that the stage still holds.
    pub fn waiting_directories(&self) -> Result<Vec<Row<Directory>>, Error> {
        let Some(folder) = self.directories()? else { return Ok(Vec::new()) };
        let names = names_in(folder.fd()).map_err(|error| Error::io("read", folder.path(), error))?;
        let number = |name: Vec<u8>| String::from_utf8(name).ok()?.parse().ok();
        Ok(names.into_iter().filter_map(|(name, _)| number(name)).filter_map(Row::new).collect())
    }

    /// Returns the space of its files, as far as this index knows them: it counts as available, since this run reuses or frees it.
    pub fn held(&self, index: &Index, directories: &[Row<Directory>]) -> Result<Leftovers, Error> {
        let mut held = Leftovers::default();
        match self.layout {
            StageKind::Tree => self.visit(index, directories, |_, directory| held.add(directory, &self.target))?,
            StageKind::Files => held.add(self.root(), &self.target)?,
        }
        Ok(held)
    }

    /// Moves a directory with everything in it out of the target: it is removed with the stage. Its place in the target is free at once, unless the
    /// file system does not rename it: then it is removed where it is.
    pub fn take_away(&self, directory: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
        match mkdirat(self.own().fd(), "removed", Mode::RWXU) {
            Err(Errno::EXIST) => {}
            made => made?,
        }
        let mut is_opened = false;
        loop {
            let number = self.taken_away.fetch_add(1, Ordering::Relaxed);
            let to = format!("removed/{number}");
            match rename_new(directory, name, self.own().fd(), to.as_bytes()) {
                // Left by a killed run.
                Err(Errno::EXIST) => {}
                // A non-root user may move only a writable directory.
                Err(Errno::ACCESS) if !is_opened && open_to_empty(directory, name).is_ok() => is_opened = true,
                Err(error) if moves_no_directory(error) => return remove_tree(directory, name),
                renamed => return renamed,
            }
        }
    }

    /// Returns the path of a file in the stage, for messages: its final name.
    pub fn path_of(&self, below: &[u8]) -> PathBuf {
        self.target.join(path_of(below))
    }

    /// Waits until everything is durable.
    pub fn sync(&self) -> Result<(), Error> {
        self.dir.sync()
    }

    /// Tries whether the tree can become the target by a rename: an empty directory moves out of the stage.
    pub fn moves_directories(&self, site: &Site) -> Result<bool, Error> {
        let (own, to) = (self.own(), site.place().sibling(TRIAL_SUFFIX)?);
        let failed = |error| Error::io("create", to.path(), error);
        // What a killed run left.
        for (at, name) in [(own.fd(), TRIAL.as_bytes()), (to.parent(), to.name().as_bytes())] {
            remove_empty(at, name).map_err(failed)?;
        }
        mkdirat(own.fd(), TRIAL, Mode::RWXU).map_err(failed)?;
        let moved = rename_new(own.fd(), TRIAL.as_bytes(), to.parent(), to.name().as_bytes());
        let (at, name) = match moved {
            Ok(()) => (to.parent(), to.name().as_bytes()),
            Err(_) => (own.fd(), TRIAL.as_bytes()),
        };
        unlinkat(at, name, AtFlags::REMOVEDIR).map_err(failed)?;
        match moved {
            Err(error) if moves_no_directory(error) => Ok(false),
            moved => moved.map(|()| true).map_err(failed),
        }
    }

    /// Makes the tree the target, which does not exist or is an empty directory, and removes the stage.
    pub fn finish(self, site: &Site, durable: bool) -> Result<(), Error> {
        let (own, place) = (self.own().fd(), site.place());
        let failed = |error| Error::io("create", place.path(), error);
        let (from, to) = (StageKind::Tree.name(), place.name());
        let rename = || match rename_new(own, from, place.parent(), to) {
            // An empty directory that existed before is replaced: a rename over a non-empty directory or a link fails.
            Err(Errno::EXIST) => renameat(own, from, place.parent(), to),
            renamed => renamed,
        };
        match rename() {
            // A non-root user may move only a writable directory, since its `..` changes.
            Err(Errno::ACCESS) => self.while_open(|| rename().map_err(failed))?,
            renamed => renamed.map_err(failed)?,
        }
        self.remove(site)?;
        if durable { Ok(place.sync_parent()?) } else { Ok(()) }
    }

    /// Runs something while the tree's root is open to its owner, whatever its mode.
    pub(crate) fn while_open<T>(&self, run: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        let failed = |error| Error::io("set the metadata of", &self.target, error);
        let mode = Mode::from_raw_mode(fstat(&self.root).map_err(failed)?.st_mode);
        if mode.contains(Mode::RWXU) {
            return run();
        }
        fchmod(&self.root, mode | Mode::RWXU).map_err(failed)?;
        let result = run();
        fchmod(&self.root, mode).map_err(failed)?;
        result
    }

    /// The name of an entry's file in a stage of `StageKind::Files`.
    pub fn file_name(entry: Row<Entry>) -> Vec<u8> {
        entry.to_string().into_bytes()
    }

    /// Removes the stage and everything in it.
    pub fn remove(self, site: &Site) -> Result<(), Error> {
        let trial = site.place().sibling(TRIAL_SUFFIX)?;
        let removed = remove_empty(trial.parent(), trial.name().as_bytes());
        removed.map_err(|error| Error::io("remove", trial.path(), error))?;
        self.dir.remove()?;
        site.remove_empty_folder();
        Ok(())
    }
}

/// Removes an empty directory, if it is there.
fn remove_empty(at: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
    match unlinkat(at, name, AtFlags::REMOVEDIR) {
        Err(Errno::NOENT) => Ok(()),
        removed => removed,
    }
}

/// Refuses a target that a rename cannot replace, before anything is built beside it.
pub(crate) fn check_replaceable(site: &Site, given: &Path) -> Result<(), Error> {
    let unusable = |path: &Path, problem| Error::Unusable { path: path.to_owned(), problem };
    if site.root().is_none() {
        return Ok(());
    }
    if given.file_name().is_none() {
        return Err(unusable(given, "is the working directory, and cannot be replaced"));
    }
    Ok(())
}
