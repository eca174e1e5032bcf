//! Builds the trees of OSTree commits, after those that the index lists itself (ostree 6).

use alloc::vec::Vec;

use crate::num::{self, at, wide};
use crate::{Error, Row};

use super::ostree::{OfRefs, Resolved, Tree};
use super::rows::number;
use super::{Directory, Entry, Inode, InodeKind};
use crate::attributes::Attributes;
use crate::walk::TreeOrder;

/// The tables to which the trees are added.
pub(super) struct Grown {
    pub(super) entries: Vec<Entry>,
    pub(super) inodes: Vec<Inode>,
    pub(super) directories: Vec<Directory>,
    /// The root's maximum of entries: one dirtree may occur at very many places.
    pub(super) entries_max: u64,
}

/// The names of a directory in byte order: the position and length of each, and what it names.
type Block = Vec<((u32, u8), Child)>;

#[derive(Clone, Copy)]
enum Child {
    File(u32),
    Directory { dirtree: u32, dirmeta: u32 },
}

impl Grown {
    /// Adds the tree of each ref, the attributes of its directories to `attributes`, and its objects to `of_refs`. Returns the range of each tree's
    /// directories.
    pub(super) fn add_trees(
        &mut self,
        bytes: &[u8],
        resolved: &Resolved,
        sizes: &Sizes,
        attributes: &mut Vec<Attributes>,
        of_refs: &mut OfRefs,
    ) -> Result<Vec<(Row<Directory>, u32)>, Error> {
        // By the number of the metadata object; of others they are never used.
        let objects = resolved.ostree.objects().len();
        let mut rows = alloc::vec![Row::FIRST; objects];
        for (meta, own) in &resolved.metas {
            rows[at(*meta)] = Row::after(attributes.len())?;
            attributes.push(own.clone());
        }
        let blocks: Vec<Block> = resolved.trees.iter().map(|tree| block(bytes, tree)).collect();
        let mut ranges = Vec::with_capacity(resolved.refs.len());
        self.make_room(resolved, &sizes.of_refs)?;
        for commit in resolved.refs.iter().map(|commit| commit.commit) {
            let Some((dirtree, dirmeta)) = resolved.roots[at(commit)] else { continue };
            let start = Row::after(self.directories.len())?;
            let root =
                Directory { inode: Row::FIRST, parent: None, entry: Row::FIRST, depth: 0, first_entry: 0, children: 0 };
            let root = self.directory(root, rows[at(dirmeta)])?;
            of_refs.add_metadata(dirmeta);
            let mut order = TreeOrder::new((root, dirtree));
            while let Some((mut directory, dirtree)) = order.pop() {
                let names = &blocks[at(dirtree)];
                of_refs.add_metadata(dirtree);
                let own = Row::after(self.directories.len())?;
                directory.first_entry = number(self.entries.len())?;
                directory.children = number(names.len())?;
                if let Some(inode) = self.inodes.get_mut(directory.inode.at()) {
                    inode.kind = InodeKind::Directory(own);
                }
                self.directories.push(directory);
                if wide(self.entries.len() + names.len()) > self.entries_max {
                    let found = wide(self.entries.len() + names.len());
                    return Err(Error::Maximum { what: "entries", declared: self.entries_max, found });
                }
                for ((name_at, name_len), child) in names.iter().copied() {
                    let entry = Row::after(self.entries.len())?;
                    let inode = Row::after(self.inodes.len())?;
                    self.entries.push(Entry { name_at, name_len, first: true, inode });
                    match child {
                        Child::File(file) => {
                            of_refs.add_file(file);
                            let file = &resolved.ostree.files()[at(file)];
                            let (attributes, kind) = (file.attributes, file.kind);
                            self.inodes.push(Inode { attributes, mtime: 0, mtime_ns: 0, kind });
                        }
                        Child::Directory { dirtree, dirmeta } => {
                            of_refs.add_metadata(dirmeta);
                            let (parent, depth) = (Some(own), directory.depth + 1);
                            let new = Directory { inode, parent, entry, depth, first_entry: 0, children: 0 };
                            let new = self.directory(new, rows[at(dirmeta)])?;
                            order.push((new, dirtree));
                        }
                    }
                }
            }
            ranges.push((start, number(self.directories.len())?));
        }
        Ok(ranges)
    }

