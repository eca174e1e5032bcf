//! Creates the files of a tree in its stage.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{
    AtFlags, Dev, FallocateFlags, FileType as UnixType, Mode, OFlags, SeekFrom, chmodat, copy_file_range, fallocate,
    fstat, fsync, ftruncate, ioctl_ficlone, linkat, makedev, mkdirat, mknodat, openat, seek, symlinkat, unlinkat,
};
use rustix::io::Errno;
use sealift_format::num;
use sealift_format::{
    Attributes, Bundle, Directory, Entry, FileType, Inode, InodeKind, Object, Row, data_len, data_ranges,
};
use sealift_verify::content::Content;

use super::finished::Finished;
use super::metadata::Privilege;
use super::plan::{Link, PlannedName, Selection};
use crate::delivery::write_content;
use crate::directory::stage::{StageKind, TreeStage};
use crate::directory::walk::Walk;
use crate::fs::confined::{open_name, open_within};
use crate::fs::{Unset, kind_of};
use crate::install::options::{Durability, InstallOptions};
use crate::{Error, Progress, xattrs};

/// The state shared by all threads that unpack.
pub(super) struct Builder<'a> {
    pub(super) bundle: &'a Bundle,
    pub(super) selection: &'a Selection,
    pub(super) stage: &'a TreeStage,
    pub(super) finished: &'a Finished,
    pub(super) privilege: &'a Privilege,
    pub(super) progress: &'a Progress,
    pub(super) options: &'a InstallOptions,
    /// Whether the file system can share blocks between files.
    pub(super) reflinks: bool,
    /// The files that were created before anything was written, all but perhaps the last with space for all of their content.
    pub(super) premade: HashSet<Row<Entry>>,
    pub(super) duplicate_bytes: AtomicU64,
}

/// The result of making a duplicate a hard link.
enum Duplicate {
    Linked,
    /// It is not linked: that was not requested, or its metadata differs.
    Other,
    /// The file has as many names as its file system allows: the duplicate becomes a file of its own, to which the next ones are linked.
    Full,
}

const PRIVATE: Mode = Mode::from_raw_mode(0o600);

/// Returns where a file of `size` bytes has data, according to its file system.
fn data_of(file: &OwnedFd, size: u64) -> Result<Vec<Range<u64>>, Errno> {
    let mut ranges = Vec::new();
    let mut at = 0;
    while at < size {
        let start = match seek(file, SeekFrom::Data(at)) {
            Err(Errno::NXIO) => break,
            // The file system does not support it.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => at,
            start => start?,
        };
        let end = seek(file, SeekFrom::Hole(start)).unwrap_or(size).min(size);
        ranges.push(start..end);
        at = end.max(start + 1);
    }
    Ok(ranges)
}

