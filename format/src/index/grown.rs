//! Builds the trees of OSTree commits, after those that the index lists itself (ostree 6).

use alloc::vec::Vec;

use crate::num::{self, at, wide};
use crate::{Error, Row};

use super::ostree::{ByObject, Resolved, Tree};
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
    /// Adds the tree of each ref, and the attributes of its directories to `attributes`. Returns the range of each tree's directories.
    pub(super) fn add_trees(
        &mut self,
        bytes: &[u8],
        resolved: &Resolved,
        attributes: &mut Vec<Attributes>,
    ) -> Result<Vec<(Row<Directory>, u32)>, Error> {
        let mut rows = ByObject::new();
        for (meta, own) in resolved.metas.iter() {
            rows.push(meta, Row::after(attributes.len())?);
            attributes.push(own.clone());
        }
        let blocks: ByObject<Block> =
            resolved.trees.iter().map(|(dirtree, tree)| (dirtree, block(bytes, tree))).collect();
        let mut ranges = Vec::with_capacity(resolved.refs.len());
        self.make_room(resolved)?;
        for commit in resolved.refs.iter().map(|commit| commit.commit) {
            let Some((dirtree, dirmeta)) = resolved.roots.get(commit).copied() else { continue };
            let start = Row::after(self.directories.len())?;
            let root =
                Directory { inode: Row::FIRST, parent: None, entry: Row::FIRST, depth: 0, first_entry: 0, children: 0 };
            let root = self.directory(root, rows.get(dirmeta).copied().unwrap_or(Row::FIRST))?;
            let mut order = TreeOrder::new((root, dirtree));
            while let Some((mut directory, dirtree)) = order.pop() {
                let names = blocks.get(dirtree).map_or(&[][..], Vec::as_slice);
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
                            let file = &resolved.ostree.files()[at(file)];
                            let (attributes, kind) = (file.attributes, file.kind);
                            self.inodes.push(Inode { attributes, mtime: 0, mtime_ns: 0, kind });
                        }
                        Child::Directory { dirtree, dirmeta } => {
                            let (parent, depth) = (Some(own), directory.depth + 1);
                            let new = Directory { inode, parent, entry, depth, first_entry: 0, children: 0 };
                            let new = self.directory(new, rows.get(dirmeta).copied().unwrap_or(Row::FIRST))?;
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

    /// Counts the entries and directories of all refs' trees before the first tree is built, and allocates exactly that: a few dirtrees, each of
    /// which contains the next one twice, can have more entries than fit into any memory.
    fn make_room(&mut self, resolved: &Resolved) -> Result<(), Error> {
        let mut sizes: ByObject<Option<Grows>> = resolved.trees.iter().map(|(dirtree, _)| (dirtree, None)).collect();
        let mut all = Grows { entries: wide(self.entries.len()), directories: 0 };
        for commit in resolved.refs.iter().map(|commit| commit.commit) {
            let Some((root, _)) = resolved.roots.get(commit).copied() else { continue };
            all = all.and(grows(resolved, root, &mut sizes));
        }
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
        // Memory is a limit as well: no more entries than there are already.
        room.map_err(|_| Error::Limit { what: "entries", declared: all.entries, limit: wide(self.entries.len()) })
    }
}

/// The entries and directories of a dirtree and of everything below it, counted once for each place.
#[derive(Clone, Copy, Default)]
struct Grows {
    entries: u64,
    directories: u64,
}

impl Grows {
    fn and(self, other: Self) -> Self {
        Self {
            entries: self.entries.saturating_add(other.entries),
            directories: self.directories.saturating_add(other.directories),
        }
    }
}

/// Counts a dirtree, without recursion, after those in it. `sizes` caches the results.
fn grows(resolved: &Resolved, root: u32, sizes: &mut ByObject<Option<Grows>>) -> Grows {
    let below = |dirtree: u32| resolved.trees.get(dirtree).map_or(&[][..], |tree| &tree.directories);
    let mut pending = alloc::vec![(root, 0)];
    while let Some((dirtree, next)) = pending.last_mut() {
        let dirtree = *dirtree;
        if let Some((_, child, _)) = below(dirtree).get(*next) {
            *next += 1;
            // A dirtree that was begun counts as empty until it is done, which is never used: no dirtree contains itself.
            if let Some(size @ None) = sizes.get_mut(*child) {
                *size = Some(Grows::default());
                pending.push((*child, 0));
            }
            continue;
        }
        pending.pop();
        let Some(tree) = resolved.trees.get(dirtree) else { continue };
        let own = Grows { entries: wide(tree.files.len() + tree.directories.len()), directories: 1 };
        let below = tree.directories.iter().filter_map(|(_, child, _)| sizes.get(*child).copied().flatten());
        let sum = below.fold(own, Grows::and);
        if let Some(size) = sizes.get_mut(dirtree) {
            *size = Some(sum);
        }
    }
    sizes.get(root).copied().flatten().unwrap_or_default()
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
