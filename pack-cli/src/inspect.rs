//! What a bundle states about itself, without reading content and without trusting it.
//!
//! [`Input::read_head`](crate::Input::read_head) is enough for a bundle's signers and costs, [`Input::open_bundle`](crate::Input::open_bundle) for
//! its listing. All of this is declared, and checked against the root; whether the root is trusted is for a [`Guard`](crate::trust::Guard) to decide.
//!
//! ```
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/bundle.rs"));
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = signed_bundle()?;
//! # let bundle = folder.path().join("os.sealift");
//! use sealift::inspect::{EntryKind, find};
//! use sealift::{Input, Limits};
//!
//! let bundle = Input::open(&bundle)?.open_bundle(Limits::default())?;
//! let found = find(&bundle, b"etc/os-release")?;
//! assert!(matches!(found.what, EntryKind::Regular { object, .. } if object.size == 11));
//! # Ok(())
//! # }
//! ```

use sealift_format::difference::{CommitObject, EditedKind};
use sealift_format::name::join;
use sealift_format::{Bundle, Difference, Opened};
use sha2::{Digest as _, Sha256};

pub use sealift_format::{
    Attributes, BaseObject, BaseRange, Codec, Contents, Cost, Device, Directory, Entry, Extent, FileType, Holds, Holes,
    Index, Inode, InodeKind, Large, Layout, Maxima, Node, Object, Objects, OfParents, OsTree, OsTreeFile, OsTreeKind,
    OsTreeObject, OsTreeRef, Part, Piece, Ref, RepositoryFile, RootBases, Row, Rows, Symlink, Table, Xattr, XattrIter,
    XattrRef, Xattrs,
};

use crate::Error;
use sealift_store::address::{choose_ref, reading};

/// An entry of a tree, with everything the index records about it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Listed<'a> {
    /// The ref that contains it.
    pub reference: &'a Ref,
    /// The directory that contains it; `None` for the ref's root.
    pub parent: Option<Row<Directory>>,
    /// Its name; empty for the ref's root.
    pub name: &'a [u8],
    /// The number of its inode: equal for hard links.
    pub number: Row<Inode>,
    /// Its inode.
    pub inode: &'a Inode,
    /// Type, permissions, owner and extended attributes.
    pub attributes: &'a Attributes,
    /// The entry's type, with what belongs to it.
    pub what: EntryKind<'a>,
    index: &'a Index,
}

/// The type of an entry.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum EntryKind<'a> {
    /// A directory.
    Directory,
    /// A regular file.
    Regular {
        /// Its content.
        object: &'a Object,
        /// The holes of its content.
        holes: &'a [Extent],
    },
    /// A symbolic link with this target.
    Symlink(&'a [u8]),
    /// A character device.
    CharDevice(Device),
    /// A block device.
    BlockDevice(Device),
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
}

impl Listed<'_> {
    /// Returns the path below the ref's root, without a leading slash; empty for the root.
    #[must_use]
    pub fn path(&self) -> Vec<u8> {
        let Some(parent) = self.parent else { return Vec::new() };
        join(&self.index.directory_path(parent), self.name)
    }
}

/// A ref of a bundle, as far as the bundle alone describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedRef<'a> {
    /// Its name.
    pub name: &'a str,
    /// The kind of ref.
    pub kind: RefKind<'a>,
}

/// A kind of ref.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefKind<'a> {
    /// A tree.
    Tree,
    /// An OSTree commit.
    Commit {
        /// Its checksum. A delta bundle does not record the checksums of commits that only its base has.
        checksum: Option<[u8; 32]>,
        /// Its collection id; empty if there is none.
        collection: &'a str,
    },
}

/// Returns the refs of a bundle, sorted by name.
#[must_use]
pub fn refs(opened: &Opened) -> Vec<NamedRef<'_>> {
    match opened {
        Opened::Whole(bundle) => refs_of(&bundle.index),
        Opened::Delta(delta) => edited_refs(&delta.difference),
    }
}

fn refs_of(index: &Index) -> Vec<NamedRef<'_>> {
    let objects = index.ostree().map_or(&[][..], |ostree| ostree.objects());
    let refs = index.refs().iter().map(|found| {
        let kind = match &found.ostree {
            None => RefKind::Tree,
            Some(ostree) => RefKind::Commit {
                checksum: row(objects, ostree.commit).map(|object| object.checksum),
                collection: &ostree.collection,
            },
        };
        NamedRef { name: &found.name, kind }
    });
    refs.collect()
}

