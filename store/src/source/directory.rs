//! A local directory as a source.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Condvar, Mutex, MutexGuard};
use rustix::fs::{AtFlags, Mode, OFlags, Stat, StatxFlags, fstat, openat, readlinkat, statat, statx};
use rustix::io::{Errno, retry_on_intr};
use sealift_format::name::join;
use sealift_format::num;
use sealift_format::verity::FileDigest;
use sealift_format::walk::TreeOrder;
use sealift_format::{Device, FileType, Index, Ref, Xattr, Xattrs};
use sealift_verify::fsverity::{self, KernelError};

use super::{Exclude, OmitOutput, XattrFilter, content_number};
use crate::Site;
use crate::error::path_of;
use crate::fs::confined::{open_beneath, open_user_dir};
use crate::fs::kind_of;
use crate::fs::mount::{are_apart, look, may_hold_mounts};
use crate::fs::mount_id::mount_id;
use crate::fs::sparse;
use crate::kernel::give_back_memory;
use crate::threads::panic_guard::OnPanic;
use crate::threads::team::team;
use crate::{DirId, Error, Metadata, NewNode, NodeId, Progress, Tree};

/// Options of reading a directory.
#[derive(Clone, Debug, Default)]
pub struct DirectoryOptions {
    /// The extended attributes to pack.
    pub xattrs: XattrFilter,
    /// Leave out other file systems; their mount points become empty directories.
    pub one_file_system: bool,
    /// Files to leave out.
    pub exclude: Option<Exclude>,
    /// The output being packed into, which is left out as well.
    pub omit_output: Option<OmitOutput>,
    /// Leave out, at the root of a mount point, the directory that the file system created there for fsck(8).
    pub omit_lost_and_found: bool,
    /// Do not enter what is mounted inside, nor subvolumes, and list it as [`DirectorySource::mounts`].
    pub leave_mounts: bool,
    /// Receives the files as they are listed; may request a stop.
    pub progress: Option<Arc<Progress>>,
}

/// A directory whose files have been listed but not read.
#[derive(Debug)]
pub struct DirectorySource {
    pub(super) tree: Tree,
    path: PathBuf,
    root: OwnedFd,
    files: Vec<ListedFile>,
    /// The names of the files, one after the other.
    file_names: Vec<u8>,
    xattrs: XattrFilter,
    mounts: Vec<Vec<u8>>,
}

/// A regular file that the user named.
pub(super) struct FoundFile {
    /// The path that the user gave.
    pub(super) path: PathBuf,
    /// The directory that holds it, after links.
    pub(super) directory: (PathBuf, OwnedFd),
    /// Its name there.
    pub(super) real_name: Vec<u8>,
    /// Its name in the tree.
    pub(super) name: Vec<u8>,
    pub(super) stat: Stat,
}

/// A regular file as its directory's listing gave it.
#[derive(Debug)]
struct ListedFile {
    directory: DirId,
    /// Its name, in the bytes of all names.
    name_len: u16,
    name_at: u64,
    size: u64,
    identity: ListedIdentity,
}

/// Tells whether a file is still the one that was listed: a part of the hash of its device, its inode and its times, since a list has millions of
/// files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListedIdentity([u8; 16]);

impl ListedIdentity {
    pub(super) fn of(stat: &Stat) -> Self {
        let mut hasher = blake3::Hasher::new();
        for number in [stat.st_dev, stat.st_ino, stat.st_mtime_nsec, stat.st_ctime_nsec] {
            hasher.update(&number.to_le_bytes());
        }
        for number in [stat.st_mtime, stat.st_ctime] {
            hasher.update(&number.to_le_bytes());
        }
        let mut part = [0; 16];
        hasher.finalize_xof().fill(&mut part);
        Self(part)
    }
}

impl DirectorySource {
    /// Lists a directory with everything below it, on `jobs` threads.
    ///
    /// # Errors
    /// Returns an error that names what cannot be listed.
    pub fn list(path: &Path, options: &DirectoryOptions, jobs: usize) -> Result<Self, Error> {
        let root = open_user_dir(path).map_err(|error| Error::io("read", path, error))?;
        Self::list_open(root, path, options, jobs)
    }