    /// Adds the inode of a directory.
    fn directory(&mut self, directory: Directory, attributes: Row<Attributes>) -> Result<Directory, Error> {
        let inode = Row::after(self.inodes.len())?;
        self.inodes.push(Inode { attributes, mtime: 0, mtime_ns: 0, kind: InodeKind::Directory(Row::FIRST) });
        Ok(Directory { inode, ..directory })
    }

    /// Compares the entries of all refs' trees with what is allowed before the first tree is built, and allocates exactly that: a few dirtrees,
    /// each of which contains the next one twice, can have more entries than fit into any memory.
    fn make_room(&mut self, resolved: &Resolved, of_refs: &Grows) -> Result<(), Error> {
        let all = of_refs.and(Grows { entries: wide(self.entries.len()), ..Grows::default() });
        if all.entries > self.entries_max {
            return Err(Error::Maximum { what: "entries", declared: self.entries_max, found: all.entries });
        }
        // Rows have 32-bit numbers. There are no more directories than entries and refs together.
        let limit = u32::MAX / 2;
        let entries = u32::try_from(all.entries).ok().filter(|entries| *entries <= limit);
        let (Some(entries), Ok(directories)) = (entries, u32::try_from(all.directories)) else {
            return Err(Error::Limit { what: "entries", declared: all.entries, limit: limit.into() });
        };
        let new = at(entries).saturating_sub(self.entries.len());
        // Each entry has an inode of its own, and each tree's root one more.
        let inodes = new.saturating_add(resolved.refs.len());
        let room = self.entries.try_reserve_exact(new);
        let room = room.and_then(|()| self.inodes.try_reserve_exact(inodes));
        let room = room.and_then(|()| self.directories.try_reserve_exact(at(directories)));
        room.map_err(|_| Error::OutOfMemory { entries: all.entries })
    }
}

/// The sizes of trees, known before one is built.
pub(super) struct Sizes {
    of_refs: Grows,
    /// The components of the longest path in the trees of all commits, parents included.
    pub(super) depth: u32,
}

impl Sizes {
    pub(super) fn of(resolved: &Resolved) -> Self {
        let mut known = alloc::vec![Grows::default(); resolved.ostree.objects().len()];
        let mut depth = 0;
        for (root, _) in resolved.roots.iter().flatten() {
            grows(resolved, *root, &mut known);
            depth = known[at(*root)].depth.max(depth);
        }
        let roots = resolved.refs.iter().filter_map(|own| resolved.roots[at(own.commit)]);
        let of_refs = roots.fold(Grows::default(), |sum, (root, _)| sum.and(known[at(root)]));
        Self { of_refs, depth }
    }
}

/// The entries and directories of a dirtree and of everything below it, counted once for each place, and the components of the longest path.
#[derive(Clone, Copy, Default)]
struct Grows {
    entries: u64,
    directories: u64,
    depth: u32,
}

impl Grows {
    fn and(self, other: Self) -> Self {
        Self {
            entries: self.entries.saturating_add(other.entries),
            directories: self.directories.saturating_add(other.directories),
            depth: self.depth.max(other.depth),
        }
    }
}

