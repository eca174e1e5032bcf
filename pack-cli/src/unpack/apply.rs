//! The end of an update: what was built goes to its place in the target, file by file and each by one rename.

use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, chmod, fstat, mkdirat, renameat, statat, unlinkat, utimensat};
use rustix::io::Errno;

use super::adopt::known_type;
use super::changes::{Changes, Depth};
use super::metadata::{Privilege, times};
use super::plan::{Place, Selection};
use super::stage::Stage;
use super::target::{Target, TargetWalk};
use super::walk::Walk;
use crate::beneath::{names_in, open_name, open_on_same_device, open_within};
use crate::parallel::for_each;
use crate::{Error, Progress};

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

/// Files whose metadata one thread sets before it takes the next ones.
const BATCH: usize = 256;

impl Update<'_> {
    /// Looks whether the target is as the changes have it, where they touch it. Nothing is changed.
    ///
    /// # Errors
    /// A directory that holds files would have to make way, or another file system is mounted within.
    pub(super) fn fits(&self) -> Result<bool, Error> {
        let target = &self.target;
        let mut walk = TargetWalk::default();
        for &directory in &self.selection.directories {
            if !self.changes.directories.contains(&directory) || self.is_new(directory) {
                continue;
            }
            match walk.go(target, directory) {
                Ok(_) => {}
                Err(Errno::XDEV) => {
                    let path = target.path_of(&target.index.directory_path(directory));
                    return Err(Error::Usage(format!(
                        "another file system is mounted at {} or above it: an update does not cross it",
                        path.display()
                    )));
                }
                Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => return Ok(false),
                Err(error) => return Err(target.failed("open", directory, b"")(error)),
            }
        }
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
                return Err(Error::Usage(format!(
                    "{} is a directory with files, and a file in the bundle: --delete lets it go",
                    path.display()
                )));
            }
        }
        // Where extra names were looked for, the others were seen.
        if self.may_delete { Ok(true) } else { self.has_files_that_stay() }
    }

    fn has_files_that_stay(&self) -> Result<bool, Error> {
        let missing = std::sync::atomic::AtomicBool::new(false);
        self.with_metadata(|at, place, _| {
            let name = self.target.index.name(self.target.index.entry(place.entry));
            let stat = at.and_then(|at| statat(at, name, AtFlags::SYMLINK_NOFOLLOW));
            if !stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile) {
                missing.store(true, std::sync::atomic::Ordering::Relaxed);
            }
            Ok(())
        })?;
        Ok(!missing.into_inner())
    }

    /// Lists what `--delete` takes away. Returns whether all names are there that stay.
    pub(super) fn list_extras(&mut self, prefix: &[u8]) -> Result<bool, Error> {
        let target = &self.target;
        let whole = prefix.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).count();
        let mut walk = TargetWalk::default();
        let (mut extras, mut is_whole) = (Vec::new(), true);
        for &directory in &self.selection.directories {
            let row = target.index.directory(directory);
            if usize::try_from(row.depth).unwrap_or(usize::MAX) < whole || self.is_new(directory) {
                continue;
            }
            let opened = walk
                .go(target, directory)
                .and_then(|at| open_within(at, b".", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()));
            let opened = match opened {
                Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => {
                    is_whole = false;
                    continue;
                }
                opened => opened.map_err(target.failed("read", directory, b""))?,
            };
            let names = names_in(opened.as_fd()).map_err(target.failed("read", directory, b""))?;
            let mut known = 0;
            for (name, _) in names {
                match target.index.find_entry(row, &name) {
                    Some(_) => known += 1,
                    None => extras.push((directory, name)),
                }
            }
            let new = row.entries().filter(|entry| self.may_be_missing(*entry)).count();
            is_whole &= known + new >= row.entries().len();
        }
        self.changes.directories.extend(extras.iter().map(|(directory, _)| *directory));
        self.extras = extras;
        Ok(is_whole)
    }

    fn may_be_missing(&self, entry: u32) -> bool {
        use sealift_format::InodeKind::{BlockDevice, CharDevice, Directory};
        let is_skipped = |kind| matches!(kind, CharDevice(_) | BlockDevice(_)) && !self.privilege.is_root();
        let kind = self.target.index.inode(self.target.index.entry(entry).inode).kind;
        self.changes.build.contains(&entry)
            || is_skipped(kind)
            || matches!(kind, Directory(directory) if self.is_new(directory))
    }

    fn is_new(&self, directory: u32) -> bool {
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

    /// Brings the target to what the index wants. What was done by a run that was killed is not asked for again.
    pub(super) fn apply(&self, stage: &Stage) -> Result<(), Error> {
        let mut walk = TargetWalk::default();
        self.make_directories(&mut walk)?;
        self.move_files(stage)?;
        for (directory, name) in &self.extras {
            let failed = self.target.failed("remove", *directory, name);
            let at = walk.go(&self.target, *directory).map_err(&failed)?;
            self.open_up(at).and_then(|()| take_away(stage, at, name)).map_err(&failed)?;
        }
        self.with_metadata(|at, place, depth| self.set_metadata(at, place, depth))?;
        self.finish_directories(&mut walk)
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

    fn move_files(&self, stage: &Stage) -> Result<(), Error> {
        let built = self.built();
        // A directory is one thread's: what opens it up for changes is done once.
        let directories: Vec<_> = built.chunk_by(|a, b| a.0 == b.0).collect();
        let start = <(Walk, TargetWalk)>::default;
        for_each(self.jobs, &directories, start, |(from, walk), names| {
            self.progress.check()?;
            names.iter().try_for_each(|&(directory, entry)| self.move_file(stage, (from, walk), directory, entry))
        })
    }

    fn move_file(
        &self,
        stage: &Stage,
        (from, walk): (&mut Walk, &mut TargetWalk),
        directory: u32,
        entry: u32,
    ) -> Result<(), Error> {
        let index = self.target.index;
        let name = index.name(index.entry(entry));
        let failed = self.target.failed("replace", directory, name);
        let source = match from.go(index, stage.root(), directory) {
            Err(Errno::NOENT) => return Ok(()),
            walked => walked.map_err(&failed)?,
        };
        let at = walk.go(&self.target, directory).map_err(&failed)?;
        self.open_up(at).map_err(&failed)?;
        match renameat(source, name, at, name) {
            // A run before this one had come so far; or it is a device, and was left out.
            Err(Errno::NOENT) => Ok(()),
            Err(Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST) => {
                // Nothing is lost that was not allowed to go: without that, only an empty one makes way.
                let removed = match self.may_delete {
                    true => stage.take_away(at, name),
                    false => unlinkat(at, name, AtFlags::REMOVEDIR),
                };
                removed.and_then(|()| renameat(source, name, at, name)).map_err(&failed)
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

    /// Calls `act` for each file whose content stays and whose metadata does not, on all threads.
    fn with_metadata(
        &self,
        act: impl Fn(Result<BorrowedFd<'_>, Errno>, Place, Depth) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        let mut files = self.changes.metadata.clone();
        files.sort_unstable_by_key(|(place, _)| (place.directory, place.entry));
        let batches: Vec<_> = files.chunks(BATCH).collect();
        for_each(self.jobs, &batches, TargetWalk::default, |walk, batch| {
            self.progress.check()?;
            batch.iter().try_for_each(|(place, depth)| act(walk.go(&self.target, place.directory), *place, *depth))
        })
    }

    fn set_metadata(&self, at: Result<BorrowedFd<'_>, Errno>, place: Place, depth: Depth) -> Result<(), Error> {
        let index = self.target.index;
        let entry = index.entry(place.entry);
        let (inode, name) = (index.inode(entry.inode), index.name(entry));
        let set = at.and_then(|at| match depth {
            Depth::Time => utimensat(at, name, &times(inode), AtFlags::SYMLINK_NOFOLLOW),
            Depth::All => {
                let file = open_name(at, name, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())?;
                if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
                    return Ok(());
                }
                self.privilege.apply_again(file.as_fd(), index.attributes(inode), inode)
            }
        });
        match set {
            // Somebody took it away since it was looked at: what is not there needs no metadata.
            Err(Errno::NOENT) => Ok(()),
            set => set.map_err(self.target.failed("set the metadata of", place.directory, name)),
        }
    }

    /// From the deepest up: what is above may end as read-only.
    fn finish_directories(&self, walk: &mut TargetWalk) -> Result<(), Error> {
        let index = self.target.index;
        for &number in self.selection.directories.iter().rev() {
            if !self.changes.directories.contains(&number) {
                continue;
            }
            let failed = self.target.failed("set the metadata of", number, b"");
            let row = index.directory(number);
            let inode = index.inode(row.inode);
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let opened = match row.parent {
                None => open_within(self.target.root(), b".", flags, Mode::empty()),
                Some(parent) => walk
                    .go(&self.target, parent)
                    .and_then(|at| open_on_same_device(at, index.name(index.entry(row.entry)), flags, Mode::empty())),
            };
            let set = opened.and_then(|at| self.privilege.apply_again(at.as_fd(), index.attributes(inode), inode));
            set.map_err(&failed)?;
        }
        Ok(())
    }
}