    /// Lists an open directory; `path` is its name, for messages.
    pub fn list_open(root: OwnedFd, path: &Path, options: &DirectoryOptions, jobs: usize) -> Result<Self, Error> {
        let stat = fstat(&root).map_err(|error| Error::io("read", path, error))?;
        let (listings, mounts) = Lister::new(path, options, &root, stat.st_dev).run(&root, jobs)?;
        let mut source = Self {
            tree: Tree::new(metadata_of(&stat, Xattrs::default())),
            path: path.to_owned(),
            root,
            files: Vec::new(),
            file_names: Vec::new(),
            xattrs: options.xattrs.clone(),
            mounts,
        };
        // The listings were made by other threads, whose free memory this one would not use.
        let mut assembled = Ok(());
        give_back_memory(|| assembled = source.assemble(listings));
        assembled?;
        source.tree.sort();
        Ok(source)
    }

    /// Returns the paths at which something is mounted, or which are subvolumes, as far as these were to be left.
    #[must_use]
    pub fn mounts(&self) -> &[Vec<u8>] {
        &self.mounts
    }

    /// Returns a directory that holds one file, which is read in place.
    pub(super) fn of_file(found: FoundFile, xattrs: XattrFilter) -> Result<Self, Error> {
        let FoundFile { path, directory, real_name, name, stat } = found;
        let mut source = Self {
            tree: Tree::new(Metadata { permissions: 0o755, ..metadata_of(&stat, Xattrs::default()) }),
            path: directory.0,
            root: directory.1,
            files: Vec::new(),
            file_names: Vec::new(),
            xattrs,
            mounts: Vec::new(),
        };
        let content = source.push_file(0, &real_name, &stat)?;
        let added = source.tree.add(0, &name, metadata_of(&stat, Xattrs::default()), NewNode::Regular { content });
        added.map_err(|fault| Error::unexpected(path, format!("has a name that {fault}")))?;
        Ok(source)
    }

    /// Puts the listings into the tree, in tree order, which numbers the contents.
    fn assemble(&mut self, mut listings: Vec<Listing>) -> Result<(), Error> {
        let mut linked: HashMap<(u64, u64), NodeId> = HashMap::new();
        let mut order = TreeOrder::new((0, 0, 0));
        while let Some((slot, directory, node)) = order.pop() {
            let Listing { mut entries, xattrs } = std::mem::take(&mut listings[slot]);
            if !xattrs.is_empty() {
                self.tree.set_xattrs(node, xattrs.try_into()?);
            }
            entries.sort_by(|a, b| a.name.cmp(&b.name));
            for entry in entries {
                let name = entry.name.to_bytes();
                let key = (entry.stat.st_dev, entry.stat.st_ino);
                let may_be_linked = entry.stat.st_nlink > 1 && !matches!(entry.found, EntryKind::Directory(_));
                let added = match linked.get(&key).filter(|_| may_be_linked) {
                    Some(node) => self.tree.add_link(directory, name, *node).map(|()| *node),
                    None => {
                        let new = self.new_node(directory, &entry)?;
                        self.tree.add(directory, name, metadata_of(&entry.stat, entry.xattrs.try_into()?), new)
                    }
                };
                let node = added.map_err(|fault| self.name_error(directory, name, fault))?;
                if may_be_linked {
                    linked.insert(key, node);
                }
                if let (EntryKind::Directory(Some(slot)), Some(below)) = (&entry.found, self.tree.directory_of(node)) {
                    order.push((*slot, below, node));
                }
            }
        }
        Ok(())
    }

    fn new_node(&mut self, directory: DirId, entry: &Listed) -> Result<NewNode, Error> {
        let device =
            || Device { major: rustix::fs::major(entry.stat.st_rdev), minor: rustix::fs::minor(entry.stat.st_rdev) };
        Ok(match &entry.found {
            EntryKind::Directory(_) => NewNode::Directory,
            EntryKind::Symlink(target) => NewNode::Symlink(target.clone()),
            EntryKind::Other(FileType::CharDevice) => NewNode::CharDevice(device()),
            EntryKind::Other(FileType::BlockDevice) => NewNode::BlockDevice(device()),
            EntryKind::Other(FileType::Fifo) => NewNode::Fifo,
            EntryKind::Other(FileType::Socket) => NewNode::Socket,
            EntryKind::Other(_) => {
                NewNode::Regular { content: self.push_file(directory, entry.name.to_bytes(), &entry.stat)? }
            }
        })
    }

