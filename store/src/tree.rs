//! A source's files and their metadata, without their contents.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use sealift_format::name::{component_fault, join};
use sealift_format::num::{at, wide};
use sealift_format::walk::TreeOrder;
use sealift_format::{Attributes, Device, FileType, Xattrs};

/// Number of a directory of a [`Tree`]; 0 is the root.
pub type DirId = u32;
/// Number of a file of any type in a [`Tree`]; 0 is the root directory.
pub type NodeId = u32;

/// A tree in memory: directories with named children, which point to nodes. Several names of one node are hard links.
#[derive(Debug)]
pub struct Tree {
    nodes: Vec<Node>,
    directories: Vec<DirectoryNode>,
    names: Vec<u8>,
    attributes: Vec<Attributes>,
    attribute_rows: HashMap<Attributes, usize>,
    targets: Vec<Box<[u8]>>,
}

/// Type, permissions, owner, time and extended attributes of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Permission bits, 07777.
    pub permissions: u16,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Seconds since 1970-01-01 UTC.
    pub mtime: i64,
    /// Nanoseconds of the time.
    pub mtime_ns: u32,
    /// Extended attributes.
    pub xattrs: Xattrs,
}

impl Metadata {
    /// Returns the metadata of a file with these attributes and this time.
    #[must_use]
    pub fn of(attributes: &Attributes, (mtime, mtime_ns): (i64, u32)) -> Self {
        let Attributes { mode, uid, gid, ref xattrs } = *attributes;
        Self { permissions: mode & 0o7777, uid, gid, mtime, mtime_ns, xattrs: xattrs.clone() }
    }

    fn attributes(self, file_type: FileType) -> Attributes {
        let mode = file_type.bits() | self.permissions & 0o7777;
        Attributes { mode, uid: self.uid, gid: self.gid, xattrs: self.xattrs }
    }
}

/// The type of a new file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "core 6.4 lists the types")]
pub enum NewNode {
    /// A directory, without children yet.
    Directory,
    /// A regular file, whose content has this number at its source.
    Regular {
        /// The number of its content at the source.
        content: u32,
    },
    /// A symbolic link.
    Symlink(Box<[u8]>),
    /// A character device.
    CharDevice(Device),
    /// A block device.
    BlockDevice(Device),
    /// A named pipe.
    Fifo,
    /// A socket's name.
    Socket,
}

/// A name in a [`Tree`] and its node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Visited {
    /// The path below the root; empty for the root.
    pub path: Vec<u8>,
    /// The node. Names of one node are hard links.
    pub node: NodeId,
    /// The node's metadata, without extended attributes that are read with its content.
    pub metadata: Metadata,
    /// The node's type.
    pub file: NewNode,
}

/// A file, directory or other entry of a tree, without its names.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// The number of its attributes, which [`Tree::attributes`] returns.
    pub attributes: usize,
    /// The nanoseconds of its time of modification.
    pub mtime_ns: u32,
    /// Its time of modification, in seconds since 1970.
    pub mtime: i64,
    /// What it is.
    pub kind: NodeKind,
}

/// The type of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// A directory.
    Directory(DirId),
    /// A regular file.
    Regular {
        /// The number of its content.
        content: u32,
    },
    /// A symbolic link, by the number of its target.
    Symlink(u32),
    /// A device.
    Device(Device),
    /// A fifo or a socket.
    Plain,
}

#[derive(Debug, Default)]
struct DirectoryNode {
    parent: Option<DirId>,
    name: Name,
    children: Vec<Child>,
}

/// A name in the tree's pool of names.
#[derive(Clone, Copy, Debug, Default)]
struct Name {
    at: u32,
    len: u8,
}

/// A named child of a directory.
#[derive(Clone, Copy, Debug)]
pub struct Child {
    name: Name,
    /// The node of this name.
    pub node: NodeId,
}

/// Returns the number of the next row after `rows` others.
fn number(rows: usize) -> Result<u32, &'static str> {
    u32::try_from(rows).map_err(|_| "does not fit: a tree can have at most 2^32 files")
}

impl Tree {
    /// Returns a tree that is an empty directory.
    #[must_use]
    pub fn new(root: Metadata) -> Self {
        let (mtime, mtime_ns) = (root.mtime, root.mtime_ns);
        let attributes = root.attributes(FileType::Directory);
        Self {
            nodes: vec![Node { attributes: 0, mtime, mtime_ns, kind: NodeKind::Directory(0) }],
            directories: vec![DirectoryNode::default()],
            names: Vec::new(),
            attribute_rows: HashMap::from([(attributes.clone(), 0)]),
            attributes: vec![attributes],
            targets: Vec::new(),
        }
    }

