//! The end of an update: what was built goes to its place in the target, file by file and each by one rename.

use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, chmod, fstat, mkdirat, renameat, statat, unlinkat, utimensat};
use rustix::io::Errno;

use super::as_u64;
use super::census::Census;
use super::changes::{Changes, Depth};
use super::metadata::{Privilege, times};
use super::plan::{Place, Selection};
use super::release::Release;
use crate::directory::stage::Stage;
use crate::directory::target::{Target, TargetWalk};
use crate::fs::confined::{known_type, names_in, open_name, open_on_same_device, open_own, open_within};
use crate::threads::parallel::for_each;
use crate::{Error, Progress};
use sealift_format::num::at;

/// What is done to a target, which is the wanted index's afterwards.
pub(super) struct Update<'a> {
    pub(super) target: Target<'a>,
    /// All that is wanted of the index.
    pub(super) selection: &'a Selection,
    pub(super) changes: Changes,
    /// Names, in their directories, that the wanted tree does not have and that are removed.
    pub(super) extras: Vec<(u32, Vec<u8>)>,
    /// Whether a directory with files may make way for a file.
    pub(super) may_delete: bool,
    pub(super) privilege: &'a Privilege,
    pub(super) progress: &'a Progress,
    pub(super) jobs: usize,
    /// What stands in places where something is made anew.
    pub(super) present: Census,
    /// Directories, in theirs, that stand in places of files.
    pub(super) displaced: Vec<(u32, Vec<u8>)>,
    /// The digest of the wanted index.
    pub(super) of: [u8; 32],
    /// Why the first was passed over of what is not as it was to be.
    pub(super) unlike: Mutex<Option<Error>>,
}

/// Removes a name from the target, at once and with all below it.
fn take_away(stage: &Stage, directory: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
    match unlinkat(directory, name, AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) => match stage.take_away(directory, name) {
            Err(Errno::NOENT) => Ok(()),
            taken => taken,
        },
        Err(Errno::NOENT) => Ok(()),
        removed => removed,
    }
}

/// Whether this error says that something else stands where a file or a directory was, or that it is somebody else's: as often as it is
/// tried again, it is the same.
fn is_unlike(error: Errno) -> bool {
    matches!(
        error,
        Errno::NOENT
            | Errno::LOOP
            | Errno::NOTDIR
            | Errno::NXIO
            | Errno::XDEV
            | Errno::STALE
            | Errno::ACCESS
            | Errno::PERM
    )
}

/// Names that one thread goes through before it takes the next ones.
const BATCH: usize = 256;

/// What was seen in a directory.
#[derive(Default)]
struct Seen {
    /// Names that the wanted tree does not have.
    others: Vec<Vec<u8>>,
    /// Directories that stand in places of files.
    displaced: Vec<Vec<u8>>,
    /// What else stands where something is made anew.
    present: Census,
    /// Whether all is there that stays, each name as the kind of file that it is to be.
    has_all: bool,
}

/// A part of what is done to a target.
enum Step<'a> {
    Move,
    Metadata(&'a [(Place, Depth)]),
}