    fn push_file(&mut self, directory: DirId, name: &[u8], stat: &Stat) -> Result<u32, Error> {
        let content = content_number(self.files.len())?;
        let name_at = num::wide(self.file_names.len());
        self.file_names.extend(name);
        self.files.push(ListedFile {
            directory,
            name_len: num::fit(name.len(), "the length of a name")?,
            name_at,
            size: stat.st_size.cast_unsigned(),
            identity: ListedIdentity::of(stat),
        });
        Ok(content)
    }

    fn name_error(&self, directory: DirId, name: &[u8], fault: &str) -> Error {
        let path = self.path.join(path_of(&self.tree.directory_path(directory))).join(path_of(name));
        Error::unexpected(path, format!("has a name that {fault}"))
    }

    pub(super) fn content_len(&self, content: u32) -> u64 {
        self.file(content).size
    }

    pub(super) fn content_count(&self) -> usize {
        self.files.len()
    }

    fn file(&self, content: u32) -> &ListedFile {
        &self.files[num::at(content)]
    }

    fn name_of(&self, file: &ListedFile) -> &[u8] {
        let start = num::size(file.name_at);
        &self.file_names[start..start + usize::from(file.name_len)]
    }

    fn path_of(&self, file: &ListedFile) -> PathBuf {
        self.path.join(path_of(&self.tree.directory_path(file.directory))).join(path_of(self.name_of(file)))
    }

    pub(super) fn open<'a>(&'a self, content: u32, cache: &mut OpenCache) -> Result<FileContent<'a>, Error> {
        let listed = self.file(content);
        let failed = |error: Errno| Error::io("read", self.path_of(listed), error);
        let directory = cache.open(self, listed.directory).map_err(failed)?;
        // NONBLOCK: a fifo that replaced the file does not block the run; the identity check reports it.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = retry_on_intr(|| openat(directory, self.name_of(listed), flags, Mode::empty()));
        let fd = opened.map_err(|error| match error {
            Errno::LOOP | Errno::NOENT => Error::Changed { path: self.path_of(listed) },
            error => failed(error),
        })?;
        Ok(FileContent { source: self, listed, file: fd.into() })
    }
}

/// A regular file, open for reading.
#[derive(Debug)]
pub struct FileContent<'a> {
    source: &'a DirectorySource,
    listed: &'a ListedFile,
    file: File,
}

impl FileContent<'_> {
    fn io(&self, error: impl Into<std::io::Error>) -> Error {
        Error::io("read", self.source.path_of(self.listed), error)
    }

    fn changed(&self) -> Error {
        Error::Changed { path: self.source.path_of(self.listed) }
    }

    pub(super) fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        match sparse::read_exact_at(&self.file, buffer, offset) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(self.changed()),
            read => read.map_err(|error| self.io(error)),
        }
    }

    pub(super) fn xattrs(&self) -> Result<Vec<Xattr>, Error> {
        self.source.xattrs.read(self.file.as_fd()).map_err(|error| self.io(error))
    }

    /// Returns the digest from the kernel; `None` if the file is not sealed.
    pub(super) fn measure(&self) -> Result<Option<FileDigest>, Error> {
        match fsverity::measure(&self.file) {
            Ok(digest) => Ok(Some(digest)),
            Err(KernelError::NotSealed | KernelError::Unsupported) => Ok(None),
            Err(error) => Err(Error::kernel(self.source.path_of(self.listed), error)),
        }
    }

    pub(super) fn finish(self) -> Result<(), Error> {
        let stat = fstat(&self.file).map_err(|error| self.io(error))?;
        let same =
            ListedIdentity::of(&stat) == self.listed.identity && u64::try_from(stat.st_size) == Ok(self.listed.size);
        if same { Ok(()) } else { Err(self.changed()) }
    }
}

