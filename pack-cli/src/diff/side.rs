//! A side of a comparison, with one interface for bundles and sources.

use std::collections::HashSet;
use std::slice::Iter;

use sealift_format::num::at;
use sealift_format::{Attributes, Bundle, Device, Entry, Index, InodeKind, Ref, Rows};

use super::File;
use crate::{DirId, Metadata};
use sealift_store::contents::ContentInfo;
use sealift_store::seal::Digests;
use sealift_store::source::Source;
use sealift_store::{Child, NodeKind, Tree};

/// One side of a comparison.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Side<'a> {
    /// A bundle whose head, layout and index have been read.
    Bundle(&'a Bundle),
    /// An index without a layout, as in a target's record.
    Index(&'a Index),
    /// A directory or an archive. Contents are read only where needed.
    Source(&'a Source),
    /// A directory whose files were sealed: the kernel reports the digest of each, and where it matches an object's, no content is read. A file that
    /// is not sealed counts as different.
    Sealed(&'a Source, &'a Digests),
}

impl<'a> Side<'a> {
    pub(super) fn view(self) -> View<'a> {
        match self {
            Self::Bundle(bundle) => View::Index(&bundle.index),
            Self::Index(index) => View::Index(index),
            Self::Source(source) | Self::Sealed(source, _) => View::Source(source),
        }
    }
}

/// The files of a side. Node numbers are those of inodes or of a tree's nodes; content numbers are those of objects or of a source's contents.
#[derive(Clone, Copy, Debug)]
pub(super) enum View<'a> {
    Index(&'a Index),
    Source(&'a Source),
}

/// A file, before its content is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node<'a> {
    attributes: &'a Attributes,
    mtime: (i64, u32),
    what: SideKind<'a>,
}

#[derive(Clone, Copy, Debug)]
enum SideKind<'a> {
    Directory(u32),
    Regular { content: u32, size: u64 },
    Symlink(&'a [u8]),
    Device(Device),
    Plain,
}

impl Node<'_> {
    pub(super) fn directory(&self) -> Option<u32> {
        match self.what {
            SideKind::Directory(directory) => Some(directory),
            _ => None,
        }
    }

    /// Returns number and size of a regular file's content.
    pub(super) fn content(&self) -> Option<(u32, u64)> {
        match self.what {
            SideKind::Regular { content, size } => Some((content, size)),
            _ => None,
        }
    }
}

/// The remaining names of a directory, with their nodes.
pub(super) enum Children<'a> {
    Index(&'a Index, Rows<Entry>),
    Source(&'a Tree, Iter<'a, Child>),
}

impl<'a> Iterator for Children<'a> {
    type Item = (&'a [u8], u32);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Index(index, entries) => {
                let entry = index.entry(entries.next()?);
                Some((index.name(entry), entry.inode.number()))
            }
            Self::Source(tree, children) => children.next().map(|child| (tree.child_name(child), child.node)),
        }
    }
}

impl<'a> View<'a> {
    pub(super) fn is_source(self) -> bool {
        matches!(self, Self::Source(_))
    }

