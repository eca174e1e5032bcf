//! The files of a bundle that may be disk images, by their names alone: whether they are, only their content says.

use std::collections::HashSet;

use sealift_format::name::join;
use sealift_format::{Directory, Entry, Index, InodeKind, Object, Ref, Row};

/// How many files are looked at: each costs a read or two.
const MOST: usize = 64;
/// The least bytes of a file system with a hash tree.
const LEAST: u64 = 8192;
/// The most bytes of a file with a root hash.
const MOST_NAMED: u64 = 1024;

/// The usual extensions of images. A compressor may follow, as in `squashfs-xz`. With `verity`, an image may have its tree appended.
const IMAGES: &[&[u8]] = &[
    b"erofs",
    b"ext2",
    b"ext3",
    b"ext4",
    b"image",
    b"img",
    b"raw",
    b"rootfs",
    b"sqfs",
    b"sqsh",
    b"squashfs",
    b"verity",
];
/// What follows the name of an image in that of its hash tree.
const TREES: &[&[u8]] = &[b".verity", b".hash"];
const ROOT_HASH: &[u8] = b".roothash";

/// Files to look at.
pub(super) struct Candidates<'a> {
    pub(super) list: Vec<Candidate<'a>>,
    pub(super) left_out: usize,
}

/// A file to look at.
pub(super) struct Candidate<'a> {
    pub(super) reference: &'a Ref,
    pub(super) directory: Row<Directory>,
    pub(super) entry: Row<Entry>,
    pub(super) object: Row<Object>,
}

impl<'a> Candidates<'a> {
    pub(super) fn of(index: &'a Index) -> Self {
        let files = || {
            let of_ref = |reference| {
                let files = index.regulars(reference);
                files.map(move |(directory, entry, object)| Candidate { reference, directory, entry, object })
            };
            index.refs().iter().flat_map(of_ref)
        };
        let is_only = files().nth(1).is_none();
        let (mut list, mut seen, mut left_out) = (Vec::new(), HashSet::new(), 0);
        for file in files() {
            let name = file.name(index);
            let is_named = || is_image(name) || (!is_tree(name) && file.trees(index).next().is_some());
            if index.object(file.object).size < LEAST || !(is_only || is_named()) {
                continue;
            }
            let trees: Vec<_> = file.trees(index).map(|(_, tree)| tree).collect();
            if !seen.insert((file.object, trees)) {
                continue;
            }
            if list.len() < MOST {
                list.push(file);
            } else {
                left_out += 1;
            }
        }
        Self { list, left_out }
    }
}

impl Candidate<'_> {
    fn name<'i>(&self, index: &'i Index) -> &'i [u8] {
        index.name(index.entry(self.entry))
    }

    /// Returns the files beside it with the names of hash trees, and these names.
    pub(super) fn trees(&self, index: &Index) -> impl Iterator<Item = (Vec<u8>, Row<Object>)> {
        TREES.iter().flat_map(move |ending| self.files_beside(index, ending))
    }

    /// Returns the file beside it with the name of a root hash, and that name.
    pub(super) fn root_hash_file(&self, index: &Index) -> Option<(Vec<u8>, Row<Object>)> {
        self.files_beside(index, ROOT_HASH).find(|(_, object)| index.object(*object).size <= MOST_NAMED)
    }

    /// Returns the path of a file beside it.
    pub(super) fn beside(&self, index: &Index, name: &[u8]) -> Vec<u8> {
        join(&index.directory_path(self.directory), name)
    }

    /// Returns the files whose names are that of the image, with or without its extension, and this ending.
    fn files_beside(&self, index: &Index, ending: &[u8]) -> impl Iterator<Item = (Vec<u8>, Row<Object>)> {
        let name = self.name(index);
        let stem = split(name).filter(|_| is_image(name)).map(|(stem, _)| stem);
        let names = [Some(name), stem].into_iter().flatten().map(|name| [name, ending].concat());
        names.filter(move |beside| beside != name).filter_map(|beside| {
            let (_, entry) = index.find_entry(index.directory(self.directory), &beside)?;
            let InodeKind::Regular(object) = index.inode(entry.inode).kind else { return None };
            Some((beside, object))
        })
    }
}

/// Returns a name's stem and extension.
fn split(name: &[u8]) -> Option<(&[u8], &[u8])> {
    let dot = name.iter().rposition(|byte| *byte == b'.')?;
    Some((&name[..dot], &name[dot + 1..]))
}

fn is_image(name: &[u8]) -> bool {
    let extension = split(name).map(|(_, extension)| extension.split(|byte| *byte == b'-').next().unwrap_or_default());
    extension.is_some_and(|extension| IMAGES.contains(&extension))
}

fn is_tree(name: &[u8]) -> bool {
    TREES.iter().any(|ending| name.ends_with(ending))
}
