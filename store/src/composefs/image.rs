//! The composefs image of a tree (images 2): an EROFS file system of names and metadata, in which contents are named by their fs-verity
//! digests. The index, those digests and the contents stored within the image determine it.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use composefs::INLINE_CONTENT_MAX_V0;
use composefs::erofs::format::FormatVersion;
use composefs::erofs::writer::{ValidatedFileSystem, mkfs_erofs_versioned};
use composefs::fsverity::{FsVerityHashValue, Sha256HashValue, Sha512HashValue};
use composefs::generic_tree::LeafId;
use composefs::tree::{Directory, FileSystem, Inode, LeafContent, RegularFile, Stat};
use sealift_format::verity::{Algorithm, FileDigest};
use sealift_format::{
    Attributes, Device, Directory as IndexDirectory, Image, Index, Inode as IndexInode, InodeKind, Object, Ref, Row,
    Rows, hex, num,
};

use crate::Error;

/// How an image stores a content.
#[derive(Clone, Copy, Debug)]
pub enum ImageContent<'a> {
    /// Its bytes.
    Within(&'a [u8]),
    /// As its name in the store.
    Named(&'a FileDigest),
}

const _: () = assert!(num::wide(INLINE_CONTENT_MAX_V0) == Image::WITHIN_LEN_MAX, "the specification says 64");

/// Components of the longest path in an image. Building recurses into each directory.
const DEPTH_MAX: u32 = 4096;
/// Bytes of the stack for this recursion.
const STACK_LEN: usize = 128 << 20;
/// The maximum length of one extended attribute's value, and of all of a file's with EROFS overhead.
const XATTR_LEN_MAX: usize = 0xffff;
const XATTRS_LEN_MAX: usize = 200 << 10;
/// The maximum number of extended attributes of one file, any of which may be shared with other files.
const XATTRS_MAX: usize = 200;

/// Builds the image of a tree. `content` returns each object by its number.
///
/// # Errors
/// Returns an error if an image cannot hold the tree, or if a content is unknown.
pub fn make<'a>(
    index: &Index,
    tree: &Ref,
    version: u8,
    algorithm: Algorithm,
    content: &(dyn Fn(Row<Object>) -> Option<ImageContent<'a>> + Sync),
) -> Result<Vec<u8>, Error> {
    let version = match version {
        0 => FormatVersion::V0,
        1 => FormatVersion::V1,
        _ => {
            return Err(Error::Usage(format!(
                "this version of sealift does not make composefs images of version {version}"
            )));
        }
    };
    let maker = Maker { index, tree, content };
    maker.check()?;
    let made = std::thread::scope(|scope| {
        let make = || match algorithm {
            Algorithm::Sha256 => maker.make::<Sha256HashValue>(version),
            Algorithm::Sha512 => maker.make::<Sha512HashValue>(version),
        };
        let thread = std::thread::Builder::new().stack_size(STACK_LEN).spawn_scoped(scope, make);
        let thread = thread.map_err(|error| Error::io("start", "a thread", error))?;
        thread.join().unwrap_or_else(|_| Err(maker.unfit("", "the composefs library failed to make an image of it")))
    });
    made.map(Vec::from)
}

struct Maker<'m, 'a> {
    index: &'m Index,
    tree: &'m Ref,
    content: &'m (dyn Fn(Row<Object>) -> Option<ImageContent<'a>> + Sync),
}

impl Maker<'_, '_> {
    fn directories(&self) -> Rows<IndexDirectory> {
        self.tree.directories()
    }

    fn unfit(&self, path: &str, why: &str) -> Error {
        let of = if path.is_empty() { self.tree.name.clone() } else { format!("{}:{path}", self.tree.name) };
        Error::unexpected(of.escape_debug().to_string(), format!("cannot be in a composefs image: {why}"))
    }

    /// Checks that an image can hold the tree, which building relies on.
    fn check(&self) -> Result<(), Error> {
        for number in self.directories() {
            let directory = self.index.directory(number);
            let path = |name: &[u8]| {
                let path = [&self.index.directory_path(number), &b"/"[..], name].concat();
                String::from_utf8_lossy(&path).into_owned()
            };
            if directory.depth > DEPTH_MAX {
                return Err(self.unfit("", &format!("it is deeper than {DEPTH_MAX} directories")));
            }
            self.check_inode(self.index.inode(directory.inode)).map_err(|why| self.unfit(&path(b""), why))?;
            for entry in directory.entries().map(|entry| self.index.entry(entry)) {
                let checked = self.check_inode(self.index.inode(entry.inode));
                checked.map_err(|why| self.unfit(&path(self.index.name(entry)), why))?;
            }
        }
        Ok(())
    }

