//! The index: what is installed (core 6).

mod builder;
mod grown;
mod ostree;
mod parse;
mod rows;

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::attributes::Attributes;
use crate::name::join;
use crate::num;
use crate::row::{Row, Rows, Table};

pub use builder::{IndexBuilder, Node};
pub(crate) use ostree::{Numbers, parse_collection, parse_file_rows};
pub use ostree::{OfParents, OsTree, OsTreeFile, OsTreeKind, OsTreeObject, OsTreeRef};
pub(crate) use parse::{objects_section, parse_attributes, parse_objects};
pub(crate) use rows::{column, number, parse_devices, parse_ref, parse_targets, row_fault, use_attributes};

/// Refs, entries, inodes and objects, in tree order (core 6.1). Only [`Index::parse`] makes one, so every number in it is a
/// valid row number in its table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// Shared with the extended attributes.
    bytes: Arc<Vec<u8>>,
    refs: Vec<Ref>,
    entries: Vec<Entry>,
    inodes: Vec<Inode>,
    directories: Vec<Directory>,
    symlinks: Vec<Symlink>,
    devices: Vec<Device>,
    attributes: Vec<Attributes>,
    objects: Vec<Object>,
    verity: [u8; 32],
    ostree: Option<OsTree>,
}

/// A named tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ref {
    /// Its name (core 6.1).
    pub name: String,
    /// The root directory.
    pub directory: Row<Directory>,
    /// One past the number of the ref's last directory.
    directories_end: u32,
    /// The OSTree commit, if the ref is one.
    pub ostree: Option<OsTreeRef>,
}

impl Ref {
    /// Returns its directories in tree order, the root first.
    #[must_use]
    pub fn directories(&self) -> Rows<Directory> {
        Rows::new(self.directory.number()..self.directories_end)
    }
}

/// A name in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    name_at: u32,
    name_len: u8,
    first: bool,
    /// The inode that it names.
    pub inode: Row<Inode>,
}

impl Entry {
    /// Returns whether this is the first of the inode's names; the others are hard links to it.
    #[must_use]
    pub fn is_first_name(&self) -> bool {
        self.first
    }
}

/// A file of any type, apart from its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inode {
    /// Its attributes.
    pub attributes: Row<Attributes>,
    /// Seconds since 1970-01-01 UTC.
    pub mtime: i64,
    /// Nanoseconds of the time, below 10^9.
    pub mtime_ns: u32,
    /// Its type, and its row in the table for that type.
    pub kind: InodeKind,
}

impl Table for Inode {
    const COUNT: &'static str = "the number of inodes";
}

/// The type of an inode, with its row in the table for that type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "core 6.4 lists the types")]
pub enum InodeKind {
    /// A directory: its row of [`Index::directories`].
    Directory(Row<Directory>),
    /// A regular file: its object.
    Regular(Row<Object>),
    /// A symbolic link: its target.
    Symlink(Row<Symlink>),
    /// A character device: its numbers.
    CharDevice(Row<Device>),
    /// A block device: its numbers.
    BlockDevice(Row<Device>),
    /// A named pipe.
    Fifo,
    /// A socket's name.
    Socket,
}

/// A directory and its place in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directory {
    /// Its inode.
    pub inode: Row<Inode>,
    /// The directory that contains it; `None` for a ref's root.
    pub parent: Option<Row<Directory>>,
    /// The entry that names it; meaningless for a ref's root.
    pub entry: Row<Entry>,
    /// The number of components of its path.
    pub depth: u32,
    /// The number of its block's first entry or, if the block is empty, of the next entry.
    first_entry: u32,
    /// The number of entries in its block.
    pub children: u32,
}

impl Directory {
    /// Returns the entries of its block.
    #[must_use]
    pub fn entries(&self) -> Rows<Entry> {
        Rows::new(self.first_entry..self.first_entry + self.children)
    }
}

/// Where the target of a symbolic link lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symlink {
    pub(crate) at: u32,
    pub(crate) len: u32,
}

/// Major and minor number of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
}

impl Device {
    /// Returns whether the numbers fit into Linux's 12 bits for the major and 20 for the minor one (linux/kdev_t.h), which drops further bits.
    #[must_use]
    pub fn fits_linux(self) -> bool {
        self.major <= 0xfff && self.minor <= 0xf_ffff
    }
}

