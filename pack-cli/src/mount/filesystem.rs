//! Answers the kernel's requests.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;
use std::time::Duration;

use fuser::{
    Errno, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, KernelConfig, LockOwner,
    OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEntry, ReplyLseek, ReplyOpen,
    ReplyStatfs, ReplyXattr, Request,
};
use sealift_format::num::wide;
use sealift_format::{Attributes, Bundle, Index, InodeKind, Object, Row, data_ranges};

use super::nodes::{Node, Nodes, absent, kind};
use super::recording::Recorder;
use crate::in_place::Reader;

/// How long the kernel may cache an answer: a bundle does not change.
const ALWAYS: Duration = Duration::from_secs(1 << 31);
/// The numbers of inodes are never used again.
const GENERATION: Generation = Generation(0);
/// The most requests that the kernel may have pending in the background, such as read-ahead.
const BACKGROUND: u16 = 64;
const SEEK_DATA: i32 = 3;
const SEEK_HOLE: i32 = 4;

/// A bundle as a file system.
#[derive(Debug)]
pub(super) struct Served {
    reader: Reader,
    nodes: Nodes,
    recorder: Option<Arc<Recorder>>,
    has_xattrs: bool,
    /// Whether the kernel opens files by itself, once the first request to open one was answered with `ENOSYS`; and the same for directories.
    opens_itself: bool,
    opens_directories_itself: bool,
}

impl Served {
    pub(super) fn new(reader: Reader, nodes: Nodes, recorder: Option<Recorder>) -> Self {
        let rows = reader.bundle().index.attribute_rows();
        let has_xattrs = rows.iter().any(|row| !row.xattrs.is_empty());
        let recorder = recorder.map(Arc::new);
        Self { reader, nodes, recorder, has_xattrs, opens_itself: false, opens_directories_itself: false }
    }

    fn bundle(&self) -> &Bundle {
        self.reader.bundle()
    }

    fn index(&self) -> &Index {
        &self.bundle().index
    }

    fn node(&self, number: INodeNo) -> Result<Node, Errno> {
        self.nodes.node(self.index(), number).ok_or(Errno::ENOENT)
    }

    /// Returns the extended attributes of a node, which a directory above refs does not have.
    fn attributes(&self, number: INodeNo) -> Result<Option<&Attributes>, Errno> {
        let index = self.index();
        Ok(match self.node(number)? {
            Node::Inode(inode) => Some(index.attributes(index.inode(inode))),
            Node::Folder(_) => None,
        })
    }

    /// Returns the number of a regular file's object.
    fn object(&self, number: INodeNo) -> Result<Row<Object>, Errno> {
        match self.node(number)? {
            Node::Inode(inode) => match self.index().inode(inode).kind {
                InodeKind::Regular(object) => Ok(object),
                InodeKind::Directory(_) => Err(Errno::EISDIR),
                _ => Err(Errno::EINVAL),
            },
            Node::Folder(_) => Err(Errno::EISDIR),
        }
    }

    fn kind(&self, node: Node) -> FileType {
        match node {
            Node::Inode(inode) => kind(self.index().inode(inode)),
            Node::Folder(_) => FileType::Directory,
        }
    }

    /// Gives the entries of a directory to `add`, each with the offset of the next one, until `add` says that there is no more room.
    fn list(&self, number: INodeNo, offset: u64, mut add: impl FnMut(&OsStr, Node, u64) -> bool) -> Result<(), Errno> {
        let (index, node) = (self.index(), self.node(number)?);
        if self.kind(node) != FileType::Directory {
            return Err(Errno::ENOTDIR);
        }
        let dots = [(".", node), ("..", self.nodes.parent(index, node))];
        for (place, (name, node)) in (0..).zip(dots).skip(usize::from(offset > 0)).skip(usize::from(offset > 1)) {
            if add(OsStr::new(name), node, place + 1) {
                return Ok(());
            }
        }
        let mut place = offset.max(2);
        self.nodes.list(index, node, place - 2, |name, node| {
            place += 1;
            !add(OsStr::from_bytes(name), node, place)
        });
        Ok(())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Nobody reads any more.
        self.reader.abandon();
    }
}