    fn check_inode(&self, inode: &IndexInode) -> Result<(), &'static str> {
        let xattrs = &self.index.attributes(inode).xattrs;
        if xattrs.iter().any(|xattr| xattr.value.len() > XATTR_LEN_MAX) {
            return Err("an extended attribute of it has more than 65535 bytes");
        }
        let len: usize = xattrs.iter().map(|xattr| xattr.name.len() + xattr.value.len() + 16).sum();
        if len > XATTRS_LEN_MAX || xattrs.len() > XATTRS_MAX {
            return Err("it has too many extended attributes, or too long ones");
        }
        match inode.kind {
            InodeKind::CharDevice(device) | InodeKind::BlockDevice(device) => {
                let Device { major, minor } = self.index.device(device);
                if (major, minor) == (0, 0) && matches!(inode.kind, InodeKind::CharDevice(_)) {
                    return Err("a character device 0:0 tells overlayfs that there is no file");
                }
                // The range that Linux itself supports.
                if major < 1 << 12 && minor < 1 << 20 { Ok(()) } else { Err("its device number is too large") }
            }
            _ => Ok(()),
        }
    }

    fn make<D: FsVerityHashValue>(&self, version: FormatVersion) -> Result<Box<[u8]>, Error> {
        let system = ValidatedFileSystem::new(self.system::<D>()?);
        let system = system.map_err(|error| self.unfit("", &error.to_string()))?;
        Ok(mkfs_erofs_versioned(&system, version))
    }

    /// Converts the tree to the composefs library's form.
    fn system<D: FsVerityHashValue>(&self) -> Result<FileSystem<D>, Error> {
        let first = self.tree.directory;
        let at = |row: Row<IndexDirectory>| row.at() - first.at();
        let mut system = FileSystem::new(self.stat(self.index.directory(first).inode));
        let mut directories: Vec<Directory<D>> =
            self.directories().map(|number| Directory::new(self.stat(self.index.directory(number).inode))).collect();
        let mut leaves: HashMap<Row<IndexInode>, LeafId> = HashMap::new();
        for number in self.directories() {
            for entry in self.index.directory(number).entries().map(|entry| self.index.entry(entry)) {
                let Some(content) = self.leaf(entry.inode)? else { continue };
                let leaf =
                    *leaves.entry(entry.inode).or_insert_with(|| system.push_leaf(self.stat(entry.inode), content));
                directories[at(number)].insert(OsStr::from_bytes(self.index.name(entry)), Inode::leaf(leaf));
            }
        }
        // A directory comes before everything below it.
        for number in self.directories().skip(1).rev() {
            let row = self.index.directory(number);
            let (Some(own), Some(parent)) = (directories.pop(), row.parent) else { continue };
            let name = OsStr::from_bytes(self.index.name(self.index.entry(row.entry)));
            directories[at(parent)].insert(name, Inode::Directory(Box::new(own)));
        }
        if let Some(root) = directories.pop() {
            system.root = root;
        }
        Ok(system)
    }

    fn stat(&self, inode: Row<IndexInode>) -> Stat {
        let inode = self.index.inode(inode);
        let Attributes { mode, uid, gid, xattrs } = self.index.attributes(inode);
        let xattrs = xattrs.iter().map(|xattr| (Box::from(OsStr::from_bytes(xattr.name)), Box::from(xattr.value)));
        Stat {
            st_mode: u32::from(*mode) & 0o7777,
            st_uid: *uid,
            st_gid: *gid,
            st_mtim_sec: inode.mtime,
            st_mtim_nsec: inode.mtime_ns,
            xattrs: xattrs.collect(),
        }
    }

    /// Returns the leaf for an inode; `None` for a directory.
    fn leaf<D: FsVerityHashValue>(&self, inode: Row<IndexInode>) -> Result<Option<LeafContent<D>>, Error> {
        let device = |device| {
            let Device { major, minor } = self.index.device(device);
            rustix::fs::makedev(major, minor)
        };
        Ok(Some(match self.index.inode(inode).kind {
            InodeKind::Directory(_) => return Ok(None),
            InodeKind::Regular(object) => LeafContent::Regular(self.file(object)?),
            InodeKind::Symlink(link) => {
                LeafContent::Symlink(Box::from(OsStr::from_bytes(self.index.symlink_target(link))))
            }
            InodeKind::CharDevice(number) => LeafContent::CharacterDevice(device(number)),
            InodeKind::BlockDevice(number) => LeafContent::BlockDevice(device(number)),
            InodeKind::Fifo => LeafContent::Fifo,
            InodeKind::Socket => LeafContent::Socket,
        }))
    }

    fn file<D: FsVerityHashValue>(&self, object: Row<Object>) -> Result<RegularFile<D>, Error> {
        let unknown = || Error::Usage(format!("the content of object {object} is not known")); // callers know all contents
        match (self.content)(object).ok_or_else(unknown)? {
            ImageContent::Within(bytes) => Ok(RegularFile::Inline(Box::from(bytes))),
            ImageContent::Named(digest) => {
                let digest = D::from_hex(hex(digest.as_bytes())).map_err(|_| unknown())?;
                Ok(RegularFile::External(digest, self.index.object(object).size))
            }
        }
    }
}
