//! The end of an update: each file that was built moves to its place in the target by one rename.

use sealift_format::{Directory, Entry, InodeKind, Row};
use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Stat, Statx, chmod, fchmod, fstat, futimens, mkdirat, renameat, statat, unlinkat,
    utimensat,
};
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
use crate::fs::confined::{known_type, names_in, open_name, open_on_same_device, open_own, open_within};
use crate::fs::place::is_writable;
use crate::fs::rename::{moves_no_directory, rename_new};
use crate::threads::parallel::for_each_with;
use crate::xattrs::XattrFilter;
use crate::{Error, InodeId, OwnDir, Progress, inode_id};
use sealift_format::name::join;
use sealift_format::num;
use sealift_format::num::at;

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

/// Makes a directory where it will be. While it is empty, and its user's alone, nothing is given away with another one that takes its name.
fn make_empty(at: BorrowedFd<'_>, name: &[u8]) -> Result<Stat, Errno> {
    mkdirat(at, name, Mode::RWXU)?;
    let made = open_on_same_device(at, name, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
    if names_in(made.as_fd())?.is_empty() { fstat(&made) } else { Err(Errno::NOTEMPTY) }
}

/// Names or directories per batch of a thread.
const BATCH: usize = 256;

/// What was seen in a directory.
#[derive(Default)]
struct Seen {
    /// Names to remove.
    extras: Vec<Vec<u8>>,
    /// Directories that occupy the places of files.
    displaced: Vec<Vec<u8>>,
    /// What else occupies the places of entries that are rebuilt.
    present: Census,
    /// Paths that stay because of what is mounted there.
    mounted: Vec<Vec<u8>>,
    /// Whether everything that stays is present, each name with its expected kind of file.
    has_all: bool,
}

/// A step of applying an update.
enum Step<'a> {
    Move,
    Times(&'a [PlannedName]),
}

impl Update<'_> {
    /// Examines the directories that stay, and lists what `--delete` removes in them. Returns whether everything that stays is present, each name
    /// with its expected kind of file. If the tree `was_compared` with its record, directories whose contents are as expected are skipped.
    ///
    /// # Errors
    /// Returns an error if a name that is to be replaced or removed cannot be, such as one under a mount.
    pub(super) fn look(&mut self, prefix: &[u8], was_compared: bool) -> Result<bool, Error> {
        let whole = prefix.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).count();
        let directories = self.selection.directories.iter().copied();
        let stay: Vec<Row<Directory>> = directories
            .filter(|number| !self.is_new(*number) && (!was_compared || !self.is_settled(*number)))
            .collect();
        let stays = self.entries_that_stay(&stay);
        let batches: Vec<&[Row<Directory>]> = stay.chunks(BATCH).collect();
        let (is_whole, all) =
            (AtomicBool::new(true), Mutex::new((Vec::new(), Vec::new(), Census::default(), Vec::new())));
        for_each_with(self.jobs, &batches, TargetWalk::default, |walk, batch| {
            for &directory in *batch {
                self.progress.check()?;
                let deletes = self.may_delete && at(self.target.index.directory(directory).depth) >= whole;
                let seen = self.look_at(walk, directory, &stays, deletes)?;
                is_whole.fetch_and(seen.has_all, Ordering::Relaxed);
                let mut all = all.lock();
                all.0.extend(seen.extras.into_iter().map(|name| (directory, name)));
                all.1.extend(seen.displaced.into_iter().map(|name| (directory, name)));
                all.2 = all.2.plus(seen.present);
                all.3.extend(seen.mounted);
            }
            Ok(())
        })?;
        (self.extras, self.displaced, self.present, self.mounted) = all.into_inner();
        self.extras.sort_unstable();
        self.extras.iter().for_each(|(directory, _)| self.changes.touch(*directory));
        Ok(is_whole.into_inner())
    }

    /// Returns whether nothing is created or removed in a directory, according to the comparison.
    fn is_settled(&self, directory: Row<Directory>) -> bool {
        let changes = &self.changes;
        changes.directories.get(&directory) != Some(&Depth::All)
            && (!self.may_delete || changes.exact.contains(&directory))
    }

    /// Returns for each entry of the index whether it is wanted and already present.
    fn entries_that_stay(&self, directories: &[Row<Directory>]) -> Vec<bool> {
        let mut stays = vec![false; self.target.index.entries().len()];
        let directories = directories.iter().filter_map(|number| self.place_of(*number)).map(|place| place.entry);
        for entry in self.selection.entries().chain(directories).filter(|entry| !self.may_be_missing(*entry)) {
            stays[entry.at()] = true;
        }
        stays
    }

    /// Examines the names in a directory; `deletes` says whether the update removes what the wanted tree does not have.
    fn look_at(
        &self,
        walk: &mut TargetWalk,
        directory: Row<Directory>,
        stays: &[bool],
        deletes: bool,
    ) -> Result<Seen, Error> {
        let target = &self.target;
        let failed = target.failed("read", directory, b"");
        let here = match walk.go(target, directory) {
            Ok(here) => here,
            Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => return Ok(Seen::default()),
            Err(Errno::XDEV) => return self.look_under_mount(directory),
            Err(error) => return Err(failed(error)),
        };
        let row = target.index.directory(directory);
        // Such a directory is known to hold only wanted names.
        let is_known = self.changes.exact.contains(&directory);
        let names = if is_known { Ok(self.in_the_way(here, row)) } else { names_in(here) };
        let names = match names {
            // A non-root user may be unable to list it; this matters only for deletions.
            Err(Errno::ACCESS) if !self.may_delete => return Ok(Seen { has_all: true, ..Seen::default() }),
            names => names.map_err(failed)?,
        };
        let (mut seen, mut found) = (Seen::default(), 0);
        for (name, listed) in names {
            match target.index.find_entry(row, &name) {
                None if target.leaves_alone(directory, &name, || known_type(here, &name, listed)) => {}
                None if self.finishes && self.needed.has(here, &name) => {}
                None if deletes
                    && target.holds_mount(here, &name).map_err(target.failed("read", directory, &name))? =>
                {
                    seen.mounted.push(self.path_of(directory, &name));
                }
                None if deletes => {
                    target.check_free(directory, here, &name)?;
                    self.check_needed(directory, here, &name)?;
                    seen.extras.push(name);
                }
                Some((number, entry)) if stays[number.at()] => {
                    let mode = target.index.attributes(target.index.inode(entry.inode)).mode;
                    found += usize::from(known_type(here, &name, listed) == FileType::from_raw_mode(mode.into()));
                }
                Some((number, entry)) if self.may_be_missing(number) => {
                    target.check_free(directory, here, &name)?;
                    let kind = known_type(here, &name, listed);
                    let mode = target.index.attributes(target.index.inode(entry.inode)).mode;
                    match kind {
                        FileType::Directory if FileType::from_raw_mode(mode.into()) != FileType::Directory => {
                            target.check_movable(directory, here, &name)?;
                            self.check_needed(directory, here, &name)?;
                            seen.displaced.push(name);
                        }
                        kind => seen.present.add(kind),
                    }
                }
                _ => {}
            }
        }
        if !seen.extras.is_empty() || row.entries().any(|entry| self.may_be_missing(entry)) {
            target.check_free(directory, here, b"")?;
        }
        seen.has_all = is_known || found == row.entries().filter(|entry| stays[entry.at()]).count();
        Ok(seen)
    }

    /// Checks that nothing changes in a directory that a mount hides.
    fn look_under_mount(&self, directory: Row<Directory>) -> Result<Seen, Error> {
        let mut entries = self.target.index.directory(directory).entries();
        let shrinks = self.may_delete && self.changes.shrinking.contains(&directory);
        if shrinks || entries.any(|entry| self.may_be_missing(entry)) {
            return Err(self.target.is_mounted(directory));
        }
        let mounted = vec![self.target.index.directory_path(directory)];
        Ok(Seen { has_all: true, mounted, ..Seen::default() })
    }

    /// Checks that no metadata changes of files that a mount hides.
    fn check_metadata(&self) -> Result<(), Error> {
        let (target, mut walk) = (&self.target, TargetWalk::default());
        for places in self.changes.metadata.chunk_by(|a, b| a.directory == b.directory) {
            let Some(PlannedName { directory, .. }) = places.first() else { continue };
            let here = match walk.go(target, *directory) {
                Err(Errno::XDEV) => return Err(target.is_mounted(*directory)),
                Err(_) => continue, // it is found where it is set
                Ok(here) => here,
            };
            if target.may_hold_mounts() {
                for place in places {
                    target.check_free(*directory, here, target.index.name(target.index.entry(place.entry)))?;
                }
            }
        }
        Ok(())
    }

    /// Checks that what is changed in place belongs to this user, who could not change it otherwise, unless this process may change anything.
    fn check_owners(&self) -> Result<(), Error> {
        if self.privilege.may_change_all() {
            return Ok(());
        }
        let (target, mut walk) = (&self.target, TargetWalk::default());
        let changed = self.selection.directories.iter().filter(|number| self.changes.directories.contains_key(number));
        for &directory in changed.filter(|number| !self.is_new(**number)) {
            match walk.go(target, directory).and_then(|here| stat_of(here, b"")) {
                // A mount hides it, or it makes way for a new one.
                Err(Errno::XDEV | Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                found => self.check_owner(&found.map_err(target.failed("look at", directory, b""))?, directory, b"")?,
            }
        }
        for place in &self.changes.metadata {
            let name = target.index.name(target.index.entry(place.entry));
            match walk.go(target, place.directory).and_then(|here| stat_of(here, name)) {
                Err(Errno::NOENT) => {}
                found => {
                    let found = found.map_err(target.failed("look at", place.directory, name))?;
                    self.check_owner(&found, place.directory, name)?;
                }
            }
        }
        Ok(())
    }

    fn check_owner(&self, found: &Statx, directory: Row<Directory>, name: &[u8]) -> Result<(), Error> {
        if self.privilege.may_change(found.stx_uid) {
            return Ok(());
        }
        let problem = format!("belongs to user {}, and the update has to change it", found.stx_uid);
        Err(Error::unexpected(self.target.path_of(&self.path_of(directory, name)), problem))
    }

    /// Checks that names can be created and removed in the directories that stay.
    fn check_writable(&self) -> Result<(), Error> {
        let (target, mut walk) = (&self.target, TargetWalk::default());
        let parents = self.made.iter().filter_map(|number| target.index.directory(*number).parent);
        let removed = self.extras.iter().chain(&self.displaced).map(|(directory, _)| *directory);
        let built = self.built().into_iter().map(|(directory, _)| directory);
        let mut changed: Vec<_> = built.chain(parents).chain(removed).filter(|number| !self.is_new(*number)).collect();
        changed.sort_unstable();
        changed.dedup();
        for directory in changed {
            let failed = target.failed("open", directory, b"");
            let here = match walk.go(target, directory) {
                // A mount hides it, or it makes way for a new one.
                Err(Errno::XDEV | Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
                here => here.map_err(&failed)?,
            };
            if !self.privilege.may_write_in(here).map_err(&failed)? {
                let problem = "is not writable for this process, and the update has to change what is in it";
                return Err(Error::unexpected(target.path_in(directory, b""), problem));
            }
        }
        Ok(())
    }

    /// Returns the path of a name in a directory, or of the directory for an empty name.
    fn path_of(&self, directory: Row<Directory>, name: &[u8]) -> Vec<u8> {
        let path = self.target.index.directory_path(directory);
        if name.is_empty() { path } else { join(&path, name) }
    }

    fn check_needed(&self, directory: Row<Directory>, here: BorrowedFd<'_>, name: &[u8]) -> Result<(), Error> {
        self.needed.check(here, name, || self.target.path_in(directory, name))
    }

    /// Returns the existing names in a directory, with their types, that will be replaced by what is built.
    fn in_the_way(&self, here: BorrowedFd<'_>, row: &Directory) -> Vec<(Vec<u8>, FileType)> {
        let index = self.target.index;
        let names =
            row.entries().filter(|entry| self.may_be_missing(*entry)).map(|entry| index.name(index.entry(entry)));
        let names = names.map(|name| (name.to_vec(), known_type(here, name, FileType::Unknown)));
        names.filter(|(_, kind)| *kind != FileType::Unknown).collect()
    }

    /// Checks whether what was built can take its places in the target. Nothing is changed.
    ///
    /// # Errors
    /// Returns an error if a non-empty directory would have to be replaced, a file that a mount hides, or the metadata of what another user owns.
    pub(super) fn fits(&self) -> Result<(), Error> {
        self.check_metadata()?;
        self.check_owners()?;
        self.check_writable()?;
        let target = &self.target;
        let mut walk = TargetWalk::default();
        for (directory, entry) in self.built() {
            if self.is_new(directory) || self.may_delete {
                continue;
            }
            let name = target.index.name(target.index.entry(entry));
            let at = walk.go(target, directory).map_err(target.failed("open", directory, b""))?;
            let is_directory = statat(at, name, AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory);
            if is_directory
                && open_on_same_device(at, name, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
                    .and_then(|directory| names_in(directory.as_fd()))
                    .is_ok_and(|names| !names.is_empty())
            {
                let path = target.path_of(&target.index.path(directory, entry));
                return Err(Error::DirectoryInPlace { path });
            }
        }
        Ok(())
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

    /// Moves new directories into the target, and returns their identities.
    fn place_directories(
        &self,
        stage: &TreeStage,
        walk: &mut TargetWalk,
    ) -> Result<HashMap<Row<Directory>, InodeId>, Error> {
        let (index, mut placed) = (self.target.index, HashMap::new());
        let Some(from) = stage.directories()? else { return Ok(placed) };
        let displaced: HashSet<(Row<Directory>, &[u8])> =
            self.displaced.iter().map(|(parent, name)| (*parent, &**name)).collect();
        for &number in &self.made {
            let row = index.directory(number);
            let Some(parent) = row.parent else { continue };
            let name = index.name(index.entry(row.entry));
            let failed = self.target.failed("create", parent, name);
            let at = walk.go(&self.target, parent).map_err(&failed)?;
            self.open_up(at).map_err(&failed)?;
            let source = number.to_string();
            let made = match statat(from.fd(), &*source, AtFlags::SYMLINK_NOFOLLOW) {
                // A killed run moved it.
                Err(Errno::NOENT) => continue,
                made => made.map_err(&failed)?,
            };
            let place = || match rename_new(from.fd(), &source, at, name) {
                Err(error) if moves_no_directory(error) => make_empty(at, name),
                moved => moved.map(|()| made),
            };
            let made = match place() {
                Err(Errno::EXIST | Errno::NOTDIR | Errno::NOTEMPTY) => {
                    let is_directory = known_type(at, name, FileType::Unknown) == FileType::Directory;
                    if is_directory && !displaced.contains(&(parent, name)) {
                        // It came since this was examined. It stays, with the rights that it has.
                        continue;
                    }
                    take_away(stage, at, name).and_then(|()| place())
                }
                made => made,
            };
            let made = made.map_err(&failed)?;
            placed.insert(number, (made.st_dev, made.st_ino));
        }
        Ok(placed)
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

    /// Sets the metadata of directories, from the deepest up: a parent may end up read-only.
    fn finish_directories(
        &self,
        walk: &mut TargetWalk,
        placed: &HashMap<Row<Directory>, InodeId>,
    ) -> Result<(), Error> {
        let index = self.target.index;
        for number in self.directories_of(Depth::All).rev() {
            let row = index.directory(number);
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let opened = match row.parent {
                None => open_within(self.target.root(), b".", flags, Mode::empty()).map(|at| (at, true)),
                Some(parent) => walk.go_seeing(&self.target, parent).and_then(|(at, is_safe)| {
                    let name = index.name(index.entry(row.entry));
                    open_own(flags, |flags| open_on_same_device(at, name, flags, Mode::empty())).map(|at| (at, is_safe))
                }),
            };
            let set = opened
                .map_err(Unset::Call)
                .and_then(|(at, is_safe)| self.finish_directory(number, at.as_fd(), is_safe, placed));
            self.pass_over_unlike(set, number, b"")?;
        }
        Ok(())
    }

    /// Sets the metadata of a directory, unless it only lacks its time, or is not ours to give rights to.
    fn finish_directory(
        &self,
        number: Row<Directory>,
        at: BorrowedFd<'_>,
        is_safe: bool,
        placed: &HashMap<Row<Directory>, InodeId>,
    ) -> Result<(), Unset> {
        let index = self.target.index;
        let (row, inode) = (index.directory(number), index.inode(index.directory(number).inode));
        let attributes = index.attributes(inode);
        let found = stat_of(at, b".")?;
        if self.privilege.is_as_set(&found, &self.xattrs.read(at)?, attributes) {
            self.finished.lock().insert(number, found.stx_ino);
            return self.privilege.set_time(futimens(at, &times(inode)));
        }
        let is_ours = row.parent.is_none()
            || placed.get(&number).is_some_and(|placed| inode_id(at).is_ok_and(|id| id == *placed))
            || self.recorded.may_give(number, &found, is_safe);
        if is_ours {
            self.finished.lock().insert(number, found.stx_ino);
            return self.privilege.apply_again(at, attributes, inode);
        }
        self.unlike.lock().get_or_insert_with(|| self.stranger(number, (&found).into()));
        Ok(())
    }

    /// Returns whether this inode is the directory of that number, as made or set by this run, or as recorded before.
    pub(super) fn is_own_directory(&self, number: Row<Directory>, inode: u64) -> bool {
        self.finished.lock().get(&number) == Some(&inode) || self.recorded.is_known(number, inode)
    }

    /// Returns the error for a directory that is not the installed one.
    fn stranger(&self, number: Row<Directory>, Rights { owner, mode }: Rights) -> Error {
        let path = self.target.path_of(&self.target.index.directory_path(number));
        Error::OtherDirectory { path, owner, mode }
    }

    /// Returns the directories that would get other rights, and are not those that were installed: they are made anew.
    ///
    /// # Errors
    /// Returns an error if one cannot be examined.
    pub(super) fn strangers(&self) -> Result<Vec<Row<Directory>>, Error> {
        let (mut strangers, mut walk) = (Vec::new(), TargetWalk::default());
        for number in self.directories_of(Depth::All).filter(|number| !self.is_new(*number)) {
            if let Occupant::Stranger(_) = self.occupant(&mut walk, number)? {
                strangers.push(number);
            }
        }
        Ok(strangers)
    }

    /// Decides which new directories are made. A directory that already has the name of a new one stays if it needs no other rights, or may be given
    /// them; otherwise it makes way with what it holds, which must be known to the bundle unless the update deletes everything else. Returns the
    /// error for the first that neither stays nor makes way.
    ///
    /// # Errors
    /// Returns an error if one cannot be examined.
    pub(super) fn settle(&mut self) -> Result<Option<Error>, Error> {
        let (mut stays, mut walk, mut refused) = (HashSet::new(), TargetWalk::default(), None);
        let wanted: HashSet<Row<Entry>> = self.selection.entries().collect();
        for number in self.changes.new_directories.clone() {
            let Some(parent) = self.target.index.directory(number).parent else { continue };
            let is_there = !self.is_new(parent) || stays.contains(&parent);
            let occupant = if is_there { self.occupant(&mut walk, number)? } else { Occupant::Nothing };
            match occupant {
                Occupant::Nothing => self.made.push(number),
                Occupant::Right => _ = stays.insert(number),
                Occupant::Stranger(found) if !self.may_delete && self.holds_others(&mut walk, number, &wanted) => {
                    refused.get_or_insert_with(|| self.stranger(number, found));
                    stays.insert(number);
                }
                Occupant::Stranger(_) => {
                    let index = self.target.index;
                    let name = index.name(index.entry(index.directory(number).entry)).to_vec();
                    let here = walk.go(&self.target, parent).map_err(self.target.failed("look at", parent, &name))?;
                    self.target.check_free(parent, here, &name)?;
                    self.target.check_movable(parent, here, &name)?;
                    self.check_needed(parent, here, &name)?;
                    self.displaced.push((parent, name));
                    self.made.push(number);
                }
            }
        }
        Ok(refused)
    }

    /// Returns what is in the place of a directory.
    fn occupant(&self, walk: &mut TargetWalk, number: Row<Directory>) -> Result<Occupant, Error> {
        let index = self.target.index;
        let row = index.directory(number);
        let Some(parent) = row.parent else { return Ok(Occupant::Right) };
        let name = index.name(index.entry(row.entry));
        let mut look = || {
            let (here, is_safe) = walk.go_seeing(&self.target, parent)?;
            let found = stat_of(here, name)?;
            if FileType::from_raw_mode(found.stx_mode.into()) != FileType::Directory {
                return Ok(Occupant::Nothing);
            }
            if self.target.is_elsewhere(&found) {
                return Ok(Occupant::Right);
            }
            let name = CString::new(name).map_err(|_| Errno::INVAL)?;
            let xattrs = self.xattrs.read_link(here, &name)?;
            let is_right = self.privilege.is_as_set(&found, &xattrs, index.attributes(index.inode(row.inode)));
            let stays = is_right || self.recorded.may_give(number, &found, is_safe);
            Ok(if stays { Occupant::Right } else { Occupant::Stranger((&found).into()) })
        };
        match look() {
            Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => Ok(Occupant::Nothing),
            // A mount hides it, and stays as it is.
            Err(Errno::XDEV) => Ok(Occupant::Right),
            // A non-root user cannot change it either.
            Err(Errno::ACCESS) if !self.privilege.overrides_modes() => Ok(Occupant::Right),
            found => found.map_err(self.target.failed("look at", parent, name)),
        }
    }

    /// Returns whether a directory holds anything that the bundle does not bring.
    fn holds_others(&self, walk: &mut TargetWalk, number: Row<Directory>, wanted: &HashSet<Row<Entry>>) -> bool {
        let index = self.target.index;
        let names = walk.go(&self.target, number).and_then(|at| {
            let names = names_in(at)?.into_iter();
            Ok(names.map(|(name, listed)| (known_type(at, &name, listed), name)).collect::<Vec<_>>())
        });
        let Ok(names) = names else { return true };
        names.into_iter().any(|(kind, name)| {
            let Some((entry, row)) = index.find_entry(index.directory(number), &name) else { return true };
            match index.inode(row.inode).kind {
                InodeKind::Directory(below) if kind == FileType::Directory => self.holds_others(walk, below, wanted),
                _ => kind == FileType::Directory || !wanted.contains(&entry),
            }
        })
    }

    /// Makes the new directories in the stage, with their rights: only they and what the record names get any.
    ///
    /// # Errors
    /// Returns an error if one cannot be made.
    pub(super) fn stage_directories(&self, folder: &OwnDir) -> Result<(), Error> {
        let index = self.target.index;
        for &number in &self.made {
            let failed = self.target.failed("create", number, b"");
            let (name, inode) = (number.to_string(), index.inode(index.directory(number).inode));
            match mkdirat(folder.fd(), &*name, Mode::RWXU) {
                // Left by a killed run, with its rights.
                Err(Errno::EXIST) => continue,
                made => made.map_err(&failed)?,
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let made = open_name(folder.fd(), name.as_bytes(), flags, Mode::empty()).map_err(&failed)?;
            let attributes = index.attributes(inode);
            self.privilege.apply(made.as_fd(), attributes, inode, Some(Mode::RWXU)).map_err(|unset| {
                let path = self.target.path_of(&index.directory_path(number));
                unset.into_error(&path, folder.fd(), &failed)
            })?;
            if !self.privilege.overrides_modes()
                && let Some(mode) = self.privilege.mode(attributes)
            {
                // Files are moved into it first.
                fchmod(&made, mode | Mode::RWXU).map_err(&failed)?;
            }
        }
        Ok(())
    }
}

/// Owner and permissions that were found.
#[derive(Clone, Copy)]
struct Rights {
    owner: u32,
    mode: u16,
}

impl From<&Statx> for Rights {
    fn from(found: &Statx) -> Self {
        Self { owner: found.stx_uid, mode: found.stx_mode & 0o7777 }
    }
}

/// What is in the place of a directory.
enum Occupant {
    /// Nothing, or something else, which makes way.
    Nothing,
    /// A directory that stays.
    Right,
    /// A directory that may not be given the rights which it lacks.
    Stranger(Rights),
}