impl Filesystem for Served {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let offered = config.capabilities();
        let wanted = InitFlags::FUSE_DO_READDIRPLUS
            | InitFlags::FUSE_PARALLEL_DIROPS
            | InitFlags::FUSE_CACHE_SYMLINKS
            | InitFlags::FUSE_NO_OPEN_SUPPORT
            | InitFlags::FUSE_NO_OPENDIR_SUPPORT;
        // Kernels enforce access control lists only on request.
        let wanted = if self.has_xattrs { wanted | InitFlags::FUSE_POSIX_ACL } else { wanted };
        // Older kernels offer fewer of these.
        let _ = config.add_capabilities(wanted & offered);
        self.opens_itself = offered.contains(InitFlags::FUSE_NO_OPEN_SUPPORT);
        self.opens_directories_itself = offered.contains(InitFlags::FUSE_NO_OPENDIR_SUPPORT);
        let _ = config.set_max_background(BACKGROUND);
        Ok(())
    }

    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let parent = match self.node(parent) {
            Ok(parent) => parent,
            Err(error) => return reply.error(error),
        };
        let attributes = match self.nodes.find(self.index(), parent, name.as_bytes()) {
            Some(node) => self.nodes.attributes(self.bundle(), node),
            None => absent(),
        };
        reply.entry(&ALWAYS, &attributes, GENERATION);
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        match self.node(ino) {
            Ok(node) => reply.attr(&ALWAYS, &self.nodes.attributes(self.bundle(), node)),
            Err(error) => reply.error(error),
        }
    }

    fn readlink(&self, _req: &Request, ino: INodeNo, reply: ReplyData) {
        let index = self.index();
        match self.node(ino) {
            Ok(Node::Inode(inode)) => match index.inode(inode).kind {
                InodeKind::Symlink(target) => reply.data(index.symlink_target(target)),
                _ => reply.error(Errno::EINVAL),
            },
            Ok(Node::Folder(_)) => reply.error(Errno::EINVAL),
            Err(error) => reply.error(error),
        }
    }

    fn open(&self, _req: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        if self.opens_itself {
            return reply.error(Errno::ENOSYS);
        }
        reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE);
    }

    fn opendir(&self, _req: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        if self.opens_directories_itself {
            return reply.error(Errno::ENOSYS);
        }
        reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE | FopenFlags::FOPEN_CACHE_DIR);
    }

    fn read(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let object = match self.object(ino) {
            Ok(object) => object,
            Err(error) => return reply.error(error),
        };
        let end = self.index().object(object).size.min(offset.saturating_add(size.into()));
        if offset >= end {
            return reply.data(&[]);
        }
        let recorded = match (&self.recorder, self.node(ino)) {
            (Some(recorder), Ok(Node::Inode(inode))) => Some((Arc::clone(recorder), inode)),
            _ => None,
        };
        // Only the threads that decode wait for the medium. The kernel has no more requests than threads that wait for their answers.
        self.reader.read_then(object, offset..end, move |bundle, bytes| match bytes {
            Some(bytes) => {
                if let Some((recorder, inode)) = recorded {
                    recorder.note(&bundle.index, inode, offset..end);
                }
                reply.data(&bytes.get());
            }
            None => reply.error(Errno::EIO),
        });
    }

    fn readdir(&self, _req: &Request, ino: INodeNo, _fh: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let index = self.index();
        let listed = self.list(ino, offset, |name, node, next| {
            reply.add(self.nodes.number(index, node), next, self.kind(node), name)
        });
        match listed {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error),
        }
    }

    fn readdirplus(&self, _req: &Request, ino: INodeNo, _fh: FileHandle, offset: u64, mut reply: ReplyDirectoryPlus) {
        let bundle = self.bundle();
        let listed = self.list(ino, offset, |name, node, next| {
            let attributes = self.nodes.attributes(bundle, node);
            reply.add(attributes.ino, next, name, &ALWAYS, &attributes, GENERATION)
        });
        match listed {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error),
        }
    }

    fn statfs(&self, _req: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        let blocks = self.bundle().head.file_len().div_ceil(4096);
        reply.statfs(blocks, 0, 0, wide(self.index().inodes().len()), 0, 4096, 255, 4096);
    }

    fn getxattr(&self, _req: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        if !self.has_xattrs {
            // The kernel does not ask again.
            return reply.error(Errno::ENOSYS);
        }
        match self.attributes(ino) {
            Ok(attributes) => {
                let found = attributes.and_then(|attributes| attributes.xattrs.get(name.as_bytes()));
                match found {
                    Some(value) => send(value, size, reply),
                    None => reply.error(Errno::ENODATA),
                }
            }
            Err(error) => reply.error(error),
        }
    }

    fn listxattr(&self, req: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        if !self.has_xattrs {
            return reply.error(Errno::ENOSYS);
        }
        let attributes = match self.attributes(ino) {
            Ok(attributes) => attributes,
            Err(error) => return reply.error(error),
        };
        let mut names = Vec::new();
        for xattr in attributes.into_iter().flat_map(|attributes| &attributes.xattrs) {
            // As on other file systems, only root sees these.
            if req.uid() == 0 || !xattr.name.starts_with(b"trusted.") {
                names.extend(xattr.name);
                names.push(0);
            }
        }
        send(&names, size, reply);
    }

    fn lseek(&self, _req: &Request, ino: INodeNo, _fh: FileHandle, offset: i64, whence: i32, reply: ReplyLseek) {
        let object = match self.object(ino) {
            Ok(object) => object,
            Err(error) => return reply.error(error),
        };
        let (bundle, size) = (self.bundle(), self.index().object(object).size);
        let Some(start) = u64::try_from(offset).ok().filter(|start| *start < size) else {
            return reply.error(Errno::ENXIO);
        };
        let data = data_ranges(bundle.layout.holes_of(object), start..size).next();
        let found = match (whence, data) {
            (SEEK_DATA, Some(data)) => Some(data.start),
            (SEEK_HOLE, Some(data)) if data.start == start => Some(data.end),
            (SEEK_HOLE, _) => Some(start),
            _ => None,
        };
        match found.and_then(|found| i64::try_from(found).ok()) {
            Some(found) => reply.offset(found),
            None => reply.error(Errno::ENXIO),
        }
    }
}

/// Answers with a value, or only with its length if the kernel asks for that.
fn send(value: &[u8], size: u32, reply: ReplyXattr) {
    match u32::try_from(value.len()) {
        Ok(len) if size == 0 => reply.size(len),
        Ok(len) if len <= size => reply.data(value),
        _ => reply.error(Errno::ERANGE),
    }
}