/// An immutable byte string (core 6.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// BLAKE3 of its bytes.
    pub id: [u8; 32],
    /// Its length in bytes.
    pub size: u64,
}

impl Table for Entry {
    const COUNT: &'static str = "the number of entries";
}

impl Table for Directory {
    const COUNT: &'static str = "the number of directories";
}

impl Table for Symlink {
    const COUNT: &'static str = "the number of symbolic links";
}

impl Table for Device {
    const COUNT: &'static str = "the number of devices";
}

impl Table for Attributes {
    const COUNT: &'static str = "the number of attribute rows";
}

impl Table for Object {
    const COUNT: &'static str = "the number of objects";
}

impl Index {
    /// Returns the decoded bytes, whose fs-verity digest is the content's identity.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the refs, by name.
    #[must_use]
    pub fn refs(&self) -> &[Ref] {
        &self.refs
    }

    /// Returns the entries of all directories, block after block.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the inodes in tree order.
    #[must_use]
    pub fn inodes(&self) -> &[Inode] {
        &self.inodes
    }

    /// Returns the directories in the order of their blocks.
    #[must_use]
    pub fn directories(&self) -> &[Directory] {
        &self.directories
    }

    /// Returns the objects in the order in which the trees first name them.
    #[must_use]
    pub fn objects(&self) -> &[Object] {
        &self.objects
    }

    /// Returns the distinct attribute rows.
    #[must_use]
    pub fn attribute_rows(&self) -> &[Attributes] {
        &self.attributes
    }

    /// Returns the fs-verity digest over the fs-verity digests of all objects (core 6, section 10).
    #[must_use]
    pub fn verity(&self) -> &[u8; 32] {
        &self.verity
    }

    /// Returns the OSTree objects, if a ref is a commit.
    #[must_use]
    pub fn ostree(&self) -> Option<&OsTree> {
        self.ostree.as_ref()
    }

    /// Returns the bytes of an OSTree metadata object.
    #[must_use]
    pub fn ostree_bytes(&self, object: &OsTreeObject) -> &[u8] {
        let (at, len) = OsTree::span(object);
        self.slice(at, len)
    }

    /// Returns the bytes of all OSTree metadata objects, one after the other.
    #[must_use]
    pub fn ostree_metadata(&self) -> &[u8] {
        let objects = self.ostree.as_ref().map_or(&[][..], OsTree::objects);
        let spans = || objects.iter().map(OsTree::span);
        let start = spans().next().map_or(0, |(start, _)| start);
        self.slice(start, spans().map(|(_, len)| len).sum())
    }

    /// Returns the attributes of an OSTree file.
    #[must_use]
    pub fn ostree_attributes(&self, file: &OsTreeFile) -> &Attributes {
        &self.attributes[file.attributes.at()]
    }

    /// Returns the name of an entry.
    #[must_use]
    pub fn name(&self, entry: &Entry) -> &[u8] {
        self.slice(entry.name_at, entry.name_len.into())
    }

    /// Returns the target of a symbolic link, by its row in [`InodeKind::Symlink`].
    #[must_use]
    pub fn symlink_target(&self, symlink: Row<Symlink>) -> &[u8] {
        let Symlink { at, len } = self.symlinks[symlink.at()];
        self.slice(at, len)
    }

    /// Returns the numbers of a device, by its row.
    #[must_use]
    pub fn device(&self, device: Row<Device>) -> Device {
        self.devices[device.at()]
    }

