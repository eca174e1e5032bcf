//! The end of an update: each file that was built moves to its place in the target by one rename.

mod directories;
mod look;

use sealift_format::{Directory, Entry, InodeKind, Row};
use std::collections::HashMap;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::sync::Arc;

use parking_lot::Mutex;

use rustix::fs::{AtFlags, FileType, Mode, chmod, renameat, unlinkat, utimensat};
use rustix::io::Errno;

use super::census::Census;
use super::changes::{Changes, Depth};
use super::metadata::{Privilege, times};
use super::needed::Needed;
use super::plan::{PlannedName, Selection};
use super::recheck::stat_of;
use super::release::Release;
use super::standing::Recorded;
use crate::directory::stage::TreeStage;
use crate::directory::target::{Target, TargetWalk};
use crate::fs::Unset;
use crate::fs::place::is_writable;
use crate::threads::parallel::for_each_with;
use crate::xattrs::XattrFilter;
use crate::{Error, Progress};
use sealift_format::name::join;
use sealift_format::num;

/// The changes that bring a target to the wanted index.
pub(super) struct Update<'a> {
    pub(super) target: Target<'a>,
    /// Everything that is wanted of the index.
    pub(super) selection: &'a Selection,
    pub(super) changes: Changes,
    /// Names to remove, with their directories: the wanted tree does not have them.
    pub(super) extras: Vec<(Row<Directory>, Vec<u8>)>,
    /// Whether a non-empty directory may be replaced by a file.
    pub(super) may_delete: bool,
    pub(super) privilege: &'a Privilege,
    pub(super) progress: &'a Progress,
    pub(super) jobs: usize,
    /// What occupies the places of entries that are rebuilt.
    pub(super) present: Census,
    /// Directories, with their parents, that occupy the places of files, or of directories that are made anew.
    pub(super) displaced: Vec<(Row<Directory>, Vec<u8>)>,
    /// Directories and names at which another file system is mounted, or in which one is: they stay as they are.
    pub(super) mounted: Vec<Vec<u8>>,
    /// New directories that are made, parents first. In the places of the others are directories that stay.
    pub(super) made: Vec<Row<Directory>>,
    pub(super) recorded: Arc<Recorded>,
    /// The inodes of directories whose metadata was set.
    pub(super) finished: Mutex<HashMap<Row<Directory>, u64>>,
    /// What may not be deleted.
    pub(super) needed: Needed,
    /// Whether an interrupted update is finished: it leaves what may not be deleted, since it can no longer be refused.
    pub(super) finishes: bool,
    /// The extended attributes that are compared.
    pub(super) xattrs: XattrFilter,
    /// The digest of the wanted index.
    pub(super) of: [u8; 32],
    /// The error of the first entry that was skipped because it was not as expected.
    pub(super) unlike: Mutex<Option<Error>>,
}

/// Removes a name from the target in one step, with everything below it.
fn take_away(stage: &TreeStage, directory: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
    match unlinkat(directory, name, AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) => match stage.take_away(directory, name) {
            Err(Errno::NOENT) => Ok(()),
            taken => taken,
        },
        Err(Errno::NOENT) => Ok(()),
        removed => removed,
    }
}

/// Returns whether this error means that something else occupies the place of a file or directory, or that it belongs to another user: trying again
/// would fail in the same way.
fn is_unlike(error: Errno) -> bool {
    matches!(
        error,
        Errno::NOENT | Errno::LOOP | Errno::NOTDIR | Errno::NXIO | Errno::STALE | Errno::ACCESS | Errno::PERM
    )
}

/// Names or directories per batch of a thread.
const BATCH: usize = 256;

/// A step of applying an update.
enum Step<'a> {
    Move,
    Times(&'a [PlannedName]),
}