    pub(super) fn refs(self) -> &'a [Ref] {
        match self {
            Self::Index(index) => index.refs(),
            Self::Source(_) => &[],
        }
    }

    pub(super) fn node(self, number: u32) -> Node<'a> {
        match self {
            Self::Index(index) => index_node(index, number),
            Self::Source(source) => source_node(source, number),
        }
    }

    /// Returns names and nodes of a directory, sorted by name.
    pub(super) fn children(self, directory: u32) -> Children<'a> {
        match self {
            Self::Index(index) => Children::Index(index, index.directories()[at(directory)].entries()),
            Self::Source(source) => Children::Source(source.tree(), source.tree().children(directory).iter()),
        }
    }

    /// Returns the node at a path below `root`.
    pub(super) fn find(self, root: u32, path: &[u8]) -> Option<u32> {
        let mut node = root;
        for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            let directory = self.node(node).directory()?;
            node = match self {
                Self::Index(index) => index.find_entry(&index.directories()[at(directory)], name)?.1.inode.number(),
                Self::Source(source) => {
                    let (tree, children) = (source.tree(), source.tree().children(directory));
                    let found = children.binary_search_by(|child| tree.child_name(child).cmp(name)).ok()?;
                    children[found].node
                }
            };
        }
        Some(node)
    }

    /// Returns the nodes that have more than one name.
    pub(super) fn linked(self) -> HashSet<u32> {
        match self {
            Self::Index(index) => index
                .entries()
                .iter()
                .filter(|entry| !entry.is_first_name())
                .map(|entry| entry.inode.number())
                .collect(),
            Self::Source(source) => linked_nodes(source),
        }
    }

    /// Returns whether two regular files of an index have the same content and metadata.
    pub(super) fn are_alike(self, a: u32, b: u32) -> bool {
        let Self::Index(index) = self else { return false };
        let [a, b] = [a, b].map(|node| &index.inodes()[at(node)]);
        let is_regular = matches!(a.kind, InodeKind::Regular(_));
        is_regular && (a.kind, a.attributes, a.mtime, a.mtime_ns) == (b.kind, b.attributes, b.mtime, b.mtime_ns)
    }

    /// Returns a file with everything known about it; `found` is what was read of a source's contents.
    pub(super) fn file(self, number: u32, found: &[ContentInfo]) -> File {
        let Node { attributes, mtime, what } = self.node(number);
        let mut metadata = Metadata::of(attributes, mtime);
        let (mut size, mut id, mut is_sealed, mut target, mut device) = Default::default();
        match what {
            SideKind::Regular { content, size: len } => {
                size = Some(len);
                match self {
                    Self::Index(index) => id = Some(index.objects()[at(content)].id),
                    Self::Source(_) => {
                        let found = found.get(at(content)).cloned().unwrap_or_default();
                        (id, is_sealed) = (found.id, found.is_sealed);
                        if !found.xattrs.is_empty() {
                            metadata.xattrs = found.xattrs;
                        }
                    }
                }
            }
            SideKind::Symlink(to) => target = Some(to.into()),
            SideKind::Device(numbers) => device = Some(numbers),
            SideKind::Directory(_) | SideKind::Plain => {}
        }
        File { file_type: attributes.file_type(), size, id, is_sealed, target, device, metadata, link: None }
    }
}

fn index_node(index: &Index, number: u32) -> Node<'_> {
    let inode = &index.inodes()[at(number)];
    let what = match inode.kind {
        InodeKind::Directory(directory) => SideKind::Directory(directory.number()),
        InodeKind::Regular(object) => SideKind::Regular { content: object.number(), size: index.object(object).size },
        InodeKind::Symlink(target) => SideKind::Symlink(index.symlink_target(target)),
        InodeKind::CharDevice(device) | InodeKind::BlockDevice(device) => SideKind::Device(index.device(device)),
        InodeKind::Fifo | InodeKind::Socket => SideKind::Plain,
    };
    Node { attributes: index.attributes(inode), mtime: (inode.mtime, inode.mtime_ns), what }
}

fn source_node(source: &Source, number: u32) -> Node<'_> {
    let tree = source.tree();
    let node = tree.node(number);
    let what = match node.kind {
        NodeKind::Directory(directory) => SideKind::Directory(directory),
        NodeKind::Regular { content } => SideKind::Regular { content, size: source.content_len(content) },
        NodeKind::Symlink(target) => SideKind::Symlink(tree.target(target)),
        NodeKind::Device(device) => SideKind::Device(device),
        NodeKind::Plain => SideKind::Plain,
    };
    Node { attributes: tree.attributes(node), mtime: (node.mtime, node.mtime_ns), what }
}

fn linked_nodes(source: &Source) -> HashSet<u32> {
    let tree = source.tree();
    let mut seen = vec![false; tree.node_count()];
    let mut linked = HashSet::new();
    let mut pending: Vec<DirId> = vec![0];
    while let Some(directory) = pending.pop() {
        for child in tree.children(directory) {
            pending.extend(tree.directory_of(child.node));
            if std::mem::replace(&mut seen[at(child.node)], true) {
                linked.insert(child.node);
            }
        }
    }
    linked
}
