//! Checks whether an installed tree still matches its record: each file by its size, times and inode number, as git compares its index with a
//! working tree, and by its content if those differ. Nothing is changed.

use std::collections::HashSet;
use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd};

use crate::fs::confined::open_name;
use crate::fs::stat_cache::{FileStat, FileTime, StatCache};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Statx, StatxAttributes, StatxFlags, fstat, readlinkat, statx};
use rustix::io::{Errno, retry_on_intr};
use sealift_format::num;
use sealift_format::{Directory, Entry, Inode, InodeKind, Row};

use super::metadata::Privilege;
use super::plan::Selection;
use crate::directory::target::{Target, TargetWalk};
use crate::progress::Phase;
use crate::threads::parallel::map_with;
use crate::xattrs::XattrFilter;
use crate::{Error, Progress};

/// The differences between an installed tree and its record, by the numbers of its index.
#[derive(Debug, Default)]
pub(super) struct Recheck {
    /// Inodes, except directories, that are missing or whose content, kind, metadata or set of names differs.
    pub(super) unlike: HashSet<Row<Inode>>,
    /// Inodes of which only the time differs.
    pub(super) retimed: HashSet<Row<Inode>>,
    /// Inodes with names elsewhere, or with fewer names than expected.
    pub(super) linked: HashSet<Row<Inode>>,
    /// Directories that are missing, or are not directories.
    pub(super) missing_directories: HashSet<Row<Directory>>,
    /// Directories whose own metadata differs.
    pub(super) unlike_directories: HashSet<Row<Directory>>,
    /// Entries at which another file system is mounted, or which are subvolumes: they and what lies under them are taken for unchanged.
    pub(super) mounted: Vec<(Row<Directory>, Row<Entry>)>,
    /// Directories that hold no names beyond those in the record: nothing was added or removed since.
    pub(super) exact_directories: HashSet<Row<Directory>>,
    /// The stats of the unchanged entries.
    stats: Vec<Option<FileStat>>,
    /// Whether the record lacked some of these.
    pub(super) is_refreshed: bool,
    /// Files that were compared in any way.
    pub(super) checked: u64,
    /// Those of them that were read.
    pub(super) hashed: u64,
}

/// A name whose stats differ.
struct Suspect {
    directory: Row<Directory>,
    entry: Row<Entry>,
    found: Statx,
}

/// What a thread finds in some directories.
#[derive(Default)]
struct LookedAt {
    suspects: Vec<Suspect>,
    missing: Vec<Row<Inode>>,
    missing_directories: Vec<Row<Directory>>,
    unlike_directories: Vec<Row<Directory>>,
    /// Entries whose stats are as recorded, or hidden by a mount.
    same: Vec<Row<Entry>>,
    mounted: Vec<(Row<Directory>, Row<Entry>)>,
    /// Names of files that are present.
    files: u64,
    /// Inodes that have or should have several names, each with the link count and the inode number on the file system.
    links: Vec<(Row<Inode>, u32, u64)>,
}

/// The result of reading a suspect.
enum Verdict {
    Same,
    Retimed,
    Unlike,
}

const FIELDS: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::MNT_ID);
/// Directories per batch of a thread.
const BATCH: usize = 64;
/// Suspects per batch of a thread.
const SUSPECTS: usize = 16;

/// Returns the stats of a name without following a link, or of the directory for an empty name.
pub(super) fn stat_of(directory: BorrowedFd<'_>, name: &[u8]) -> Result<Statx, Errno> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::EMPTY_PATH;
    retry_on_intr(|| statx(directory, name, flags, FIELDS))
}