impl Builder<'_> {
    /// Returns the error for a name that exists: all names in a bundle differ, so the file system folds them.
    fn folded(&self, path: &[u8]) -> Error {
        Error::FoldedName { path: self.stage.path_of(path) }
    }

    /// Returns the error for a name that the file system does not allow.
    fn unnameable(&self, path: &[u8]) -> Error {
        let (path, system) = (self.stage.path_of(path), kind_of(self.stage.root()).to_owned());
        Error::Unstorable { path, what: "such a name".to_owned(), system }
    }

    pub(super) fn path(&self, place: PlannedName) -> Vec<u8> {
        self.bundle.index.path(place.directory, place.entry)
    }

    pub(super) fn failed(&self, doing: &'static str, place: PlannedName) -> impl Fn(Errno) -> Error {
        move |error| Error::io(doing, self.stage.path_of(&self.path(place)), error)
    }

    /// Returns the error for metadata that was not set.
    pub(super) fn unset(&self, place: PlannedName) -> impl Fn(Unset) -> Error {
        move |unset| {
            let path = self.stage.path_of(&self.path(place));
            unset.into_error(&path, self.stage.root(), self.failed("set the metadata of", place))
        }
    }

    fn name(&self, entry: Row<Entry>) -> &[u8] {
        self.bundle.index.name(self.bundle.index.entry(entry))
    }

    /// Creates the directories of a stage that becomes the target; no other user can access them until they are complete.
    pub(super) fn make_directories(&self, hand: &mut Walk) -> Result<(), Error> {
        if self.stage.layout() == StageKind::Files {
            return Ok(());
        }
        for &number in &self.selection.directories {
            let directory = self.bundle.index.directory(number);
            let Some(parent) = directory.parent else { continue };
            let made = hand.go(&self.bundle.index, self.stage.root(), parent);
            match made.and_then(|parent| mkdirat(parent, self.name(directory.entry), Mode::RWXU)) {
                // Left by an interrupted run.
                Err(Errno::EXIST) if self.stage.is_resumed() => {}
                Err(Errno::EXIST) => return Err(self.folded(&self.bundle.index.directory_path(number))),
                Err(Errno::INVAL | Errno::ILSEQ | Errno::NAMETOOLONG) => {
                    return Err(self.unnameable(&self.bundle.index.directory_path(number)));
                }
                made => made.map_err(self.failed_directory("create", number))?,
            }
        }
        Ok(())
    }

    /// Creates the first file of each large object, at full length and without data.
    pub(super) fn make_large(&self, hand: &mut Walk) -> Result<(), Error> {
        let layout = &self.bundle.layout;
        for large in layout.large.iter().filter(|large| layout.is_stored(large.object)) {
            let Some(&place) = self.selection.places_of(large.object).first() else { continue };
            // An interrupted run may have written some of its pieces.
            let file = if self.stage.is_resumed() {
                self.open_new(hand, place, OFlags::empty())?
            } else {
                self.create(hand, place)?
            };
            ftruncate(&file, self.bundle.index.object(large.object).size).map_err(self.failed("write", place))?;
        }
        Ok(())
    }

    /// Creates the files of an object, or writes a piece into the first file of a large one.
    pub(super) fn take(&self, hand: &mut Walk, content: &Content<'_>) -> Result<(), Error> {
        let Some((&first, duplicates)) = self.selection.places_of(content.portion.object).split_first() else {
            return Ok(());
        };
        if content.portion.piece.is_some() {
            let file = self.open(hand, first, OFlags::RDWR, Mode::empty())?.map_err(self.failed("write", first))?;
            return write_content(&file, content).map_err(self.failed("write", first));
        }
        let file = self.create(hand, first)?;
        write_content(&file, content).map_err(self.failed("write", first))?;
        self.finish_file(&file, first)?;
        let mut linked = first;
        for &place in duplicates {
            match self.link_duplicate(hand, linked, place)? {
                Duplicate::Linked => continue,
                Duplicate::Full => linked = place,
                Duplicate::Other => {}
            }
            let copy = self.create(hand, place)?;
            if !(self.reflinks && !content.data.is_empty() && self.clone_file(&file, &copy, first)?) {
                write_content(&copy, content).map_err(self.failed("write", place))?;
            }
            self.finish_file(&copy, place)?;
        }
        Ok(())
    }

    /// Creates the other files of a large object once its first file has all pieces.
    pub(super) fn finish_large(&self, hand: &mut Walk, object: Row<Object>) -> Result<(), Error> {
        let Some((&first, duplicates)) = self.selection.places_of(object).split_first() else { return Ok(()) };
        let file = self.open(hand, first, OFlags::RDWR, Mode::empty())?.map_err(self.failed("write", first))?;
        self.copy_file(hand, &file, first, duplicates)?;
        self.finish_file(&file, first)
    }

    /// Creates the files at `places` from the complete one at `first`.
    pub(super) fn copy_file(
        &self,
        hand: &mut Walk,
        file: &OwnedFd,
        first: PlannedName,
        places: &[PlannedName],
    ) -> Result<(), Error> {
        let mut linked = first;
        for &place in places {
            match self.link_duplicate(hand, linked, place)? {
                Duplicate::Linked => continue,
                Duplicate::Full => linked = place,
                Duplicate::Other => {}
            }
            let copy = self.create(hand, place)?;
            self.copy_content(file, &copy, place)?;
            self.finish_file(&copy, place)?;
        }
        Ok(())
    }

    /// Gives `copy` the content of `file`, sharing blocks if the file system can.
    pub(super) fn copy_content(&self, file: &OwnedFd, copy: &OwnedFd, place: PlannedName) -> Result<(), Error> {
        let (size, holes) = (self.bundle.index.object(place.object).size, self.bundle.layout.holes_of(place.object));
        let shares = self.reflinks && data_len(holes, 0..size) > 0 && self.clone_file(file, copy, place)?;
        if shares { Ok(()) } else { self.copy_data(file, copy, place) }
    }

    fn copy_data(&self, from: &OwnedFd, to: &OwnedFd, place: PlannedName) -> Result<(), Error> {
        let failed = self.failed("write", place);
        let size = self.bundle.index.object(place.object).size;
        ftruncate(to, size).map_err(&failed)?;
        let ranges: Vec<Range<u64>> = match self.bundle.layout.is_stored(place.object) {
            true => data_ranges(self.bundle.layout.holes_of(place.object), 0..size).collect(),
            false => data_of(from, size).map_err(&failed)?,
        };
        for range in ranges {
            let (mut at, mut offset) = (range.start, range.start);
            while at < range.end {
                self.progress.check()?;
                let len = num::size((range.end - at).min(64 << 20));
                // Both offsets advance.
                if copy_file_range(from, Some(&mut at), to, Some(&mut offset), len).map_err(&failed)? == 0 {
                    return Err(failed(Errno::IO));
                }
            }
        }
        self.keep_holes(to, place);
        Ok(())
    }

    /// Frees the space of a premade file where nothing was written. The holes of a content that the bundle does not bring are not known beforehand.
    pub(super) fn keep_holes(&self, file: &OwnedFd, place: PlannedName) {
        if !self.premade.contains(&place.entry) || self.bundle.layout.is_stored(place.object) {
            return;
        }
        let size = self.bundle.index.object(place.object).size;
        let (mut at, Ok(data)) = (0, data_of(file, size)) else { return };
        for data in data.into_iter().chain(std::iter::once(size..size)) {
            let len = data.start - at;
            if len > 0 {
                let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                // If this fails, the file merely takes more space.
                let _ = fallocate(file, hole, at, len);
            }
            at = data.end;
        }
    }

    fn clone_file(&self, from: &OwnedFd, to: &OwnedFd, place: PlannedName) -> Result<bool, Error> {
        let cloned = ioctl_ficlone(to, from).is_ok();
        if cloned {
            let size = self.bundle.index.object(place.object).size;
            self.duplicate_bytes.fetch_add(size, Ordering::Relaxed);
        }
        Ok(cloned)
    }

    /// Turns a duplicate into a hard link if requested and if all of its metadata is equal.
    fn link_duplicate(&self, hand: &mut Walk, first: PlannedName, place: PlannedName) -> Result<Duplicate, Error> {
        let inode = |place: PlannedName| self.bundle.index.inode(self.bundle.index.entry(place.entry).inode);
        let (a, b) = (inode(first), inode(place));
        let equal = (a.attributes, a.mtime, a.mtime_ns) == (b.attributes, b.mtime, b.mtime_ns);
        if !self.options.tree.hardlink_duplicates || !equal {
            return Ok(Duplicate::Other);
        }
        let ((from, old), mut walk) = (self.spot(hand, first)?, Walk::default());
        let (to, new) = self.spot(&mut walk, place)?;
        // A further name changes the file's stat.
        self.forget(first);
        match linkat(from, &*old, to, &*new, AtFlags::empty()) {
            Err(Errno::MLINK) => return Ok(Duplicate::Full),
            linked => linked.map_err(self.failed("link", place))?,
        }
        let size = self.bundle.index.object(place.object).size;
        self.duplicate_bytes.fetch_add(size, Ordering::Relaxed);
        self.progress.add(0, 1);
        Ok(Duplicate::Linked)
    }

    pub(super) fn create(&self, hand: &mut Walk, place: PlannedName) -> Result<OwnedFd, Error> {
        let is_there = self.premade.contains(&place.entry);
        self.open_new(hand, place, if is_there { OFlags::empty() } else { OFlags::EXCL })
    }

    fn open_new(&self, hand: &mut Walk, place: PlannedName, flags: OFlags) -> Result<OwnedFd, Error> {
        let flags = flags | OFlags::RDWR | OFlags::CREATE;
        let inode = self.bundle.index.inode(self.bundle.index.entry(place.entry).inode);
        let mode = self.privilege.creation_mode(self.bundle.index.attributes(inode));
        match self.open(hand, place, flags, mode)? {
            Err(Errno::EXIST) => Err(self.folded(&self.path(place))),
            Err(Errno::INVAL | Errno::ILSEQ | Errno::NAMETOOLONG) => Err(self.unnameable(&self.path(place))),
            opened => opened.map_err(self.failed("create", place)),
        }
    }

    /// Finishes a file left by an interrupted run, unless that run has done so. Its time, which is set last of all, shows that.
    pub(super) fn finish_again(&self, file: &OwnedFd, place: PlannedName) -> Result<(), Error> {
        let (inode, attributes) = self.inode_of(place);
        let stat = fstat(file).map_err(self.failed("look at", place))?;
        if !self.privilege.has_all(&stat, attributes, inode) || self.options.tree.durability == Durability::Each {
            return self.finish_file(file, place);
        }
        self.note(place.entry, file.as_fd());
        self.privilege.count_owner(attributes);
        self.progress.add(0, 1);
        Ok(())
    }

    pub(super) fn inode_of(&self, place: PlannedName) -> (&Inode, &Attributes) {
        let inode = self.bundle.index.inode(self.bundle.index.entry(place.entry).inode);
        (inode, self.bundle.index.attributes(inode))
    }

    pub(super) fn finish_file(&self, file: &OwnedFd, place: PlannedName) -> Result<(), Error> {
        let (inode, attributes) = self.inode_of(place);
        self.privilege.count_owner(attributes);
        let made = self.privilege.creation_mode(attributes);
        let applied = self.privilege.apply(file.as_fd(), attributes, inode, Some(made));
        applied.map_err(self.unset(place))?;
        if self.options.tree.durability == Durability::Each {
            fsync(file).map_err(self.failed("sync", place))?;
        }
        self.note(place.entry, file.as_fd());
        self.progress.add(0, 1);
        Ok(())
    }

    /// Notes the stat of what is complete. Files of an update are yet to be moved, which changes it.
    fn note(&self, entry: Row<Entry>, file: BorrowedFd<'_>) {
        if self.stage.layout() == StageKind::Tree {
            self.finished.note(entry, file);
        }
    }

    /// Forgets the stat of a file that is about to be changed.
    pub(super) fn forget(&self, place: PlannedName) {
        self.finished.forget(place.entry);
    }

    /// Opens a file of the stage, or creates it.
    pub(super) fn open(
        &self,
        hand: &mut Walk,
        place: PlannedName,
        flags: OFlags,
        mode: Mode,
    ) -> Result<Result<OwnedFd, Errno>, Error> {
        let (directory, name) = self.spot(hand, place)?;
        Ok(open_name(directory, &name, flags, mode))
    }

    /// Removes a file from the stage if it exists.
    pub(super) fn remove(&self, hand: &mut Walk, place: PlannedName) -> Result<(), Error> {
        let (directory, name) = self.spot(hand, place)?;
        match unlinkat(directory, &*name, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            removed => removed.map_err(self.failed("remove", place)),
        }
    }

    /// Returns the directory of the stage that holds a file, and its name there.
    pub(super) fn spot<'h>(
        &'h self,
        hand: &'h mut Walk,
        place: PlannedName,
    ) -> Result<(BorrowedFd<'h>, Cow<'h, [u8]>), Error> {
        match self.stage.layout() {
            StageKind::Files => Ok((self.stage.root(), TreeStage::file_name(place.entry).into())),
            StageKind::Tree => {
                let walked = hand.go(&self.bundle.index, self.stage.root(), place.directory);
                let directory = walked.map_err(self.failed_directory("open", place.directory))?;
                Ok((directory, self.name(place.entry).into()))
            }
        }
    }

    pub(super) fn failed_directory(&self, doing: &'static str, directory: Row<Directory>) -> impl Fn(Errno) -> Error {
        move |error| Error::io(doing, self.stage.path_of(&self.bundle.index.directory_path(directory)), error)
    }

    /// Creates a symbolic link, device, fifo or socket.
    pub(super) fn make_other(&self, hand: &mut Walk, place: PlannedName) -> Result<(), Error> {
        let index = &self.bundle.index;
        let inode = index.inode(index.entry(place.entry).inode);
        let attributes = index.attributes(inode);
        let failed = self.failed("create", place);
        let is_device = matches!(inode.kind, InodeKind::CharDevice(_) | InodeKind::BlockDevice(_));
        if is_device && !self.privilege.makes_devices() {
            self.privilege.skipped().devices.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        let (directory, name) = self.spot(hand, place)?;
        let name = &*name;
        let device = |number| -> Result<Dev, Error> {
            let device = index.device(number);
            if device.fits_linux() { Ok(makedev(device.major, device.minor)) } else { Err(failed(Errno::INVAL)) }
        };
        let (kind, device) = match inode.kind {
            InodeKind::Symlink(target) => {
                symlinkat(index.symlink_target(target), directory, name).map_err(&failed)?;
                (None, 0)
            }
            InodeKind::CharDevice(number) => (Some(UnixType::CharacterDevice), device(number)?),
            InodeKind::BlockDevice(number) => (Some(UnixType::BlockDevice), device(number)?),
            InodeKind::Fifo => (Some(UnixType::Fifo), 0),
            InodeKind::Socket => (Some(UnixType::Socket), 0),
            InodeKind::Directory(_) | InodeKind::Regular(_) => return Ok(()),
        };
        if let Some(kind) = kind {
            mknodat(directory, name, kind, PRIVATE, device).map_err(&failed)?;
        }
        self.privilege.count_owner(attributes);
        self.privilege.apply_at(directory, name, attributes, inode).map_err(self.unset(place))?;
        if attributes.file_type() != FileType::Symlink
            && let Some(mode) = self.privilege.mode(attributes)
        {
            // The mode is set after the owner, since changing the owner clears set-id bits; the time comes last.
            chmodat(directory, name, mode, AtFlags::empty()).map_err(&failed)?;
        }
        for xattr in self.privilege.counted(attributes) {
            let set = xattrs::set_link(directory, name, xattr);
            set.map_err(Unset::xattr(xattr, &attributes.xattrs)).map_err(self.unset(place))?;
        }
        self.progress.add(0, 1);
        Ok(())
    }

    /// Creates a hard link. The file that it names exists, unless it is a device that was left out.
    pub(super) fn link(&self, from: &mut Walk, to: &mut Walk, link: &Link) -> Result<(), Error> {
        let place = PlannedName { object: Row::FIRST, entry: link.entry, directory: link.directory };
        let ((from, old), (to, new)) = (self.spot(from, link.from)?, self.spot(to, place)?);
        // A further name changes the file's stat.
        self.forget(link.from);
        match linkat(from, &*old, to, &*new, AtFlags::empty()) {
            Err(Errno::NOENT) if !self.privilege.makes_devices() => Ok(()),
            Err(Errno::MLINK) => Err(Error::Unstorable {
                path: self.stage.path_of(&self.path(place)),
                what: "so many names of one file".to_owned(),
                system: kind_of(self.stage.root()).to_owned(),
            }),
            other => other.map_err(self.failed("link", place)),
        }
    }

    /// Sets the metadata of the directories of a stage that becomes the target, from the deepest up: a parent may end up read-only. Each is opened
    /// from its parent, whose mode is still the initial one.
    pub(super) fn finish_directories(&self, hand: &mut Walk) -> Result<(), Error> {
        if self.stage.layout() == StageKind::Files {
            return Ok(());
        }
        for &number in self.selection.directories.iter().rev() {
            let failed = self.failed_directory("set the metadata of", number);
            let row = self.bundle.index.directory(number);
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let opened = match row.parent {
                None => open_within(self.stage.root(), b".", flags, Mode::empty()),
                Some(parent) => hand
                    .go(&self.bundle.index, self.stage.root(), parent)
                    .and_then(|parent| open_within(parent, self.name(row.entry), flags, Mode::empty())),
            };
            let directory = opened.map_err(&failed)?;
            let inode = self.bundle.index.inode(row.inode);
            let attributes = self.bundle.index.attributes(inode);
            self.privilege.count_owner(attributes);
            self.privilege.apply(directory.as_fd(), attributes, inode, Some(Mode::RWXU)).map_err(|unset| {
                let path = self.stage.path_of(&self.bundle.index.directory_path(number));
                unset.into_error(&path, self.stage.root(), &failed)
            })?;
            if row.parent.is_some() {
                self.note(row.entry, directory.as_fd());
            }
        }
        Ok(())
    }
}

/// Returns whether the file system under `root` can share blocks, by trying it on two unnamed files.
pub(super) fn has_reflinks(root: BorrowedFd<'_>) -> bool {
    let unnamed = || openat(root, ".", OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC, PRIVATE);
    let Ok((a, b)) = unnamed().and_then(|a| unnamed().map(|b| (a, b))) else { return false };
    let _ = fallocate(&a, FallocateFlags::empty(), 0, 4096);
    let shares = ioctl_ficlone(&b, &a).is_ok();
    tracing::debug!(shares, "tested whether the file system shares blocks between files");
    shares
}