fn edited_refs(difference: &Difference) -> Vec<NamedRef<'_>> {
    let (refs, commits) = difference.ostree().map_or((&[][..], &[][..]), |ostree| (ostree.refs(), ostree.commits()));
    let kind = |kind| match kind {
        EditedKind::Tree(_) => RefKind::Tree,
        EditedKind::Commit(number) => {
            let found = row(refs, number);
            let commit = found.and_then(|found| row(commits, found.commit)).map(|edited| &edited.commit);
            let checksum = match commit {
                Some(CommitObject::Carried(bytes)) => Some(Sha256::digest(bytes).into()),
                _ => None,
            };
            RefKind::Commit { checksum, collection: found.map_or("", |found| &found.collection) }
        }
    };
    difference.refs().iter().map(|found| NamedRef { name: &found.name, kind: kind(found.kind) }).collect()
}

fn row<T>(rows: &[T], number: u32) -> Option<&T> {
    rows.get(usize::try_from(number).ok()?)
}

/// Returns all entries of a bundle's refs in tree order (core 6.1), each ref's root first.
pub fn entries(bundle: &Bundle) -> impl Iterator<Item = Listed<'_>> {
    bundle.index.refs().iter().flat_map(|reference| entries_below(bundle, root_of(bundle, reference)))
}

/// Returns an entry of a bundle and everything below it, in tree order. No other entry is visited.
pub fn entries_below<'a>(bundle: &'a Bundle, top: Listed<'a>) -> impl Iterator<Item = Listed<'a>> {
    let index = &bundle.index;
    let Listed { reference, .. } = top;
    // Everything below a directory follows it.
    let first = match top.inode.kind {
        InodeKind::Directory(first) => Some(first),
        _ => None,
    };
    let blocks = first.into_iter().flat_map(move |first| {
        let is_below = move |row: &Row<Directory>| index.directory(*row).depth > index.directory(first).depth;
        let behind = Rows::new(first.number() + 1..reference.directories().numbers().end);
        std::iter::once(first).chain(behind.take_while(is_below))
    });
    let blocks = blocks.flat_map(move |directory| {
        index.directory(directory).entries().map(move |entry| {
            let entry = index.entry(entry);
            listed(bundle, reference, Some(directory), index.name(entry), entry.inode)
        })
    });
    std::iter::once(top).chain(blocks)
}

fn root_of<'a>(bundle: &'a Bundle, reference: &'a Ref) -> Listed<'a> {
    listed(bundle, reference, None, b"", bundle.index.directory(reference.directory).inode)
}

fn listed<'a>(
    bundle: &'a Bundle,
    reference: &'a Ref,
    parent: Option<Row<Directory>>,
    name: &'a [u8],
    number: Row<Inode>,
) -> Listed<'a> {
    let index = &bundle.index;
    let inode = index.inode(number);
    let what = match inode.kind {
        InodeKind::Directory(_) => EntryKind::Directory,
        InodeKind::Regular(object) => {
            EntryKind::Regular { object: index.object(object), holes: bundle.layout.holes_of(object) }
        }
        InodeKind::Symlink(target) => EntryKind::Symlink(index.symlink_target(target)),
        InodeKind::CharDevice(device) => EntryKind::CharDevice(index.device(device)),
        InodeKind::BlockDevice(device) => EntryKind::BlockDevice(index.device(device)),
        InodeKind::Fifo => EntryKind::Fifo,
        InodeKind::Socket => EntryKind::Socket,
    };
    Listed { reference, parent, name, number, inode, attributes: index.attributes(inode), what, index }
}

/// Returns the entry at a path of a bundle: `[REF:]PATH`. A path without a ref is looked up in the only ref. It may be written literally, or as
/// lists and JSON print it (`sealift_verify::escape::readings`).
///
/// # Errors
/// Returns an error if there is no such ref or path, if the ref is omitted and there are several, or if the path is ambiguous.
pub fn find<'a>(bundle: &'a Bundle, path: &[u8]) -> Result<Listed<'a>, Error> {
    match reading(path, |path| find_exact(bundle, path).is_ok())? {
        Some(meant) => find_exact(bundle, &meant),
        None => find_exact(bundle, path), // this reports what is missing
    }
}

fn find_exact<'a>(bundle: &'a Bundle, path: &[u8]) -> Result<Listed<'a>, Error> {
    let colon = path.iter().position(|byte| *byte == b':');
    let named = colon.and_then(|at| Some((std::str::from_utf8(&path[..at]).ok()?, &path[at + 1..])));
    let (reference, path) = match named.filter(|(name, _)| bundle.index.find_ref(name).is_some()) {
        Some((name, path)) => (choose_ref(&bundle.index, Some(name))?, path),
        None => (choose_ref(&bundle.index, None)?, path),
    };
    let mut at = root_of(bundle, reference);
    for name in path.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b".")) {
        let missing = || Error::NoFile { path: path.to_owned() };
        let InodeKind::Directory(directory) = at.inode.kind else { return Err(missing()) };
        let found = bundle.index.find_entry(bundle.index.directory(directory), name);
        let (_, entry) = found.ok_or_else(missing)?;
        at = listed(bundle, reference, Some(directory), bundle.index.name(entry), entry.inode);
    }
    Ok(at)
}