/// What a thread reuses from one content to the next: the directory that was opened last. Files follow each other in tree order.
#[derive(Debug, Default)]
pub struct OpenCache {
    /// The source by its root's descriptor, the directory, and the directory's descriptor.
    last: Option<(RawFd, DirId, OwnedFd)>,
}

impl OpenCache {
    fn open(&mut self, source: &DirectorySource, directory: DirId) -> Result<BorrowedFd<'_>, Errno> {
        let key = (source.root.as_raw_fd(), directory);
        let hit = self.last.as_ref().is_some_and(|(source, directory, _)| (*source, *directory) == key);
        if !hit {
            let path = source.tree.directory_path(directory);
            let flags = OFlags::PATH | OFlags::DIRECTORY;
            let fd = open_beneath(source.root.as_fd(), &path, flags, Mode::empty())?;
            self.last = Some((key.0, key.1, fd));
        }
        self.last.as_ref().map(|(_, _, fd)| fd.as_fd()).ok_or(Errno::BADF)
    }
}

/// The listing of a directory.
#[derive(Debug, Default)]
struct Listing {
    entries: Vec<Listed>,
    xattrs: Vec<Xattr>,
}

/// A file in a listing.
#[derive(Debug)]
struct Listed {
    name: CString,
    stat: Stat,
    xattrs: Vec<Xattr>,
    found: EntryKind,
}

#[derive(Debug)]
enum EntryKind {
    /// The slot of its own listing, unless it is on another file system.
    Directory(Option<usize>),
    Symlink(Box<[u8]>),
    Other(FileType),
}

/// Lists directories on several threads. The last directory found is listed first, so that few are open at a time.
struct Lister<'a> {
    path: &'a Path,
    options: &'a DirectoryOptions,
    device: u64,
    /// The mount of the root, if what is mounted inside is left and there may be any.
    mount: Option<u64>,
    /// Whether stats are asked of the file system itself: FUSE may give those from before the last change for a while.
    is_cached: bool,
    state: Mutex<ListerState>,
    changed: Condvar,
}

#[derive(Default)]
struct ListerState {
    pending: Vec<ListTask>,
    busy: usize,
    listings: Vec<Listing>,
    mounts: Vec<Vec<u8>>,
    failed: Option<Error>,
    /// Whether a thread panicked, which ends the run: no thread waits for it.
    is_over: bool,
}

/// A directory to list.
struct ListTask {
    slot: usize,
    parent: Arc<OwnedFd>,
    name: CString,
    /// Its path below the root.
    path: Vec<u8>,
}