impl Recheck {
    /// Compares the selection with the tree. `begun` is a time before any of this was examined.
    pub(super) fn of(
        checker: &Checker<'_>,
        selection: &Selection,
        begun: FileTime,
        jobs: usize,
    ) -> Result<Self, Error> {
        checker.progress.enter(Phase::Listing, 0, 0);
        let batches: Vec<&[Row<Directory>]> = selection.directories.chunks(BATCH).collect();
        let all = map_with(jobs, &batches, TargetWalk::default, |walk, batch| {
            let mut found = LookedAt::default();
            for &directory in *batch {
                checker.progress.check()?;
                checker.look(walk, directory, &mut found)?;
            }
            Ok(found)
        })?;
        let mut recheck = Self { stats: vec![None; checker.target.index.entries().len()], ..Self::default() };
        let mut suspects = Vec::new();
        let mut numbers = std::collections::HashMap::new();
        for found in all {
            recheck.checked += found.files + num::wide(found.missing.len());
            for entry in found.same {
                recheck.stats[entry.at()] = checker.cache.and_then(|cache| cache.get(entry.at()));
                recheck.exact_directories.extend(checker.exact_directory(entry));
            }
            recheck.mounted.extend(found.mounted);
            recheck.unlike.extend(found.missing);
            recheck.missing_directories.extend(found.missing_directories);
            recheck.unlike_directories.extend(found.unlike_directories);
            for (inode, names, number) in found.links {
                let is_one = *numbers.entry(inode).or_insert(number) == number;
                if !is_one {
                    recheck.unlike.insert(inode);
                }
                if names != checker.names[inode.at()] {
                    recheck.linked.insert(inode);
                }
            }
            suspects.extend(found.suspects);
        }
        recheck.read(checker, suspects, begun, jobs)?;
        Ok(recheck)
    }

    /// Reads the suspects.
    fn read(
        &mut self,
        checker: &Checker<'_>,
        mut suspects: Vec<Suspect>,
        begun: FileTime,
        jobs: usize,
    ) -> Result<(), Error> {
        if suspects.is_empty() {
            return Ok(());
        }
        suspects.sort_unstable_by_key(|suspect| suspect.entry);
        let (files, bytes) =
            suspects.iter().fold((0, 0_u64), |(files, bytes), suspect| match checker.object_of(suspect) {
                Some((_, size)) => (files + 1, bytes.saturating_add(size)),
                None => (files, bytes),
            });
        checker.progress.enter(Phase::Hashing, bytes, files);
        let batches: Vec<&[Suspect]> = suspects.chunks(SUSPECTS).collect();
        let verdicts = map_with(jobs, &batches, TargetWalk::default, |walk, batch| {
            let judge = |suspect| {
                checker.progress.check()?;
                let verdict = checker.judge(walk, suspect);
                if let Some((_, size)) = checker.object_of(suspect) {
                    checker.progress.add(size, 1);
                }
                Ok(verdict)
            };
            batch.iter().map(judge).collect::<Result<Vec<Verdict>, Error>>()
        })?;
        self.hashed = files;
        for (suspect, verdict) in suspects.iter().zip(verdicts.into_iter().flatten()) {
            let inode = checker.target.index.entry(suspect.entry).inode;
            let directory = match checker.target.index.inode(inode).kind {
                InodeKind::Directory(directory) => Some(directory),
                _ => None,
            };
            match (verdict, directory) {
                (Verdict::Same, _) => {
                    let stat = FileStat::from(&suspect.found);
                    self.stats[suspect.entry.at()] = Some(stat).filter(|stat| stat.ctime < begun);
                    self.is_refreshed |= stat.ctime < begun;
                }
                (Verdict::Retimed, None) => {
                    self.retimed.insert(inode);
                }
                (Verdict::Unlike, None) => {
                    self.unlike.insert(inode);
                }
                (_, Some(directory)) => {
                    self.unlike_directories.insert(directory);
                }
            }
        }
        Ok(())
    }

    /// Returns the stats of an unchanged entry.
    pub(super) fn stat(&self, entry: Row<Entry>) -> Option<FileStat> {
        self.stats.get(entry.at()).copied().flatten()
    }

    /// Returns whether the tree is as recorded.
    pub(super) fn is_same(&self) -> bool {
        let sets = [self.missing_directories.is_empty(), self.unlike_directories.is_empty()];
        self.changed() == 0 && sets == [true, true]
    }

    /// Returns the number of changed inodes.
    pub(super) fn changed(&self) -> u64 {
        num::wide(self.unlike.len() + self.retimed.len())
    }
}

/// What an installed tree is compared with.
pub(super) struct Checker<'a> {
    target: &'a Target<'a>,
    cache: Option<&'a StatCache>,
    privilege: &'a Privilege,
    progress: &'a Progress,
    is_selected: Vec<bool>,
    /// The expected number of names of each inode.
    names: Vec<u32>,
    xattrs: XattrFilter,
    is_sealed: bool,
}