    /// Returns the node for [`IndexBuilder::inode`] that corresponds to an inode of this kind. Contents have the numbers of this index's objects.
    #[must_use]
    pub fn node(&self, kind: InodeKind) -> Node<'_> {
        match kind {
            InodeKind::Directory(directory) => Node::Directory { children: self.directory(directory).children },
            InodeKind::Regular(object) => Node::Regular { content: object.number() },
            InodeKind::Symlink(symlink) => Node::Symlink(self.symlink_target(symlink)),
            InodeKind::CharDevice(device) | InodeKind::BlockDevice(device) => Node::Device(self.device(device)),
            InodeKind::Fifo | InodeKind::Socket => Node::Plain,
        }
    }

    /// Returns whether a file has the same type as one of another index, and the same object, target or device numbers. `is_same_object` compares two
    /// objects. The names in directories are not compared.
    pub fn is_same_content(
        &self,
        kind: InodeKind,
        other: &Self,
        others: InodeKind,
        is_same_object: impl FnOnce(Row<Object>, Row<Object>) -> bool,
    ) -> bool {
        match (kind, others) {
            (InodeKind::Regular(own), InodeKind::Regular(others)) => is_same_object(own, others),
            (InodeKind::Symlink(own), InodeKind::Symlink(others)) => {
                self.symlink_target(own) == other.symlink_target(others)
            }
            (InodeKind::CharDevice(own), InodeKind::CharDevice(others))
            | (InodeKind::BlockDevice(own), InodeKind::BlockDevice(others)) => self.device(own) == other.device(others),
            (InodeKind::Directory(_), InodeKind::Directory(_))
            | (InodeKind::Fifo, InodeKind::Fifo)
            | (InodeKind::Socket, InodeKind::Socket) => true,
            _ => false,
        }
    }

    /// Returns an inode by its number.
    #[must_use]
    pub fn inode(&self, inode: Row<Inode>) -> &Inode {
        &self.inodes[inode.at()]
    }

    /// Returns a directory by its number.
    #[must_use]
    pub fn directory(&self, directory: Row<Directory>) -> &Directory {
        &self.directories[directory.at()]
    }

    /// Returns an entry by its number.
    #[must_use]
    pub fn entry(&self, entry: Row<Entry>) -> &Entry {
        &self.entries[entry.at()]
    }

    /// Returns the attributes of an inode.
    #[must_use]
    pub fn attributes(&self, inode: &Inode) -> &Attributes {
        &self.attributes[inode.attributes.at()]
    }

    /// Returns an object by its number.
    #[must_use]
    pub fn object(&self, object: Row<Object>) -> &Object {
        &self.objects[object.at()]
    }

    /// Returns a ref by its name.
    #[must_use]
    pub fn find_ref(&self, name: &str) -> Option<&Ref> {
        let at = self.refs.binary_search_by(|known| known.name.as_str().cmp(name)).ok()?;
        self.refs.get(at)
    }

    /// Returns the entry with this name in a directory, and its number.
    #[must_use]
    pub fn find_entry(&self, directory: &Directory, name: &[u8]) -> Option<(Row<Entry>, &Entry)> {
        let mut rows = directory.entries();
        let block = rows.get(&self.entries)?;
        let at = block.binary_search_by(|entry| self.name(entry).cmp(name)).ok()?;
        Some((rows.nth(at)?, &block[at]))
    }

    /// Returns the names of a directory's entries, which ascend, with the entries' numbers.
    pub fn names_in(&self, directory: Row<Directory>) -> impl Iterator<Item = (&[u8], Row<Entry>)> {
        self.directory(directory).entries().map(|entry| (self.name(self.entry(entry)), entry))
    }

    /// Returns the regular files in a tree, in tree order, once for each of their names.
    pub fn regulars(&self, tree: &Ref) -> impl Iterator<Item = (Row<Directory>, Row<Entry>, Row<Object>)> {
        let entries = |directory| self.directory(directory).entries().map(move |entry| (directory, entry));
        tree.directories().flat_map(entries).filter_map(|(directory, entry)| {
            let InodeKind::Regular(object) = self.inode(self.entry(entry).inode).kind else { return None };
            Some((directory, entry, object))
        })
    }

    /// Returns the path of an entry of `directory` below its ref's root, without a leading slash.
    #[must_use]
    pub fn path(&self, directory: Row<Directory>, entry: Row<Entry>) -> Vec<u8> {
        join(&self.directory_path(directory), self.name(self.entry(entry)))
    }

    /// Returns the path of a directory below its ref's root, empty for the root itself.
    #[must_use]
    pub fn directory_path(&self, directory: Row<Directory>) -> Vec<u8> {
        let mut names = Vec::new();
        let mut at = self.directory(directory);
        while let Some(parent) = at.parent {
            names.push(self.name(self.entry(at.entry)));
            at = self.directory(parent);
        }
        names.reverse();
        names.join(&b'/')
    }

    fn slice(&self, at: u32, len: u32) -> &[u8] {
        let at = num::at(at);
        &self.bytes[at..at + num::at(len)]
    }
}
