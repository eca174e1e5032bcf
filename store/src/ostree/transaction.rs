//! Writes into a repository: objects wait in a stage until all are there, and are moved to their places before anything names them.
//!
//! The order is libostree's. Marks that the commits are partial, and all staged objects, are flushed (syncfs); then every object but the commits
//! gets its name, and the names are flushed; then the commits, and the marks are removed; then the refs. If the run is killed at any point, the
//! repository has what it had, and perhaps objects that nothing names, or a commit that is marked as partial.

use std::collections::HashSet;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};

use rustix::fs::{
    AtFlags, Mode as Permissions, OFlags, Timespec, Timestamps, UTIME_NOW, fdatasync, fsync, renameat, syncfs,
    unlinkat, utimensat,
};
use rustix::io::Errno;
use sealift_format::hex;
use sealift_format::num;
use sealift_format::ostree::{Checksum, METADATA_LEN_MAX};
use sha2::{Digest as _, Sha256};

use super::deflate::Deflate;
use super::folders::Folders;
use super::lock::{LockKind, wait_lock};
use super::object::{ObjectType, object_name, prefix, rest};
use super::refs::RefName;
use super::repo::{Repo, partial_mark};
use super::room::Room;
use super::stage::{LeftStages, ObjectStage};
use crate::Error;
use crate::error::RepoFault;
use crate::fs::confined::{names_in, open_beneath, open_name, open_within, remove_tree};
use crate::fs::own_store::{FOLDER_MODE, make_folder};
use crate::fs::rename::{moves_no_directory, rename_new};
use crate::fs::unnamed::unnamed_in;
use crate::threads::parallel::for_each;

/// Pending changes to a repository. Several threads may write objects; nothing is in its place before [`Self::finish`], and a dropped transaction
/// leaves nothing, unless its stage is kept.
#[derive(Debug)]
pub(crate) struct Transaction<'a> {
    pub(crate) repo: &'a Repo,
    pub(crate) stage: ObjectStage,
    /// What killed or failed runs left. It is removed when the transaction ends well.
    pub(super) left: Mutex<LeftStages>,
    pub(crate) deflate: Deflate,
    room: Room,
    folders: Folders,
    list: Mutex<List>,
    /// Whether there are file objects in the stage.
    has_files: AtomicBool,
    /// Existing objects that do not match their names: they count as missing, and are replaced.
    damaged: HashSet<Object>,
    /// Excludes a prune. The last field, so that it is released last.
    _lock: Option<OwnedFd>,
}

#[derive(Debug, Default)]
struct List {
    /// Objects in the stage.
    staged: HashSet<Object>,
    commits: Vec<Checksum>,
    refs: Vec<(RefName, Checksum)>,
}

pub(crate) type Object = (Checksum, ObjectType);

/// Files that mark commits as partial.
#[derive(Debug, Default)]
struct Marks {
    /// Those that this transaction created.
    new: Vec<String>,
    /// All of its commits that are marked, including by earlier runs.
    partial: Vec<String>,
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

impl<'a> Transaction<'a> {
    /// Begins a transaction; nothing is removed from the repository meanwhile.
    ///
    /// # Errors
    /// Returns an error if another program has it locked exclusively, or if it cannot be written to.
    pub(crate) fn begin(repo: &'a Repo) -> Result<Self, Error> {
        let failed = |error: Errno| Error::io("write to", repo.path(), error);
        let lock = if repo.config().locking { Some(take_lock(repo)?) } else { None };
        let tmp = make_directory(repo, "tmp").map_err(failed)?;
        let room = Room::of(repo.root(), repo.config().min_free).map_err(failed)?;
        let left = LeftStages::find(tmp.as_fd()).map_err(failed)?;
        let stage = ObjectStage::create(tmp).map_err(failed)?;
        let folders = Folders::of(repo.objects(), stage.directory()).map_err(failed)?;
        Ok(Self {
            repo,
            stage,
            left: Mutex::new(left),
            deflate: Deflate::new(repo.config().zlib_level),
            room,
            folders,
            list: Mutex::default(),
            has_files: AtomicBool::new(false),
            damaged: HashSet::new(),
            _lock: lock,
        })
    }

    /// Treats these objects as missing from now on, so that new ones replace them.
    pub(crate) fn replace(&mut self, damaged: HashSet<Object>) {
        self.damaged = damaged;
    }

    /// Leaves the stage to the next run, if it has file objects.
    pub(crate) fn keep(&mut self) {
        if self.has_files.load(Ordering::Relaxed) {
            self.stage.keep();
        }
    }

