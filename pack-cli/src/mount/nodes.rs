//! The inodes of a mount: numbers, attributes and names. All come from the index; only the directories above several refs are made here.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileType, INodeNo};
use sealift_format::num::{size, wide};
use sealift_format::{Bundle, Device, Directory, Index, Inode, InodeKind, Ref, Row, data_len};

use crate::Error;
use sealift_store::address::choose_ref;

/// The number of the first inode of the index: 1 is the root of the mount.
const FIRST: u64 = 2;
/// Bytes of a block: `st_blocks` is a multiple of it.
const BLOCK_LEN: u64 = 4096;

/// An inode of a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// One of the index, by its number there.
    Inode(Row<Inode>),
    /// A directory above refs, by its place in [`Nodes::folders`].
    Folder(usize),
}

/// A directory that leads to refs.
#[derive(Debug)]
struct Folder {
    parent: Node,
    children: BTreeMap<String, Node>,
}

/// Maps inode numbers to rows of the index.
#[derive(Debug)]
pub(super) struct Nodes {
    refs: Vec<String>,
    root: Node,
    folders: Vec<Folder>,
    /// The parent of the root directory of each ref.
    above: BTreeMap<Row<Directory>, Node>,
    /// The names of inodes that have several.
    links: BTreeMap<Row<Inode>, u32>,
    /// For each directory, the directories in it.
    subdirectories: Vec<u32>,
}

impl Nodes {
    /// Makes the tree of the refs of these names, or of all: one is the root itself, several are directories in it. A name counts once.
    ///
    /// # Errors
    /// Returns an error if the bundle has no such ref, or if one ref would lie inside another.
    pub(super) fn new(index: &Index, names: &[String]) -> Result<Self, Error> {
        let mut refs: Vec<&Ref> = Vec::new();
        for name in names {
            let chosen = choose_ref(index, Some(name))?;
            if refs.iter().all(|of| of.name != chosen.name) {
                refs.push(chosen);
            }
        }
        if names.is_empty() {
            refs = index.refs().iter().collect();
        }
        let mut links = BTreeMap::new();
        for entry in index.entries().iter().filter(|entry| !entry.is_first_name()) {
            *links.entry(entry.inode).or_insert(1) += 1;
        }
        let mut subdirectories = vec![0; index.directories().len()];
        for parent in index.directories().iter().filter_map(|directory| directory.parent) {
            subdirectories[parent.at()] += 1;
        }
        let (folders, above) = (Vec::new(), BTreeMap::new());
        let mut nodes = Self {
            refs: refs.iter().map(|of| of.name.clone()).collect(),
            root: Node::Folder(0),
            folders,
            above,
            links,
            subdirectories,
        };
        let inode_of = |of: &Ref| index.directory(of.directory).inode;
        if let [only] = refs[..] {
            nodes.root = Node::Inode(inode_of(only));
            nodes.above.insert(only.directory, nodes.root);
            return Ok(nodes);
        }
        nodes.folders.push(Folder { parent: Node::Folder(0), children: BTreeMap::new() });
        for reference in refs {
            nodes.place(reference, inode_of(reference))?;
        }
        Ok(nodes)
    }

    /// Returns the names of the refs.
    pub(super) fn refs(&self) -> &[String] {
        &self.refs
    }

    /// Puts a ref at its name, whose components are directories.
    fn place(&mut self, reference: &Ref, inode: Row<Inode>) -> Result<(), Error> {
        let inside = || {
            let name = reference.name.escape_debug();
            Error::Usage(format!("the ref {name} and another one would lie inside each other"))
        };
        let (folders, name) = reference.name.rsplit_once('/').unwrap_or(("", &reference.name));
        let mut folder = 0;
        for component in folders.split('/').filter(|component| !component.is_empty()) {
            let new = self.folders.len();
            let child = *self.folders[folder].children.entry(component.to_owned()).or_insert(Node::Folder(new));
            let Node::Folder(child) = child else { return Err(inside()) };
            if child == new {
                self.folders.push(Folder { parent: Node::Folder(folder), children: BTreeMap::new() });
            }
            folder = child;
        }
        let before = self.folders[folder].children.insert(name.to_owned(), Node::Inode(inode));
        if before.is_some_and(|before| before != Node::Inode(inode)) {
            return Err(inside());
        }
        self.above.insert(reference.directory, Node::Folder(folder));
        Ok(())
    }

    /// Returns the number of a node.
    pub(super) fn number(&self, index: &Index, node: Node) -> INodeNo {
        match node {
            _ if node == self.root => INodeNo::ROOT,
            Node::Inode(inode) => INodeNo(FIRST + u64::from(inode.number())),
            Node::Folder(folder) => INodeNo(FIRST + wide(index.inodes().len()) + wide(folder)),
        }
    }

    /// Returns the node of a number.
    pub(super) fn node(&self, index: &Index, number: INodeNo) -> Option<Node> {
        if number == INodeNo::ROOT {
            return Some(self.root);
        }
        let inode = usize::try_from(number.0.checked_sub(FIRST)?).ok()?;
        if inode < index.inodes().len() {
            return u32::try_from(inode).ok().and_then(Row::new).map(Node::Inode);
        }
        let folder = inode - index.inodes().len();
        (folder < self.folders.len()).then_some(Node::Folder(folder))
    }

    /// Returns what a directory has under a name.
    pub(super) fn find(&self, index: &Index, directory: Node, name: &[u8]) -> Option<Node> {
        match directory {
            Node::Folder(folder) => self.folders[folder].children.get(std::str::from_utf8(name).ok()?).copied(),
            Node::Inode(inode) => {
                let InodeKind::Directory(directory) = index.inode(inode).kind else { return None };
                let (_, entry) = index.find_entry(index.directory(directory), name)?;
                Some(Node::Inode(entry.inode))
            }
        }
    }