impl<'a> Lister<'a> {
    fn new(path: &'a Path, options: &'a DirectoryOptions, root: &OwnedFd, device: u64) -> Self {
        let mount = options.leave_mounts.then(|| mount_id(root).ok()).flatten().filter(|mount| may_hold_mounts(*mount));
        let is_cached = kind_of(root.as_fd()) == "FUSE";
        Self { path, options, device, mount, is_cached, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Returns the listings, and the paths at which something is mounted.
    fn run(self, root: &OwnedFd, jobs: usize) -> Result<(Vec<Listing>, Vec<Vec<u8>>), Error> {
        let parent = root.try_clone().map_err(|error| Error::io("read", self.path, error))?;
        {
            let mut state = self.lock();
            state.pending.push(ListTask { slot: 0, parent: Arc::new(parent), name: c".".into(), path: Vec::new() });
            state.listings.push(Listing::default());
        }
        team(jobs, || self.work());
        let mut state = self.state.into_inner();
        state.mounts.sort_unstable();
        state.failed.map_or(Ok((state.listings, state.mounts)), Err)
    }

    fn lock(&self) -> MutexGuard<'_, ListerState> {
        self.state.lock()
    }

    fn work(&self) {
        let _guard = self.ending_on_panic();
        loop {
            let mut state = self.lock();
            let job = loop {
                if state.is_over || state.failed.is_some() || (state.pending.is_empty() && state.busy == 0) {
                    self.changed.notify_all();
                    return;
                }
                if let Some(job) = state.pending.pop() {
                    break job;
                }
                self.changed.wait(&mut state);
            };
            state.busy += 1;
            drop(state);
            let result = self.list(&job).and_then(|listed| self.advance(listed));
            let mut state = self.lock();
            state.busy -= 1;
            match result {
                Ok((fd, listing)) => {
                    if let Err(error) = self.take_listing(&mut state, &job, Arc::new(fd), listing) {
                        state.failed = Some(error);
                    }
                }
                Err(error) => state.failed = Some(error),
            }
            self.changed.notify_all();
        }
    }

    fn ending_on_panic(&self) -> OnPanic<impl FnMut()> {
        OnPanic(|| {
            self.lock().is_over = true;
            self.changed.notify_all();
        })
    }

    fn advance<T>(&self, listed: (T, Listing)) -> Result<(T, Listing), Error> {
        if let Some(progress) = &self.options.progress {
            progress.add(0, num::wide(listed.1.entries.len()));
            progress.check()?;
        }
        Ok(listed)
    }

    fn take_listing(
        &self,
        state: &mut ListerState,
        job: &ListTask,
        fd: Arc<OwnedFd>,
        mut listing: Listing,
    ) -> Result<(), Error> {
        for entry in &mut listing.entries {
            let failed = |error| {
                let path = join(&job.path, entry.name.to_bytes());
                Error::io("look at", self.path.join(path_of(&path)), error)
            };
            if self.is_left(fd.as_fd(), entry).map_err(failed)? {
                state.mounts.push(join(&job.path, entry.name.to_bytes()));
                continue;
            }
            let EntryKind::Directory(slot) = &mut entry.found else { continue };
            if self.options.one_file_system && entry.stat.st_dev != self.device {
                let path = join(&job.path, entry.name.to_bytes());
                tracing::info!(path = ?path_of(&path), "left empty: on another file system");
                continue;
            }
            *slot = Some(state.listings.len());
            state.pending.push(ListTask {
                slot: state.listings.len(),
                parent: Arc::clone(&fd),
                name: entry.name.clone(),
                path: join(&job.path, entry.name.to_bytes()),
            });
            state.listings.push(Listing::default());
        }
        state.listings[job.slot] = listing;
        Ok(())
    }

    fn list(&self, job: &ListTask) -> Result<(OwnedFd, Listing), Error> {
        let failed = |path: &[u8], error: Errno| Error::io("read", self.path.join(path_of(path)), error);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = retry_on_intr(|| openat(&*job.parent, &job.name, flags, Mode::empty()));
        let fd = opened.map_err(|error| failed(&job.path, error))?;
        let mut listing = Listing {
            entries: Vec::new(),
            xattrs: self.options.xattrs.read(fd.as_fd()).map_err(|error| failed(&job.path, error))?,
        };
        let omit = match &self.options.omit_output {
            Some(omit) if omit.is_in(fd.as_fd()).map_err(|error| failed(&job.path, error))? => Some(omit),
            _ => None,
        };
        let is_mount_point =
            job.path.is_empty() && is_mount_point(fd.as_fd()).map_err(|error| failed(&job.path, error))?;
        let names = retry_on_intr(|| rustix::fs::Dir::read_from(&fd)).map_err(|error| failed(&job.path, error))?;
        for name in names {
            let name = name.map_err(|error| failed(&job.path, error))?.file_name().to_owned();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let path = || join(&job.path, name.to_bytes());
            if self.is_cached {
                let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::STATX_FORCE_SYNC;
                let _ = statx(&fd, &name, flags, StatxFlags::BASIC_STATS);
            }
            let stat = statat(&fd, &name, AtFlags::SYMLINK_NOFOLLOW).map_err(|error| failed(&path(), error))?;
            let file_type = u16::try_from(stat.st_mode).ok().and_then(FileType::of_mode);
            let is_directory = file_type == Some(FileType::Directory);
            if self.options.excludes(path, is_directory) {
                tracing::debug!(path = ?path_of(&path()), "excluded by a pattern");
                continue;
            }
            if omit.is_some_and(|omit| omit.takes(fd.as_fd(), &name, &stat, &path())) {
                continue;
            }
            if is_directory
                && is_mount_point
                && self.is_no_part(fd.as_fd(), &name).map_err(|error| failed(&path(), error))?
            {
                continue;
            }
            let found = match file_type {
                Some(FileType::Directory) => EntryKind::Directory(None),
                Some(FileType::Symlink) => {
                    let target = readlinkat(&fd, &name, Vec::new()).map_err(|error| failed(&path(), error))?;
                    EntryKind::Symlink(target.to_bytes().into())
                }
                Some(other) => EntryKind::Other(other),
                None => return Err(failed(&path(), Errno::INVAL)),
            };
            let xattrs = match found {
                // Read when the file or directory is opened.
                EntryKind::Directory(_) | EntryKind::Other(FileType::Regular) => Vec::new(),
                _ => self.options.xattrs.read_link(fd.as_fd(), &name).map_err(|error| failed(&path(), error))?,
            };
            listing.entries.push(Listed { name, stat, xattrs, found });
        }
        Ok((fd, listing))
    }
}

impl Lister<'_> {
    /// Returns whether an entry is left, with what lies below, since it is on another mount or subvolume.
    fn is_left(&self, directory: BorrowedFd<'_>, entry: &Listed) -> Result<bool, Errno> {
        let is_subvolume = || matches!(entry.found, EntryKind::Directory(_)) && entry.stat.st_dev != self.device;
        let is_mounted = || match look(directory, entry.name.to_bytes()) {
            Err(Errno::NOENT) => Ok(false), // removed since it was listed
            found => found.map(|(mount, _)| Some(mount) != self.mount),
        };
        Ok(self.options.leave_mounts && (is_subvolume() || self.mount.is_some() && is_mounted()?))
    }