    /// Returns whether the repository has the object.
    pub(crate) fn has(&self, kind: ObjectType, checksum: &Checksum) -> Result<bool, Error> {
        let is_sound = !self.damaged.contains(&(*checksum, kind));
        Ok(is_sound && self.folders.has(checksum[0]) && self.repo.has(kind, checksum)?)
    }

    /// Writes a dirtree or dirmeta unless it exists. Returns whether it is new.
    ///
    /// # Errors
    /// Returns an error if it has another checksum or cannot be written.
    pub(crate) fn write_metadata(&self, kind: ObjectType, checksum: &Checksum, bytes: &[u8]) -> Result<bool, Error> {
        if Sha256::digest(bytes)[..] != checksum[..] {
            return Err(self.repo.fault(RepoFault::Mismatch { object: object_name(kind, checksum) }));
        }
        if self.has(kind, checksum)? {
            return Ok(false);
        }
        self.stage_metadata(kind, checksum, bytes)
    }

    /// Writes a commit unless it exists. Returns whether it is new. When the transaction ends, it counts as complete: everything that it names must
    /// be in the repository or in this transaction.
    ///
    /// # Errors
    /// Returns an error if it has another checksum or cannot be written.
    pub(crate) fn write_commit(&self, checksum: &Checksum, bytes: &[u8]) -> Result<bool, Error> {
        let is_new = self.write_metadata(ObjectType::Commit, checksum, bytes)?;
        let mut list = self.list();
        if !list.commits.contains(checksum) {
            list.commits.push(*checksum);
        }
        Ok(is_new)
    }

    /// Writes the detached metadata of a commit, replacing the old one. Returns whether it changed.
    ///
    /// # Errors
    /// Returns an error if it is too long or cannot be written.
    pub(crate) fn write_commitmeta(&self, commit: &Checksum, bytes: &[u8]) -> Result<bool, Error> {
        if self.repo.load_commitmeta(commit)?.is_some_and(|there| there == bytes) {
            return Ok(false);
        }
        self.stage_metadata(ObjectType::CommitMeta, commit, bytes)
    }

    fn stage_metadata(&self, kind: ObjectType, checksum: &Checksum, bytes: &[u8]) -> Result<bool, Error> {
        let len = num::wide(bytes.len());
        if len > METADATA_LEN_MAX {
            return Err(self.repo.fault(RepoFault::TooLong { object: object_name(kind, checksum), len }));
        }
        self.take_room(len)?;
        self.stage_object(kind, checksum, |name| {
            let (mut file, made) = self.create(kind, checksum, name, 0o644)?;
            let failed = |error| Error::io("write", self.repo.object_path(kind, checksum), error);
            file.write_all(bytes).map_err(failed)?;
            if made != 0o644 {
                rustix::fs::fchmod(&file, Permissions::from_raw_mode(0o644)).map_err(|error| failed(error.into()))?;
            }
            Ok(())
        })
    }

    /// Points a ref to a commit when the transaction ends.
    pub(crate) fn set_ref(&self, name: RefName, commit: Checksum) {
        self.list().refs.push((name, commit));
    }

    /// Has `make` write an object into the stage, at the path that it receives. Returns whether it did: another thread may have been first. A
    /// failure leaves nothing.
    pub(crate) fn stage_object(
        &self,
        kind: ObjectType,
        checksum: &Checksum,
        make: impl FnOnce(&str) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        let failed = |error: Errno| Error::io("create", self.repo.object_path(kind, checksum), error);
        let folder = match kind {
            // These are moved after all others.
            ObjectType::Commit | ObjectType::CommitMeta => None,
            _ => self.folders.wait_in(self.stage.directory(), checksum[0]).map_err(failed)?,
        };
        if !self.list().staged.insert((*checksum, kind)) {
            return Ok(false);
        }
        let name = self.staged_name(kind, checksum, folder);
        make(&name).inspect_err(|_| {
            // If this fails, the file is removed with the stage, and is never moved into place.
            let _ = unlinkat(self.stage.directory(), &*name, AtFlags::empty());
            self.list().staged.remove(&(*checksum, kind));
        })?;
        if kind == ObjectType::File {
            self.has_files.store(true, Ordering::Relaxed);
        }
        Ok(true)
    }

    /// Returns the objects in the stage.
    pub(crate) fn staged(&self) -> Vec<Object> {
        let mut staged: Vec<Object> = self.list().staged.iter().copied().collect();
        staged.sort_unstable();
        staged
    }