impl Update<'_> {
    /// Returns the path of a name in a directory, or of the directory for an empty name.
    fn path_of(&self, directory: Row<Directory>, name: &[u8]) -> Vec<u8> {
        let path = self.target.index.directory_path(directory);
        if name.is_empty() { path } else { join(&path, name) }
    }

    fn may_be_missing(&self, entry: Row<Entry>) -> bool {
        use sealift_format::InodeKind::{BlockDevice, CharDevice, Directory};
        let is_skipped = |kind| matches!(kind, CharDevice(_) | BlockDevice(_)) && !self.privilege.makes_devices();
        let kind = self.target.index.inode(self.target.index.entry(entry).inode).kind;
        self.changes.build.contains(&entry)
            || is_skipped(kind)
            || matches!(kind, Directory(directory) if self.is_new(directory))
    }

    pub(super) fn is_new(&self, directory: Row<Directory>) -> bool {
        self.changes.new_directories.binary_search(&directory).is_ok()
    }

    /// Returns the entries that were built, by directory.
    fn built(&self) -> Vec<(Row<Directory>, Row<Entry>)> {
        let selection = self.selection;
        let names = selection.regulars.iter().chain(&selection.others).map(|place| (place.directory, place.entry));
        let names = names.chain(selection.links.iter().map(|link| (link.directory, link.entry)));
        let mut built: Vec<_> = names.filter(|(_, entry)| self.changes.build.contains(entry)).collect();
        built.sort_unstable();
        built
    }

    /// Returns how many names are moved into the target or out of it.
    pub(super) fn moves(&self) -> u64 {
        num::wide(self.built().len() + self.extras.len())
    }

    /// Brings the target to the wanted index. Files that should stay but are not as expected are skipped, and the first such error is returned.
    /// Steps that a killed run completed are not required again. This cannot be interrupted: halfway, the target is neither the old tree nor the
    /// new one.
    pub(super) fn apply(&self, stage: &TreeStage, release: &Release) -> Result<Option<Error>, Error> {
        let mut walk = TargetWalk::default();
        let placed = self.place_directories(stage, &mut walk)?;
        let directories: Vec<_> = self.directories_of(Depth::Time).filter_map(|number| self.place_of(number)).collect();
        let times = self.changes.metadata.chunks(BATCH).chain(directories.chunks(BATCH)).map(Step::Times);
        // One thread does all renames: the kernel serializes them in any case.
        let steps: Vec<Step<'_>> = std::iter::once(Step::Move).chain(times).collect();
        for_each_with(self.jobs, &steps, TargetWalk::default, |walk, step| match step {
            Step::Move => self.move_files(stage, release, walk),
            Step::Times(places) => places.iter().try_for_each(|place| self.set_time(walk, *place)),
        })?;
        self.finish_directories(&mut walk, &placed)?;
        Ok(self.unlike.lock().take())
    }

    /// Moves what was built into the target, and what is not wanted out of it.
    fn move_files(&self, stage: &TreeStage, release: &Release, walk: &mut TargetWalk) -> Result<(), Error> {
        for (directory, entry) in self.built() {
            self.move_file(stage, release, walk, directory, entry)?;
            self.progress.add(0, 1);
        }
        for (directory, name) in &self.extras {
            let failed = self.target.failed("remove", *directory, name);
            let at = walk.go(&self.target, *directory).map_err(&failed)?;
            let taken = self.open_up(at).and_then(|()| release.after(at, name, || take_away(stage, at, name)));
            taken.map_err(&failed)?;
            self.progress.add(0, 1);
        }
        Ok(())
    }

    fn move_file(
        &self,
        stage: &TreeStage,
        release: &Release,
        walk: &mut TargetWalk,
        directory: Row<Directory>,
        entry: Row<Entry>,
    ) -> Result<(), Error> {
        let index = self.target.index;
        let name = index.name(index.entry(entry));
        let failed = self.target.failed("replace", directory, name);
        let (from, source) = (stage.root(), &*TreeStage::file_name(entry));
        let at = walk.go(&self.target, directory).map_err(&failed)?;
        self.open_up(at).map_err(&failed)?;
        match release.after(at, name, || renameat(from, source, at, name)) {
            // An interrupted run did this already; or it is a device that was left out.
            Err(Errno::NOENT) => Ok(()),
            Err(Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST) => {
                // Without permission to delete, only an empty directory is replaced.
                let removed = match self.may_delete {
                    true => stage.take_away(at, name),
                    false => unlinkat(at, name, AtFlags::REMOVEDIR),
                };
                removed.and_then(|()| renameat(from, source, at, name)).map_err(&failed)
            }
            renamed => renamed.map_err(&failed),
        }
    }

    /// Makes a read-only directory writable for non-root users; its mode is set again at the end.
    fn open_up(&self, directory: BorrowedFd<'_>) -> Result<(), Errno> {
        if self.privilege.overrides_modes() || is_writable(directory)? {
            return Ok(());
        }
        chmod(format!("/proc/self/fd/{}", directory.as_raw_fd()), Mode::RWXU)
    }

    /// Returns the directories whose metadata is set to that depth, in tree order.
    fn directories_of(&self, depth: Depth) -> impl DoubleEndedIterator<Item = Row<Directory>> {
        let depths = &self.changes.directories;
        self.selection.directories.iter().copied().filter(move |number| depths.get(number) == Some(&depth))
    }

    /// Returns the place of a directory's name; the root of the tree has none.
    fn place_of(&self, directory: Row<Directory>) -> Option<PlannedName> {
        let row = self.target.index.directory(directory);
        Some(PlannedName { object: Row::FIRST, entry: row.entry, directory: row.parent? })
    }

    fn set_time(&self, walk: &mut TargetWalk, place: PlannedName) -> Result<(), Error> {
        let index = self.target.index;
        let entry = index.entry(place.entry);
        let (inode, name) = (index.inode(entry.inode), index.name(entry));
        let set = walk.go(&self.target, place.directory).and_then(|at| {
            let found = stat_of(at, name)?;
            if self.target.is_elsewhere(&found) {
                return Err(Errno::XDEV);
            }
            let kind = FileType::from_raw_mode(found.stx_mode.into());
            if kind != FileType::from_raw_mode(index.attributes(inode).mode.into()) {
                return Err(Errno::NXIO);
            }
            // What an interrupted update left to be finished may have been changed since, and then keeps the time of that.
            let is_changed = |object| found.stx_size != index.object(object).size;
            if self.finishes && matches!(inode.kind, InodeKind::Regular(object) if is_changed(object)) {
                return Ok(());
            }
            utimensat(at, name, &times(inode), AtFlags::SYMLINK_NOFOLLOW)
        });
        self.pass_over_unlike(set.map_err(Unset::Call), place.directory, name)
    }

    fn pass_over_unlike(&self, set: Result<(), Unset>, directory: Row<Directory>, name: &[u8]) -> Result<(), Error> {
        let failed = self.target.failed("set the metadata of", directory, name);
        match set {
            // A mount hides it, and stays as it is.
            Err(unset) if unset.errno() == Errno::XDEV => Ok(()),
            Err(unset) if is_unlike(unset.errno()) => {
                self.unlike.lock().get_or_insert_with(|| failed(unset.errno()));
                Ok(())
            }
            set => {
                set.map_err(|unset| unset.into_error(&self.target.path_in(directory, name), self.target.root(), failed))
            }
        }
    }
}