    /// Returns the directory that contains a directory.
    pub(super) fn parent(&self, index: &Index, node: Node) -> Node {
        match node {
            Node::Folder(folder) => self.folders[folder].parent,
            Node::Inode(inode) => {
                let InodeKind::Directory(directory) = index.inode(inode).kind else { return node };
                match index.directory(directory).parent {
                    Some(parent) => Node::Inode(index.directory(parent).inode),
                    None => self.above.get(&directory).copied().unwrap_or(node),
                }
            }
        }
    }

    /// Gives the names in a directory to `take`, from number `first` on, until it has enough. Returns whether it is a directory.
    pub(super) fn list(
        &self,
        index: &Index,
        directory: Node,
        first: u64,
        mut take: impl FnMut(&[u8], Node) -> bool,
    ) -> bool {
        match directory {
            Node::Folder(folder) => {
                let mut children = self.folders[folder].children.iter().skip(size(first));
                children.all(|(name, child)| take(name.as_bytes(), *child));
                true
            }
            Node::Inode(inode) => {
                let InodeKind::Directory(directory) = index.inode(inode).kind else { return false };
                let entries = index.directory(directory).entries();
                for entry in entries.skip(size(first)).map(|entry| index.entry(entry)) {
                    if !take(index.name(entry), Node::Inode(entry.inode)) {
                        break;
                    }
                }
                true
            }
        }
    }

    /// Returns the attributes of a node.
    pub(super) fn attributes(&self, bundle: &Bundle, node: Node) -> FileAttr {
        let number = self.number(&bundle.index, node);
        match node {
            Node::Inode(inode) => self.attributes_of(bundle, number, inode),
            Node::Folder(folder) => {
                let created = time(bundle.head.root().identity.created, 0);
                let links = 2 + u32::try_from(self.folders[folder].children.len()).unwrap_or(u32::MAX - 2);
                FileAttr { perm: 0o755, nlink: links, ..plain(number, FileType::Directory, created) }
            }
        }
    }

    fn attributes_of(&self, bundle: &Bundle, number: INodeNo, inode: Row<Inode>) -> FileAttr {
        let index = &bundle.index;
        let row = index.inode(inode);
        let attributes = index.attributes(row);
        let (mut size, mut blocks, mut device) = (0, 0, None);
        let mut links = self.links.get(&inode).copied().unwrap_or(1);
        match row.kind {
            InodeKind::Directory(directory) => links = 2 + self.subdirectories[directory.at()],
            InodeKind::Regular(object) => {
                size = index.object(object).size;
                let data = data_len(bundle.layout.holes_of(object), 0..size);
                blocks = data.div_ceil(BLOCK_LEN).saturating_mul(BLOCK_LEN / 512);
            }
            InodeKind::Symlink(target) => size = wide(index.symlink_target(target).len()),
            InodeKind::CharDevice(row) | InodeKind::BlockDevice(row) => device = Some(index.device(row)),
            InodeKind::Fifo | InodeKind::Socket => {}
        }
        FileAttr {
            size,
            blocks,
            perm: attributes.mode & 0o7777,
            nlink: links,
            uid: attributes.uid,
            gid: attributes.gid,
            rdev: device.map_or(0, encode),
            ..plain(number, kind(row), time(row.mtime, row.mtime_ns))
        }
    }
}

/// Returns the type of an inode.
pub(super) fn kind(inode: &Inode) -> FileType {
    match inode.kind {
        InodeKind::Directory(_) => FileType::Directory,
        InodeKind::Regular(_) => FileType::RegularFile,
        InodeKind::Symlink(_) => FileType::Symlink,
        InodeKind::CharDevice(_) => FileType::CharDevice,
        InodeKind::BlockDevice(_) => FileType::BlockDevice,
        InodeKind::Fifo => FileType::NamedPipe,
        InodeKind::Socket => FileType::Socket,
    }
}

fn plain(ino: INodeNo, kind: FileType, mtime: SystemTime) -> FileAttr {
    FileAttr {
        ino,
        size: 0,
        blocks: 0,
        atime: mtime,
        mtime,
        ctime: mtime,
        crtime: mtime,
        kind,
        perm: 0,
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

/// Returns the attributes that tell the kernel that a name is absent, so that it remembers that.
pub(super) fn absent() -> FileAttr {
    plain(INodeNo(0), FileType::RegularFile, UNIX_EPOCH)
}

fn time(seconds: i64, nanoseconds: u32) -> SystemTime {
    let distance = Duration::from_secs(seconds.unsigned_abs());
    let whole = if seconds < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) };
    whole.and_then(|whole| whole.checked_add(Duration::from_nanos(nanoseconds.into()))).unwrap_or(UNIX_EPOCH)
}

/// Encodes a device number as the kernel's interface does: 12 bits of the major number, between the low 8 and the high 12 bits of the minor one. A
/// number that does not fit becomes the highest one, which no device has: opening the node fails.
fn encode(device: Device) -> u32 {
    if !device.fits_linux() {
        return u32::MAX;
    }
    let Device { major, minor } = device;
    (minor & 0xff) | major << 8 | (minor & 0xf_ff00) << 12
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_device_number_becomes_that_of_another_device() {
        let encode = |major, minor| encode(Device { major, minor });
        assert_eq!(encode(7, 300), 0x0010_072c);
        assert_eq!(encode(0xfff, 0xf_ffff), u32::MAX);
        for (major, minor) in [(4104, 0), (0x1000, 3), (1, 0x10_0003), (u32::MAX, u32::MAX)] {
            assert_eq!(encode(major, minor), u32::MAX, "{major}:{minor}");
        }
    }
}