    /// Returns the path of an object in the stage.
    pub(crate) fn name_in_stage(&self, kind: ObjectType, checksum: &Checksum) -> String {
        let folder = self.folders.folder_of(checksum[0]);
        self.staged_name(kind, checksum, folder.filter(|_| !self.is_alone(&(*checksum, kind))))
    }

    /// Returns the path of an object in the stage. If libostree finds the stage of a killed run, it treats nothing in it as an object.
    fn staged_name(&self, kind: ObjectType, checksum: &Checksum, folder: Option<String>) -> String {
        let rest = rest(kind, checksum, self.repo.config().mode);
        match folder {
            Some(folder) => format!("{folder}/{rest}"),
            None => format!("{}{rest}", prefix(checksum)),
        }
    }

    /// Creates a file in the stage, with these permissions if the umask allows them, else for its owner alone. Returns the actual ones.
    pub(crate) fn create(
        &self,
        kind: ObjectType,
        checksum: &Checksum,
        name: &str,
        bits: u16,
    ) -> Result<(File, u16), Error> {
        let is_kept = bits & self.stage.made().masked == 0 && bits & 0o600 == 0o600 && bits & !0o777 == 0;
        let bits = if is_kept { bits } else { 0o600 };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let mode = Permissions::from_raw_mode(bits.into());
        match open_name(self.stage.directory(), name.as_bytes(), flags, mode) {
            Ok(file) => Ok((File::from(file), bits & !self.stage.made().masked)),
            Err(error) => Err(Error::io("create", self.repo.object_path(kind, checksum), error)),
        }
    }

    /// Checks that there is space for that many bytes, and that many files, in addition to what has been written.
    ///
    /// # Errors
    /// Returns an error if there is not.
    pub(crate) fn check_room(&self, len: u64, files: u64) -> Result<(), Error> {
        let path = || self.repo.path().to_owned();
        self.room.check_inodes(files).map_err(|free| Error::NoInodes { path: path(), needed: files, free })?;
        self.room.check(len).map_err(|free| self.no_space(len, free))
    }

    /// Measures the space again, after something was removed.
    pub(super) fn measure_room(&self) -> Result<(), Error> {
        let measured = self.room.measure(self.repo.root());
        measured.map_err(|error| Error::io("write to", self.repo.path(), error))
    }

    /// Creates a file without a name, on the repository's file system.
    pub(crate) fn unnamed_file(&self) -> Result<File, Error> {
        unnamed_in(self.stage.directory()).map_err(|error| Error::io("write to", self.repo.path(), error))
    }

    /// Returns the error for a failed write to such a file.
    pub(crate) fn unwritten(&self, error: std::io::Error) -> Error {
        Error::io("write to", self.repo.path(), error)
    }

    /// Reserves space for a file before it is written.
    pub(crate) fn take_room(&self, len: u64) -> Result<(), Error> {
        self.room.take(len).map_err(|free| self.no_space(len, free))
    }

    fn no_space(&self, needed: u64, free: u64) -> Error {
        Error::NoSpace { path: self.repo.path().to_owned(), needed, free, reserved: self.room.reserved() }
    }

    fn list(&self) -> MutexGuard<'_, List> {
        self.list.lock()
    }

    /// Moves everything that was written to its place, on `jobs` threads. `ready` is called when all of it is durable and nothing has its name yet;
    /// if it fails, the repository is unchanged. Returns the number of new objects.
    ///
    /// # Errors
    /// Returns the error of `ready`, or an error if the repository cannot be written to; its state is then as after a kill.
    pub(crate) fn finish(&self, jobs: usize, ready: impl FnOnce() -> Result<(), Error>) -> Result<u64, Error> {
        let list = std::mem::take(&mut *self.list());
        let Marks { new, partial } = self.mark_partial(&list)?;
        let mut alone: Vec<Object> = list.staged.iter().copied().filter(|object| self.is_alone(object)).collect();
        alone.sort_unstable();
        let (commits, others): (Vec<_>, Vec<_>) = alone.into_iter().partition(|(_, kind)| *kind == ObjectType::Commit);
        // This also covers existing objects, which may be from a run that was killed before they were durable.
        if !(list.staged.is_empty() && list.commits.is_empty() && list.refs.is_empty()) {
            self.sync()?;
        }
        ready().inspect_err(|_| {
            // A mark that stays does no harm: its commit does not exist.
            let _ = self.remove_marks(&new);
        })?;
        self.folders.staged().try_for_each(|(folder, name)| self.place_folder(&folder, &name))?;
        for_each(jobs, &by_directory(&others), |objects| self.place(objects, false))?;
        if !commits.is_empty() {
            self.sync()?;
        }
        by_directory(&commits).into_iter().try_for_each(|objects| self.place(objects, self.repo.config().fsync))?;
        self.remove_marks(&partial)?;
        let mut moved = false;
        for (name, commit) in &list.refs {
            if self.repo.read_ref(name)? != Some(*commit) {
                self.write_ref(name, commit)?;
                moved = true;
            }
        }
        if moved {
            // Programs that cache refs check whether this has changed.
            let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
            let times = Timestamps { last_access: now, last_modification: now };
            utimensat(self.repo.root(), ".", &times, AtFlags::empty())
                .map_err(|error| Error::io("write to", self.repo.path(), error))?;
        }
        // What cannot be removed stays for the next run.
        let _ = std::mem::take(&mut *self.left.lock()).remove();
        Ok(num::wide(list.staged.len()))
    }