impl<'a> Checker<'a> {
    /// Creates a checker; `target` has the installed index.
    pub(super) fn new(
        target: &'a Target<'a>,
        selection: &Selection,
        cache: Option<&'a StatCache>,
        privilege: &'a Privilege,
        progress: &'a Progress,
    ) -> Self {
        let index = target.index;
        let mut is_selected = vec![false; index.entries().len()];
        let mut names = vec![0; index.inodes().len()];
        for entry in selection.entries() {
            is_selected[entry.at()] = true;
            names[index.entry(entry).inode.at()] += 1;
        }
        for &directory in &selection.directories {
            let row = index.directory(directory);
            if row.parent.is_some() {
                is_selected[row.entry.at()] = true;
            }
        }
        let mut xattrs = XattrFilter::default();
        xattrs.add_names_of(index);
        Self { target, cache, privilege, progress, is_selected, names, xattrs, is_sealed: false }
    }

    /// Notes whether the files are sealed.
    pub(super) fn sealed(mut self, is_sealed: bool) -> Self {
        self.is_sealed = is_sealed;
        self
    }

    /// Examines a directory and its expected entries.
    fn look(&self, walk: &mut TargetWalk, directory: Row<Directory>, found: &mut LookedAt) -> Result<(), Error> {
        let index = self.target.index;
        let row = index.directory(directory);
        let here = match walk.go(self.target, directory) {
            Ok(here) => here,
            Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => {
                found.missing_directories.push(directory);
                let entries = row.entries().filter(|entry| self.is_selected[entry.at()]);
                found.missing.extend(entries.filter_map(|entry| self.file_of(entry)));
                return Ok(());
            }
            // A non-root user may lack access to a directory of their own, and cannot change what is in it either.
            Err(Errno::ACCESS) if !self.privilege.overrides_modes() => return Ok(()),
            // A mount hides it.
            Err(Errno::XDEV) => {
                found.same.extend(row.entries().filter(|entry| self.is_selected[entry.at()]));
                return Ok(());
            }
            Err(error) => return Err(self.target.failed("look at", directory, b"")(error)),
        };
        if row.parent.is_none() {
            // The root has no entry by which its stats could be recorded, and its change time is updated when the tree gets its name.
            let stat = stat_of(here, b".").map_err(self.target.failed("look at", directory, b""))?;
            if !self.is_directory_right(here, b".", index.inode(row.inode), &stat) {
                found.unlike_directories.push(directory);
            }
        }
        for entry in row.entries().filter(|entry| self.is_selected[entry.at()]) {
            let name = index.name(index.entry(entry));
            let stat = match stat_of(here, name) {
                Ok(stat) => stat,
                Err(Errno::NOENT) if self.is_left_out(entry) => continue,
                Err(Errno::NOENT) => {
                    // A missing directory is found in its own turn.
                    found.missing.extend(self.file_of(entry));
                    continue;
                }
                Err(Errno::ACCESS) if !self.privilege.overrides_modes() => return Ok(()),
                Err(error) => return Err(self.target.failed("look at", directory, name)(error)),
            };
            if self.target.is_elsewhere(&stat) {
                found.mounted.push((directory, entry));
                found.same.push(entry);
                continue;
            }
            if let Some(inode) = self.file_of(entry) {
                found.files += 1;
                if stat.stx_nlink != 1 || self.names[inode.at()] != 1 {
                    found.links.push((inode, stat.stx_nlink, stat.stx_ino));
                }
            }
            match self.cache {
                Some(cache) if cache.is_unchanged(entry.at(), &FileStat::from(&stat)) => found.same.push(entry),
                _ => found.suspects.push(Suspect { directory, entry, found: stat }),
            }
        }
        Ok(())
    }

    /// Returns the inode of an entry that is not a directory.
    fn file_of(&self, entry: Row<Entry>) -> Option<Row<Inode>> {
        let inode = self.target.index.entry(entry).inode;
        (!matches!(self.target.index.inode(inode).kind, InodeKind::Directory(_))).then_some(inode)
    }

    /// Returns the directory of an entry, if the record is complete for unchanged directories.
    fn exact_directory(&self, entry: Row<Entry>) -> Option<Row<Directory>> {
        let index = self.target.index;
        match index.inode(index.entry(entry).inode).kind {
            InodeKind::Directory(directory) if self.cache.is_some_and(|cache| cache.is_exact) => Some(directory),
            _ => None,
        }
    }

    /// Returns whether an entry was not made for lack of privilege.
    fn is_left_out(&self, entry: Row<Entry>) -> bool {
        let kind = self.target.index.inode(self.target.index.entry(entry).inode).kind;
        matches!(kind, InodeKind::CharDevice(_) | InodeKind::BlockDevice(_)) && !self.privilege.makes_devices()
    }

