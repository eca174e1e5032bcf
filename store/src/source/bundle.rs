//! A ref of a bundle as a source, to pack a delta to what the bundle installs.
//!
//! All objects are read once, in the order in which they are stored, into a file without a name, since a packer reads them in any order and twice.

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sealift_format::num::{at, wide};
use sealift_format::{Directory, Index, Inode, InodeKind, Object, Ref, Row};

use crate::fs::unnamed::unnamed_file;
use crate::tree::{DirId, NewNode, NodeId, Tree};
use crate::{Error, Metadata, Progress};

/// Appends bytes of an object.
pub type ReadObject<'a> = dyn FnMut(Row<Object>, Range<u64>, &mut Vec<u8>) -> Result<(), Error> + 'a;

/// A tree of a bundle, with the contents of its files in a file without a name.
#[derive(Debug)]
pub struct BundleSource {
    pub(super) tree: Tree,
    spool: Arc<Spool>,
    /// The object of each content.
    contents: Vec<Row<Object>>,
}

/// The objects of a bundle, one after the other.
#[derive(Debug)]
struct Spool {
    file: File,
    folder: PathBuf,
    /// Where each object begins, and its length in bytes.
    places: Vec<(u64, u64)>,
}

/// Bytes per read.
const STEP: u64 = 8 << 20;

impl BundleSource {
    /// Returns each ref of a bundle with this index with its name. `read` appends bytes of an object that have been compared with its id. The objects are written to a file without a name in `folder`.
    ///
    /// # Errors
    /// Returns an error if a ref is an OSTree commit, or if the bundle cannot be read or the file be written.
    pub fn open_all(
        index: &Index,
        read: &mut ReadObject<'_>,
        folder: &Path,
        progress: &Progress,
    ) -> Result<Vec<(String, Self)>, Error> {
        if let Some(commit) = index.refs().iter().find(|found| found.ostree.is_some()) {
            let fault = "is an OSTree commit: pack its delta from the repository";
            return Err(Error::Usage(format!("{} {fault}", commit.name)));
        }
        let spool = Arc::new(Spool::new(index, read, folder, progress)?);
        let tree = |found: &Ref| -> Result<(String, Self), Error> {
            let mut source = Self::of_ref(index, found, Arc::clone(&spool))?;
            source.tree.sort();
            Ok((found.name.clone(), source))
        };
        index.refs().iter().map(tree).collect()
    }

    fn of_ref(index: &Index, found: &Ref, spool: Arc<Spool>) -> Result<Self, Error> {
        let root = index.directory(found.directory).inode;
        let tree = Tree::new(metadata(index, index.inode(root)));
        let mut source = Self { tree, spool, contents: Vec::new() };
        let mut nodes: HashMap<Row<Inode>, NodeId> = HashMap::new();
        let mut below: HashMap<Row<Directory>, DirId> = [(found.directory, 0)].into();
        for directory in found.directories() {
            let Some(&parent) = below.get(&directory) else { continue };
            for entry in index.directory(directory).entries() {
                let (name, inode) = (index.name(index.entry(entry)), index.entry(entry).inode);
                let refused = |fault: &'static str| Error::Usage(format!("{}: {fault}", found.name));
                if let Some(node) = nodes.get(&inode) {
                    source.tree.add_link(parent, name, *node).map_err(refused)?;
                    continue;
                }
                let row = index.inode(inode);
                let new = source.node(index, row);
                let node = source.tree.add(parent, name, metadata(index, row), new).map_err(refused)?;
                nodes.insert(inode, node);
                if let (InodeKind::Directory(own), Some(number)) = (row.kind, source.tree.directory_of(node)) {
                    below.insert(own, number);
                }
            }
        }
        Ok(source)
    }

    fn node(&mut self, index: &Index, inode: &Inode) -> NewNode {
        match inode.kind {
            InodeKind::Directory(_) => NewNode::Directory,
            InodeKind::Regular(object) => {
                self.contents.push(object);
                let content = u32::try_from(self.contents.len() - 1).unwrap_or(u32::MAX); // an index has fewer inodes
                NewNode::Regular { content }
            }
            InodeKind::Symlink(target) => NewNode::Symlink(index.symlink_target(target).into()),
            InodeKind::CharDevice(device) => NewNode::CharDevice(index.device(device)),
            InodeKind::BlockDevice(device) => NewNode::BlockDevice(index.device(device)),
            InodeKind::Fifo => NewNode::Fifo,
            InodeKind::Socket => NewNode::Socket,
        }
    }

    pub(super) fn len_of(&self, content: u32) -> u64 {
        self.place(content).1
    }

    pub(super) fn count(&self) -> usize {
        self.contents.len()
    }

    pub(super) fn open_content(&self, content: u32) -> BundleContent<'_> {
        BundleContent { source: self, content }
    }

    fn place(&self, content: u32) -> (u64, u64) {
        self.spool.places[self.contents[at(content)].at()]
    }
}

impl Spool {
    fn new(index: &Index, read: &mut ReadObject<'_>, folder: &Path, progress: &Progress) -> Result<Self, Error> {
        let file = unnamed_file(folder).map_err(|error| Error::io("create a file in", folder, error))?;
        let mut places = vec![(0, 0); index.objects().len()];
        let (mut end, mut bytes) = (0, Vec::new());
        for (row, object) in Row::all(index.objects()) {
            let mut offset = 0;
            places[row.at()] = (end, object.size);
            while offset < object.size {
                progress.check()?;
                bytes.clear();
                let until = object.size.min(offset + STEP);
                read(row, offset..until, &mut bytes)?;
                file.write_all_at(&bytes, end + offset)
                    .map_err(|error| Error::io("write to a file in", folder, error))?;
                progress.add(wide(bytes.len()), 0);
                offset = until;
            }
            end += object.size;
        }
        Ok(Self { file, folder: folder.to_owned(), places })
    }
}

fn metadata(index: &Index, inode: &Inode) -> Metadata {
    Metadata::of(index.attributes(inode), (inode.mtime, inode.mtime_ns))
}

/// The bytes of a file of a bundle.
#[derive(Debug)]
pub struct BundleContent<'a> {
    source: &'a BundleSource,
    content: u32,
}

impl BundleContent<'_> {
    pub(super) fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        let spool = &self.source.spool;
        let read = spool.file.read_exact_at(buffer, self.source.place(self.content).0 + offset);
        read.map_err(|error| Error::io("read a file in", &spool.folder, error))
    }
}