    /// Waits until everything is durable, if the repository requires that.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        if !self.repo.config().fsync {
            return Ok(());
        }
        syncfs(self.repo.objects()).map_err(|error| Error::io("sync", self.repo.path(), error))
    }

    /// Marks each new commit as partial.
    fn mark_partial(&self, list: &List) -> Result<Marks, Error> {
        let mut marks = Marks::default();
        if list.commits.is_empty() {
            return Ok(marks);
        }
        let failed = |error: Errno| Error::io("write to", self.repo.path().join("state"), error);
        let state = make_directory(self.repo, "state").map_err(failed)?;
        for commit in &list.commits {
            let mark = partial_mark(commit);
            if list.staged.contains(&(*commit, ObjectType::Commit)) {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
                match open_name(state.as_fd(), mark.as_bytes(), flags, Permissions::from_raw_mode(0o644)) {
                    Ok(_) => marks.new.push(mark.clone()),
                    Err(Errno::EXIST) => {}
                    Err(error) => return Err(failed(error)),
                }
            } else if !self.repo.is_partial(commit)? {
                continue;
            }
            marks.partial.push(mark);
        }
        Ok(marks)
    }

    /// Removes marks durably: from here on commits are complete, even after a power loss.
    fn remove_marks(&self, marks: &[String]) -> Result<(), Error> {
        if marks.is_empty() {
            return Ok(());
        }
        let failed = |error: Errno| Error::io("write to", self.repo.path().join("state"), error);
        let state = make_directory(self.repo, "state").map_err(failed)?;
        for mark in marks {
            match unlinkat(&state, &**mark, AtFlags::empty()) {
                // Another run has completed the same commit.
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(Error::io("remove", self.repo.path().join("state").join(mark), error)),
            }
        }
        if self.repo.config().fsync { fsync(state).map_err(failed) } else { Ok(()) }
    }

    /// Returns whether an object waits in the stage itself, not in a directory for its first byte.
    fn is_alone(&self, (checksum, kind): &Object) -> bool {
        matches!(kind, ObjectType::Commit | ObjectType::CommitMeta) || self.folders.folder_of(checksum[0]).is_none()
    }

    /// Moves a directory of the stage to its place, or its contents if that directory exists by now.
    fn place_folder(&self, folder: &str, name: &str) -> Result<(), Error> {
        let failed = |error: Errno| Error::io("create", self.repo.path().join("objects").join(name), error);
        let (stage, objects) = (self.stage.directory(), self.repo.objects());
        match rename_new(stage, folder, objects, name) {
            Ok(()) => return Ok(()),
            Err(Errno::EXIST | Errno::NOTEMPTY) => {}
            Err(error) if moves_no_directory(error) => open_folder(self.repo, name).map(drop).map_err(failed)?,
            Err(error) => return Err(failed(error)),
        }
        let open = |at, name: &str| open_name(at, name.as_bytes(), DIRECTORY, Permissions::empty()).map_err(failed);
        let (from, to) = (open(stage, folder)?, open(objects, name)?);
        for (object, _) in names_in(from.as_fd()).map_err(failed)? {
            place_new(from.as_fd(), &object, to.as_fd(), &object).map_err(failed)?;
        }
        Ok(())
    }

    /// Gives objects their names, which are all in one directory.
    fn place(&self, objects: &[Object], sync_each: bool) -> Result<(), Error> {
        let Some((first, kind)) = objects.first() else { return Ok(()) };
        let unopened = |error: Errno| Error::io("create", self.repo.object_path(*kind, first), error);
        let directory = open_prefix(self.repo, first).map_err(unopened)?;
        for (checksum, kind) in objects {
            let failed = |error: Errno| Error::io("create", self.repo.object_path(*kind, checksum), error);
            let (from, to) = (self.staged_name(*kind, checksum, None), rest(*kind, checksum, self.repo.config().mode));
            if *kind == ObjectType::CommitMeta || self.damaged.contains(&(*checksum, *kind)) {
                place_over(self.stage.directory(), &from, directory.as_fd(), &to).map_err(failed)?;
            } else {
                place_new(self.stage.directory(), from.as_bytes(), directory.as_fd(), to.as_bytes()).map_err(failed)?;
            }
            if sync_each {
                fsync(&directory).and_then(|()| fsync(self.repo.objects())).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Writes the file of a ref under a temporary name, and renames it over the existing one.
    fn write_ref(&self, name: &RefName, commit: &Checksum) -> Result<(), Error> {
        let path = name.path();
        let failed = |error: Errno| Error::io("write", self.repo.path().join(&path), error);
        let (folder, file_name) = path.rsplit_once('/').unwrap_or(("", &path));
        let directory = make_directory(self.repo, folder).map_err(failed)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let mode = Permissions::from_raw_mode(0o644);
        let file = open_name(self.stage.directory(), b"ref", flags, mode).map_err(failed)?;
        let mut file = File::from(file);
        let text = format!("{}\n", hex(commit));
        file.write_all(text.as_bytes()).map_err(|error| Error::io("write", self.repo.path().join(&path), error))?;
        rustix::fs::fchmod(&file, mode).map_err(failed)?;
        if self.repo.config().fsync {
            fdatasync(&file).map_err(failed)?;
        }
        renameat(self.stage.directory(), "ref", &directory, file_name).map_err(failed)?;
        if self.repo.config().fsync { fsync(&directory).map_err(failed) } else { Ok(()) }
    }
}

/// Groups objects, which are sorted by checksum, by directory.
fn by_directory(objects: &[Object]) -> Vec<&[Object]> {
    objects.chunk_by(|(a, _), (b, _)| a[0] == b[0]).collect()
}

/// Excludes a prune as long as the returned descriptor is open.
pub(crate) fn take_lock(repo: &Repo) -> Result<OwnedFd, Error> {
    let failed = |error: Errno| Error::io("lock", repo.path(), error);
    let flags = OFlags::RDWR | OFlags::CREATE;
    let lock = open_within(repo.root(), b".lock", flags, Permissions::from_raw_mode(0o660)).map_err(failed)?;
    let timeout = repo.config().lock_timeout;
    if wait_lock(&lock, LockKind::Shared, timeout).map_err(failed)? {
        Ok(lock)
    } else {
        Err(repo.fault(RepoFault::Locked { seconds: timeout.unwrap_or_default().as_secs() }))
    }
}

/// Opens a directory of the repository, and creates it with its parents if missing.
pub(crate) fn make_directory(repo: &Repo, path: &str) -> Result<OwnedFd, Errno> {
    let open = || open_beneath(repo.root(), path.as_bytes(), DIRECTORY, Permissions::empty());
    match open() {
        Err(Errno::NOENT) => {}
        opened => return opened,
    }
    let mut at = open_within(repo.root(), b".", DIRECTORY, Permissions::empty())?;
    for name in path.split('/') {
        at = make_folder(at.as_fd(), name, FOLDER_MODE)?;
    }
    Ok(at)
}

fn open_prefix(repo: &Repo, checksum: &Checksum) -> Result<OwnedFd, Errno> {
    open_folder(repo, &prefix(checksum))
}

/// Opens a directory of `objects`, and creates it if missing.
fn open_folder(repo: &Repo, name: &str) -> Result<OwnedFd, Errno> {
    make_folder(repo.objects(), name, FOLDER_MODE)
}

/// Gives a staged object its name, replacing any.
fn place_over(stage: BorrowedFd<'_>, from: &str, directory: BorrowedFd<'_>, to: &str) -> Result<(), Errno> {
    match renameat(stage, from, directory, to) {
        Err(Errno::ISDIR) => {
            remove_tree(directory, to.as_bytes())?;
            renameat(stage, from, directory, to)
        }
        renamed => renamed,
    }
}

/// Gives a staged object its name, unless another program was first: its object is as good.
fn place_new(stage: BorrowedFd<'_>, from: &[u8], directory: BorrowedFd<'_>, to: &[u8]) -> Result<(), Errno> {
    match rename_new(stage, from, directory, to) {
        Err(Errno::EXIST) => Ok(()),
        renamed => renamed,
    }
}