    /// Adds a file to a directory and returns its number, or what is wrong with the name.
    ///
    /// # Errors
    /// Returns an error if the name cannot be a path component (core 6.2).
    pub fn add(
        &mut self,
        directory: DirId,
        name: &[u8],
        metadata: Metadata,
        node: NewNode,
    ) -> Result<NodeId, &'static str> {
        let name = self.store_name(name)?;
        let (file_type, kind) = match node {
            NewNode::Directory => {
                let own = number(self.directories.len())?;
                self.directories.push(DirectoryNode { parent: Some(directory), name, children: Vec::new() });
                (FileType::Directory, NodeKind::Directory(own))
            }
            NewNode::Regular { content } => (FileType::Regular, NodeKind::Regular { content }),
            NewNode::Symlink(target) => {
                let own = number(self.targets.len())?;
                self.targets.push(target);
                (FileType::Symlink, NodeKind::Symlink(own))
            }
            NewNode::CharDevice(device) => (FileType::CharDevice, NodeKind::Device(device)),
            NewNode::BlockDevice(device) => (FileType::BlockDevice, NodeKind::Device(device)),
            NewNode::Fifo => (FileType::Fifo, NodeKind::Plain),
            NewNode::Socket => (FileType::Socket, NodeKind::Plain),
        };
        let (node, mtime, mtime_ns) = (number(self.nodes.len())?, metadata.mtime, metadata.mtime_ns);
        let attributes = self.attribute_row(metadata.attributes(file_type));
        self.nodes.push(Node { attributes, mtime, mtime_ns, kind });
        self.directories[at(directory)].children.push(Child { name, node });
        Ok(node)
    }

    /// Adds another name of a file that is not a directory.
    pub fn add_link(&mut self, directory: DirId, name: &[u8], node: NodeId) -> Result<(), &'static str> {
        let name = self.store_name(name)?;
        self.directories[at(directory)].children.push(Child { name, node });
        Ok(())
    }

    /// Returns the directory number of a directory node.
    #[must_use]
    pub fn directory_of(&self, node: NodeId) -> Option<DirId> {
        match self.nodes[at(node)].kind {
            NodeKind::Directory(directory) => Some(directory),
            _ => None,
        }
    }

    /// Sorts each directory's children by name, as tree order requires (core 6.1).
    pub fn sort(&mut self) {
        let names = &self.names;
        for directory in &mut self.directories {
            directory.children.sort_by(|a, b| bytes_of(names, a.name).cmp(bytes_of(names, b.name)));
        }
    }

    /// Changes the metadata of every file.
    pub fn map_metadata(&mut self, mut change: impl FnMut(FileType, &mut Metadata)) {
        for node in 0..self.nodes.len() {
            let mut metadata = self.metadata(node);
            let file_type = self.attributes[self.nodes[node].attributes].file_type();
            change(file_type, &mut metadata);
            let (mtime, mtime_ns) = (metadata.mtime, metadata.mtime_ns);
            let row = self.attribute_row(metadata.attributes(file_type));
            let node = &mut self.nodes[node];
            (node.attributes, node.mtime, node.mtime_ns) = (row, mtime, mtime_ns);
        }
    }

    fn metadata(&self, node: usize) -> Metadata {
        let node = &self.nodes[node];
        Metadata::of(&self.attributes[node.attributes], (node.mtime, node.mtime_ns))
    }

    /// Sets a node's extended attributes, and the permission bits to those of an access control list among them, as Linux shows them.
    pub fn set_xattrs(&mut self, node: NodeId, xattrs: Xattrs) {
        let node = at(node);
        let file_type = self.attributes[self.nodes[node].attributes].file_type();
        let mut metadata = self.metadata(node);
        metadata.permissions = mode_beside(metadata.permissions, &xattrs);
        metadata.xattrs = xattrs;
        self.nodes[node].attributes = self.attribute_row(metadata.attributes(file_type));
    }

    fn attribute_row(&mut self, attributes: Attributes) -> usize {
        match self.attribute_rows.entry(attributes) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                let row = self.attributes.len();
                self.attributes.push(entry.key().clone());
                *entry.insert(row)
            }
        }
    }

    fn store_name(&mut self, name: &[u8]) -> Result<Name, &'static str> {
        if let Some(fault) = component_fault(name) {
            return Err(fault);
        }
        let (Ok(at), Ok(len)) = (u32::try_from(self.names.len()), u8::try_from(name.len())) else {
            return Err("does not fit: the names of a tree can have at most 4 GiB");
        };
        self.names.extend(name);
        Ok(Name { at, len })
    }

    /// Calls `visit` for the root and for each name below it, in tree order (core 6.1).
    pub fn visit(&self, mut visit: impl FnMut(Visited)) {
        visit(self.visited(Vec::new(), 0));
        let mut order = TreeOrder::new((0, Vec::new()));
        while let Some((directory, path)) = order.pop() {
            for child in self.children(directory) {
                let name = self.child_name(child);
                let path = join(&path, name);
                if let Some(directory) = self.directory_of(child.node) {
                    order.push((directory, path.clone()));
                }
                visit(self.visited(path, child.node));
            }
        }
    }

    fn visited(&self, path: Vec<u8>, number: NodeId) -> Visited {
        let node = self.node(number);
        let file = match (node.kind, self.attributes(node).file_type()) {
            (NodeKind::Directory(_), _) => NewNode::Directory,
            (NodeKind::Regular { content }, _) => NewNode::Regular { content },
            (NodeKind::Symlink(symlink), _) => NewNode::Symlink(self.target(symlink).into()),
            (NodeKind::Device(device), FileType::CharDevice) => NewNode::CharDevice(device),
            (NodeKind::Device(device), _) => NewNode::BlockDevice(device),
            (NodeKind::Plain, FileType::Socket) => NewNode::Socket,
            (NodeKind::Plain, _) => NewNode::Fifo,
        };
        Visited { path, node: number, metadata: self.metadata(at(number)), file }
    }

    /// Returns a node.
    #[must_use]
    pub fn node(&self, node: NodeId) -> &Node {
        &self.nodes[at(node)]
    }

    /// Returns the number of nodes.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the attributes of a node.
    #[must_use]
    pub fn attributes(&self, node: &Node) -> &Attributes {
        &self.attributes[node.attributes]
    }

    /// Returns the entries of a directory, sorted by name once the tree is sorted.
    #[must_use]
    pub fn children(&self, directory: DirId) -> &[Child] {
        &self.directories[at(directory)].children
    }

    /// Returns the name of an entry.
    #[must_use]
    pub fn child_name(&self, child: &Child) -> &[u8] {
        bytes_of(&self.names, child.name)
    }

    /// Returns the target of a symbolic link.
    #[must_use]
    pub fn target(&self, symlink: u32) -> &[u8] {
        &self.targets[at(symlink)]
    }

    /// Returns the number of names in the longest path, and one such path.
    pub fn deepest(&self) -> (u32, Vec<u8>) {
        // A directory comes after its parent.
        let mut depths: Vec<u32> = Vec::with_capacity(self.directories.len());
        for directory in &self.directories {
            depths.push(directory.parent.map_or(0, |parent| depths[at(parent)] + 1));
        }
        let occupied = (0..).zip(&self.directories).filter(|(_, directory)| !directory.children.is_empty());
        let deepest = occupied.max_by_key(|(number, _)| depths[at(*number)]);
        deepest.map_or((0, Vec::new()), |(number, directory)| {
            let name = self.child_name(&directory.children[0]);
            let path = self.directory_path(number);
            let path = join(&path, name);
            (depths[at(number)] + 1, path)
        })
    }

    /// Returns the number of names.
    pub fn entry_count(&self) -> u64 {
        self.directories.iter().map(|directory| wide(directory.children.len())).sum()
    }

    /// Returns the path of a directory below the root; empty for the root.
    pub fn directory_path(&self, directory: DirId) -> Vec<u8> {
        let mut names = Vec::new();
        let mut here = &self.directories[at(directory)];
        while let Some(parent) = here.parent {
            names.push(bytes_of(&self.names, here.name));
            here = &self.directories[at(parent)];
        }
        names.reverse();
        names.join(&b'/')
    }
}

/// Returns a mode as Linux shows it beside these attributes: an access control list decides what its owner, its mask and others may do.
pub(crate) fn mode_beside(mode: u16, xattrs: &Xattrs) -> u16 {
    let list = xattrs.get(b"system.posix_acl_access").and_then(|list| list.get(4..)).unwrap_or_default();
    let bits = |tag: u8| {
        let entry = list.as_chunks::<8>().0.iter().find(|entry| entry[..2] == [tag, 0]);
        entry.map(|entry| u16::from(entry[2] & 7))
    };
    match (bits(0x01), bits(0x10), bits(0x20)) {
        (Some(user), Some(mask), Some(other)) => mode & !0o777 | user << 6 | mask << 3 | other,
        _ => mode,
    }
}

fn bytes_of(names: &[u8], name: Name) -> &[u8] {
    &names[at(name.at)..at(name.at) + usize::from(name.len)]
}