    /// Returns whether a directory at the root of a mount point is no part of the tree there.
    fn is_no_part(&self, root: BorrowedFd<'_>, name: &CStr) -> Result<bool, Errno> {
        let is_omitted = self.options.omit_lost_and_found && name.to_bytes() == Site::LOST_AND_FOUND.as_bytes();
        Ok(is_omitted || Site::holds_record(root, name.to_bytes())?)
    }
}

/// Returns whether nothing beside a directory can be renamed into it.
fn is_mount_point(directory: BorrowedFd<'_>) -> Result<bool, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match retry_on_intr(|| openat(directory, "..", flags, Mode::empty())) {
        Err(Errno::ACCESS) => Ok(false),
        above => match are_apart(directory, above?.as_fd()) {
            // The kernel does not tell on which mount it is.
            Err(Errno::NOSYS) => Ok(false),
            apart => apart,
        },
    }
}

impl DirectoryOptions {
    /// Leaves out `lost+found` at the root of a mount point, unless a tree of the index has that name.
    #[must_use]
    pub fn unless_in(self, index: &Index) -> Self {
        let is_root = |tree: &&Ref| tree.ostree.is_none();
        let has = |tree: &Ref| {
            let root = index.directory(tree.directory);
            index.find_entry(root, Site::LOST_AND_FOUND.as_bytes()).is_some()
        };
        Self { omit_lost_and_found: !index.refs().iter().filter(is_root).any(has), ..self }
    }

    pub(super) fn excludes(&self, path: impl Fn() -> Vec<u8>, is_directory: bool) -> bool {
        self.exclude.as_ref().is_some_and(|exclude| exclude.takes(&path(), is_directory))
    }
}

fn metadata_of(stat: &Stat, xattrs: Xattrs) -> Metadata {
    Metadata {
        permissions: u16::try_from(stat.st_mode & 0o7777).unwrap_or(0),
        uid: stat.st_uid,
        gid: stat.st_gid,
        mtime: stat.st_mtime,
        mtime_ns: u32::try_from(stat.st_mtime_nsec).unwrap_or(0),
        xattrs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::panic_guard::assert_panics;

    #[test]
    fn nobody_waits_for_a_lister_that_panicked() {
        assert_panics(|| {
            let folder = tempfile::tempdir().expect("a folder");
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let parent = Arc::new(rustix::fs::open(folder.path(), flags, Mode::empty()).expect("it is there"));
            let options = DirectoryOptions::default();
            let lister = Lister::new(folder.path(), &options, &parent, 0);
            // There is no such slot for the listing.
            lister.lock().pending.push(ListTask { slot: 7, parent, name: c".".into(), path: Vec::new() });
            team(2, || lister.work());
        });
    }
}