/// Counts a dirtree, without recursion, after those in it. `known` has the sizes of those that were counted before; no other has a directory.
fn grows(resolved: &Resolved, root: u32, known: &mut [Grows]) {
    let mut pending = alloc::vec![(root, 0)];
    while let Some((dirtree, next)) = pending.last_mut() {
        let (dirtree, tree) = (*dirtree, &resolved.trees[at(*dirtree)]);
        let is_known = known[at(dirtree)].directories > 0;
        if let Some((_, child, _)) = tree.directories.get(*next).filter(|_| !is_known) {
            *next += 1;
            pending.push((*child, 0));
            continue;
        }
        pending.pop();
        let mut sum = Grows { entries: wide(tree.len()), directories: 1, depth: u32::from(tree.len() > 0) };
        for (_, child, _) in tree.directories.iter().filter(|_| !is_known) {
            let child = known[at(*child)];
            sum = sum.and(Grows { depth: child.depth.saturating_add(1), ..child });
        }
        if !is_known {
            known[at(dirtree)] = sum;
        }
    }
}

/// Returns the names of a dirtree in byte order, files and directories together.
fn block(bytes: &[u8], tree: &Tree) -> Block {
    let files = tree.files.iter().map(|(name, file)| (*name, Child::File(*file)));
    let directories = tree.directories.iter();
    let directories =
        directories.map(|(name, dirtree, dirmeta)| (*name, Child::Directory { dirtree: *dirtree, dirmeta: *dirmeta }));
    let mut names: Block = files.chain(directories).collect();
    let name_of = |(at, len): (u32, u8)| {
        let at = num::at(at);
        bytes.get(at..at.saturating_add(len.into())).unwrap_or_default()
    };
    names.sort_unstable_by_key(|(name, _)| name_of(*name));
    names
}

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

    use super::*;
    use crate::Xattrs;
    use crate::index::{Index, IndexBuilder, Node, OsTreeKind};
    use crate::ostree::{Checksum, Commit, Dictionary, DirTree, dirmeta};

    fn sum(bytes: &[u8]) -> Checksum {
        Sha256::digest(bytes).into()
    }

    /// Returns the bytes of an index with a tree of one entry, and a commit of a path of `depth` directories.
    fn index(depth: usize) -> Vec<u8> {
        let attributes = |mode| Attributes { mode, uid: 0, gid: 0, xattrs: Xattrs::default() };
        let directory = attributes(0o40_755);
        let mut builder = IndexBuilder::default();
        builder.begin_ref("a");
        builder.inode(&directory, (0, 0), Node::Directory { children: 1 });
        builder.entry(b"f", None);
        builder.inode(&attributes(0o10_644), (0, 0), Node::Plain);

        let meta = dirmeta::encode(&directory);
        let mut trees = alloc::vec![DirTree::default().encode()];
        for below in 0..depth {
            let (below, meta) = (sum(&trees[below]), sum(&meta));
            trees.push(DirTree { directories: [(&b"d"[..], &below, &meta)].into(), ..DirTree::default() }.encode());
        }
        let commit = Commit {
            metadata: Dictionary::parse(&[]).expect("it is empty"),
            collection_binding: None,
            parent: None,
            related: &[],
            subject: "",
            body: "",
            timestamp: 0,
            root_tree: &sum(&trees[depth]),
            root_meta: &sum(&meta),
        };
        builder.ostree_object(OsTreeKind::Commit, &commit.encode());
        builder.ostree_object(OsTreeKind::DirMeta, &meta);
        for tree in trees.iter().rev() {
            builder.ostree_object(OsTreeKind::DirTree, tree);
        }
        builder.commit_ref("b", None, "");
        builder.finish([].into_iter(), &[0; 32]).expect("it fits")
    }

    #[test]
    fn a_path_in_a_commit_is_as_deep_as_its_directories() {
        let index = Index::parse(index(3), 4).expect("it is sound");
        assert_eq!(index.ostree().map(|ostree| ostree.of_parents().depth), Some(3));
    }

    #[test]
    fn entries_of_trees_and_commits_are_counted_before_any_is_built() {
        let refused = Index::parse(index(3), 2);
        assert_eq!(refused, Err(Error::Maximum { what: "entries", declared: 2, found: 4 }));
    }
}
