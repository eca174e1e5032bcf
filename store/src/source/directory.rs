//! A local directory as a source.

use std::collections::HashMap;
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, Stat, fstat, openat};
use rustix::io::{Errno, retry_on_intr};
use sealift_format::num;
use sealift_format::verity::FileDigest;
use sealift_format::walk::TreeOrder;
use sealift_format::{Device, FileType, Xattr, Xattrs};
use sealift_verify::fsverity::{self, KernelError};

use super::directory_options::DirectoryOptions;
use super::lister::{EntryKind, Listed, Lister, Listing};
use super::{XattrFilter, content_number};
use crate::error::path_of;
use crate::fs::confined::{open_beneath, open_user_dir};
use crate::fs::sparse;
use crate::kernel::give_back_memory;
use crate::{DirId, Error, Metadata, NewNode, NodeId, Tree};

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