    /// Returns the id and size of a suspect's expected object, if it is a regular file of that size.
    fn object_of(&self, suspect: &Suspect) -> Option<(&[u8; 32], u64)> {
        let index = self.target.index;
        let InodeKind::Regular(object) = index.inode(index.entry(suspect.entry).inode).kind else { return None };
        let object = index.object(object);
        let is_regular = kind_of(&suspect.found) == FileType::RegularFile && suspect.found.stx_size == object.size;
        is_regular.then_some((&object.id, object.size))
    }

    fn judge(&self, walk: &mut TargetWalk, suspect: &Suspect) -> Verdict {
        let index = self.target.index;
        let entry = index.entry(suspect.entry);
        let (inode, name) = (index.inode(entry.inode), index.name(entry));
        let attributes = index.attributes(inode);
        if kind_of(&suspect.found) != FileType::from_raw_mode(attributes.mode.into()) {
            return Verdict::Unlike;
        }
        let Ok(here) = walk.go(self.target, suspect.directory) else { return Verdict::Unlike };
        let is_timed = self.is_time(&suspect.found, inode);
        let is_same = match inode.kind {
            InodeKind::Directory(_) => self.is_directory_right(here, name, inode, &suspect.found),
            InodeKind::Regular(_) => self.is_file_right(here, name, suspect),
            kind => {
                self.holds(here, name, kind, &suspect.found) && self.has_metadata(here, name, inode, &suspect.found)
            }
        };
        match is_same {
            false => Verdict::Unlike,
            true if is_timed => Verdict::Same,
            true => Verdict::Retimed,
        }
    }

    /// Returns whether a directory has its expected metadata.
    fn is_directory_right(&self, here: BorrowedFd<'_>, name: &[u8], inode: &Inode, stat: &Statx) -> bool {
        self.is_time(stat, inode) && self.has_metadata(here, name, inode, stat)
    }

    fn is_time(&self, found: &Statx, inode: &Inode) -> bool {
        self.privilege.has_time(FileStat::from(found).mtime, inode)
    }

    /// Returns whether a regular file has its content and metadata, except its time. An unreadable file does not count as such.
    fn is_file_right(&self, here: BorrowedFd<'_>, name: &[u8], suspect: &Suspect) -> bool {
        let Some((id, _)) = self.object_of(suspect) else { return false };
        // A file of the same content that took its place is not necessarily sealed.
        let has_seal = suspect.found.stx_attributes.contains(StatxAttributes::VERITY);
        if self.is_sealed && suspect.found.stx_size > 0 && !has_seal {
            return false;
        }
        let index = self.target.index;
        let attributes = index.attributes(index.inode(index.entry(suspect.entry).inode));
        let Ok(file) = open_name(here, name, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()) else { return false };
        let file = File::from(file);
        let is_named = || fstat(&file).is_ok_and(|stat| FileStat::from(&stat) == FileStat::from(&suspect.found));
        self.xattrs.read(file.as_fd()).is_ok_and(|xattrs| self.privilege.is_as_set(&suspect.found, &xattrs, attributes))
            && is_named()
            && blake3::Hasher::new().update_reader(&file).is_ok_and(|hasher| hasher.finalize().as_bytes() == id)
            && is_named()
    }

    /// Returns whether a link has its expected target, or a device its expected number.
    fn holds(&self, here: BorrowedFd<'_>, name: &[u8], kind: InodeKind, stat: &Statx) -> bool {
        let index = self.target.index;
        match kind {
            InodeKind::Symlink(to) => {
                readlinkat(here, name, Vec::new()).is_ok_and(|found| found.as_bytes() == index.symlink_target(to))
            }
            InodeKind::CharDevice(number) | InodeKind::BlockDevice(number) => {
                let device = index.device(number);
                (stat.stx_rdev_major, stat.stx_rdev_minor) == (device.major, device.minor)
            }
            InodeKind::Fifo | InodeKind::Socket => true,
            InodeKind::Directory(_) | InodeKind::Regular(_) => false,
        }
    }

    /// Returns whether a name that is not opened has the metadata that this process sets, except its time.
    fn has_metadata(&self, here: BorrowedFd<'_>, name: &[u8], inode: &Inode, stat: &Statx) -> bool {
        let Ok(name) = CString::new(name) else { return false };
        let attributes = self.target.index.attributes(inode);
        self.xattrs.read_link(here, &name).is_ok_and(|xattrs| self.privilege.is_as_set(stat, &xattrs, attributes))
    }
}

fn kind_of(stat: &Statx) -> FileType {
    FileType::from_raw_mode(stat.stx_mode.into())
}