impl Update<'_> {
    /// Looks at the directories that stay, and lists what `--delete` takes away in them. Returns whether all is there that stays, each name as
    /// the kind of file that it is to be. Where the tree `was_compared` with its record, directories are left out that hold what they are to
    /// hold.
    ///
    /// # Errors
    /// Another file system is mounted within.
    pub(super) fn look(&mut self, prefix: &[u8], was_compared: bool) -> Result<bool, Error> {
        let whole = prefix.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).count();
        let directories = self.selection.directories.iter().copied();
        let stay: Vec<u32> = directories
            .filter(|number| !self.is_new(*number) && (!was_compared || !self.is_settled(*number)))
            .collect();
        let stays = self.entries_that_stay(&stay);
        let batches: Vec<&[u32]> = stay.chunks(BATCH).collect();
        let (is_whole, all) = (AtomicBool::new(true), Mutex::new((Vec::new(), Vec::new(), Census::default())));
        for_each(self.jobs, &batches, TargetWalk::default, |walk, batch| {
            for &directory in *batch {
                self.progress.check()?;
                let depth = at(self.target.index.directory(directory).depth);
                let seen = self.look_at(walk, directory, &stays)?;
                is_whole.fetch_and(seen.has_all, Ordering::Relaxed);
                let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                if self.may_delete && depth >= whole {
                    all.0.extend(seen.others.into_iter().map(|name| (directory, name)));
                }
                all.1.extend(seen.displaced.into_iter().map(|name| (directory, name)));
                all.2 = all.2.plus(seen.present);
            }
            Ok(())
        })?;
        (self.extras, self.displaced, self.present) = all.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.extras.sort_unstable();
        self.extras.iter().for_each(|(directory, _)| self.changes.touch(*directory));
        Ok(is_whole.into_inner())
    }

    /// Whether nothing is made or removed in a directory, going by what was compared.
    fn is_settled(&self, directory: u32) -> bool {
        let changes = &self.changes;
        changes.directories.get(&directory) != Some(&Depth::All)
            && (!self.may_delete || changes.exact.contains(&directory))
    }

    /// For each entry of the index whether it is wanted, and is there already.
    fn entries_that_stay(&self, directories: &[u32]) -> Vec<bool> {
        let mut stays = vec![false; self.target.index.entries().len()];
        let directories = directories.iter().filter_map(|number| self.place_of(*number)).map(|place| place.entry);
        for entry in self.selection.entries().chain(directories).filter(|entry| !self.may_be_missing(*entry)) {
            stays[at(entry)] = true;
        }
        stays
    }

    /// Looks at the names in a directory.
    fn look_at(&self, walk: &mut TargetWalk, directory: u32, stays: &[bool]) -> Result<Seen, Error> {
        let target = &self.target;
        let failed = target.failed("read", directory, b"");
        let here = match walk.go(target, directory) {
            Ok(here) => here,
            Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => return Ok(Seen::default()),
            Err(Errno::XDEV) => return Err(target.is_mounted(directory, b"")),
            Err(error) => return Err(failed(error)),
        };
        let names = match names_in(here) {
            // Who is not root may not list it; only what is removed is to be known.
            Err(Errno::ACCESS) if !self.may_delete => return Ok(Seen { has_all: true, ..Seen::default() }),
            names => names.map_err(failed)?,
        };
        let row = target.index.directory(directory);
        let is_mount_point =
            |name: &[u8]| target.is_mount_point(here, name).map_err(target.failed("look at", directory, name));
        let (mut seen, mut found) = (Seen::default(), 0);
        for (name, listed) in names {
            match target.index.find_entry(row, &name) {
                None if self.may_delete && is_mount_point(&name)? => {
                    return Err(target.is_mounted(directory, &name));
                }
                None => seen.others.push(name),
                Some((number, entry)) if stays[at(number)] => {
                    let mode = target.index.attributes(target.index.inode(entry.inode)).mode;
                    found += usize::from(known_type(here, &name, listed) == FileType::from_raw_mode(mode.into()));
                }
                Some((number, _)) if self.may_be_missing(number) && is_mount_point(&name)? => {
                    return Err(target.is_mounted(directory, &name));
                }
                Some((number, entry)) if self.may_be_missing(number) => {
                    let kind = known_type(here, &name, listed);
                    let mode = target.index.attributes(target.index.inode(entry.inode)).mode;
                    match kind {
                        FileType::Directory if FileType::from_raw_mode(mode.into()) != FileType::Directory => {
                            seen.displaced.push(name);
                        }
                        kind => seen.present.add(kind),
                    }
                }
                Some(_) => {}
            }
        }
        seen.has_all = found == row.entries().filter(|entry| stays[at(*entry)]).count();
        Ok(seen)
    }

    /// Looks whether there is room in the target for what was built. Nothing is changed.
    ///
    /// # Errors
    /// A directory that holds files would have to make way.
    pub(super) fn fits(&self) -> Result<(), Error> {
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
                let path = target.path_of(&target.index.path(directory, target.index.entry(entry)));
                return Err(Error::DirectoryInPlace { path });
            }
        }
        Ok(())
    }

    fn may_be_missing(&self, entry: u32) -> bool {
        use sealift_format::InodeKind::{BlockDevice, CharDevice, Directory};
        let is_skipped = |kind| matches!(kind, CharDevice(_) | BlockDevice(_)) && !self.privilege.is_root();
        let kind = self.target.index.inode(self.target.index.entry(entry).inode).kind;
        self.changes.build.contains(&entry)
            || is_skipped(kind)
            || matches!(kind, Directory(directory) if self.is_new(directory))
    }

    pub(super) fn is_new(&self, directory: u32) -> bool {
        self.changes.new_directories.binary_search(&directory).is_ok()
    }

    /// The entries that were built, by directory.
    fn built(&self) -> Vec<(u32, u32)> {
        let selection = self.selection;
        let names = selection.regulars.iter().chain(&selection.others).map(|place| (place.directory, place.entry));
        let names = names.chain(selection.links.iter().map(|link| (link.directory, link.entry)));
        let mut built: Vec<_> = names.filter(|(_, entry)| self.changes.build.contains(entry)).collect();
        built.sort_unstable();
        built
    }

    /// How many names are moved into the target or out of it.
    pub(super) fn moves(&self) -> u64 {
        as_u64(self.built().len() + self.extras.len())
    }

    /// Brings the target to what the index wants, as far as what stays in it is what it was to be: else it is passed over, and what
    /// came of the first such file is returned. What was done by a run that was killed is not asked for again. Nobody stops it: halfway the
    /// target is neither what it was nor what it is to be.
    pub(super) fn apply(&self, stage: &Stage, release: &Release) -> Result<Option<Error>, Error> {
        let mut walk = TargetWalk::default();
        self.make_directories(&mut walk)?;
        let directories = self.directories_of(Depth::Time);
        let directories: Vec<_> =
            directories.filter_map(|number| Some((self.place_of(number)?, Depth::Time))).collect();
        let metadata = self.changes.metadata.chunks(BATCH).chain(directories.chunks(BATCH)).map(Step::Metadata);
        // All renames are one thread's: the kernel takes them one after the other in any case.
        let steps: Vec<Step<'_>> = std::iter::once(Step::Move).chain(metadata).collect();
        for_each(self.jobs, &steps, TargetWalk::default, |walk, step| match step {
            Step::Move => self.move_files(stage, release, walk),
            Step::Metadata(places) => {
                places.iter().try_for_each(|(place, depth)| self.set_metadata(walk, *place, *depth))
            }
        })?;
        self.finish_directories(&mut walk)?;
        Ok(self.unlike.lock().unwrap_or_else(PoisonError::into_inner).take())
    }

    fn make_directories(&self, walk: &mut TargetWalk) -> Result<(), Error> {
        let index = self.target.index;
        for &number in &self.changes.new_directories {
            let row = index.directory(number);
            let Some(parent) = row.parent else { continue };
            let name = index.name(index.entry(row.entry));
            let failed = self.target.failed("create", parent, name);
            let at = walk.go(&self.target, parent).map_err(&failed)?;
            self.open_up(at).map_err(&failed)?;
            match mkdirat(at, name, Mode::RWXU) {
                Err(Errno::EXIST) if known_type(at, name, FileType::Unknown) == FileType::Directory => {}
                Err(Errno::EXIST) => {
                    // A file makes way for a directory.
                    unlinkat(at, name, AtFlags::empty())
                        .and_then(|()| mkdirat(at, name, Mode::RWXU))
                        .map_err(&failed)?;
                }
                made => made.map_err(&failed)?,
            }
        }
        Ok(())
    }

    /// Moves into the target what was built, and out of it what is not wanted.
    fn move_files(&self, stage: &Stage, release: &Release, walk: &mut TargetWalk) -> Result<(), Error> {
        for (directory, entry) in self.built() {
            self.move_file((stage, release), walk, directory, entry)?;
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
        (stage, release): (&Stage, &Release),
        walk: &mut TargetWalk,
        directory: u32,
        entry: u32,
    ) -> Result<(), Error> {
        let index = self.target.index;
        let name = index.name(index.entry(entry));
        let failed = self.target.failed("replace", directory, name);
        let (from, source) = (stage.root(), &*Stage::file_name(entry));
        let at = walk.go(&self.target, directory).map_err(&failed)?;
        self.open_up(at).map_err(&failed)?;
        match release.after(at, name, || renameat(from, source, at, name)) {
            // A run before this one had come so far; or it is a device, and was left out.
            Err(Errno::NOENT) => Ok(()),
            Err(Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST) => {
                // Nothing is lost that was not allowed to go: without that, only an empty one makes way.
                let removed = match self.may_delete {
                    true => stage.take_away(at, name),
                    false => unlinkat(at, name, AtFlags::REMOVEDIR),
                };
                removed.and_then(|()| renameat(from, source, at, name)).map_err(&failed)
            }
            renamed => renamed.map_err(&failed),
        }
    }

    /// Who is not root cannot change what is in a directory that is read-only; its mode is set again at the end.
    fn open_up(&self, directory: BorrowedFd<'_>) -> Result<(), Errno> {
        if self.privilege.is_root() || fstat(directory)?.st_mode & 0o300 == 0o300 {
            return Ok(());
        }
        chmod(format!("/proc/self/fd/{}", directory.as_raw_fd()), Mode::RWXU)
    }

    /// The directories whose metadata is set to that depth, in tree order.
    fn directories_of(&self, depth: Depth) -> impl DoubleEndedIterator<Item = u32> {
        let depths = &self.changes.directories;
        self.selection.directories.iter().copied().filter(move |number| depths.get(number) == Some(&depth))
    }

    /// Where a directory's name stands; the root of the tree has none.
    fn place_of(&self, directory: u32) -> Option<Place> {
        let row = self.target.index.directory(directory);
        Some(Place { object: 0, entry: row.entry, directory: row.parent? })
    }

    fn set_metadata(&self, walk: &mut TargetWalk, place: Place, depth: Depth) -> Result<(), Error> {
        let index = self.target.index;
        let entry = index.entry(place.entry);
        let (inode, name) = (index.inode(entry.inode), index.name(entry));
        let set = walk.go(&self.target, place.directory).and_then(|at| match depth {
            Depth::Time => {
                let kind = FileType::from_raw_mode(statat(at, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode);
                if kind != FileType::from_raw_mode(index.attributes(inode).mode.into()) {
                    return Err(Errno::NXIO);
                }
                utimensat(at, name, &times(inode), AtFlags::SYMLINK_NOFOLLOW)
            }
            Depth::All => {
                let flags = OFlags::RDONLY | OFlags::NONBLOCK;
                let file = open_own(flags, |flags| open_name(at, name, flags, Mode::empty()))?;
                if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
                    return Err(Errno::NXIO);
                }
                self.privilege.apply_again(file.as_fd(), index.attributes(inode), inode)
            }
        });
        self.pass_over_unlike(set, place.directory, name)
    }

    fn pass_over_unlike(&self, set: Result<(), Errno>, directory: u32, name: &[u8]) -> Result<(), Error> {
        let failed = self.target.failed("set the metadata of", directory, name);
        match set {
            Err(error) if is_unlike(error) => {
                self.unlike.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| failed(error));
                Ok(())
            }
            set => set.map_err(failed),
        }
    }

    /// From the deepest up: what is above may end as read-only.
    fn finish_directories(&self, walk: &mut TargetWalk) -> Result<(), Error> {
        let index = self.target.index;
        for number in self.directories_of(Depth::All).rev() {
            let row = index.directory(number);
            let inode = index.inode(row.inode);
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let opened = match row.parent {
                None => open_within(self.target.root(), b".", flags, Mode::empty()),
                Some(parent) => walk.go(&self.target, parent).and_then(|at| {
                    let name = index.name(index.entry(row.entry));
                    open_own(flags, |flags| open_on_same_device(at, name, flags, Mode::empty()))
                }),
            };
            let set = opened.and_then(|at| self.privilege.apply_again(at.as_fd(), index.attributes(inode), inode));
            self.pass_over_unlike(set, number, b"")?;
        }
        Ok(())
    }
}
