//! Selects what to unpack of a bundle, and the chunks needed for it.

use std::collections::BTreeSet;

use sealift_format::num::wide;
use sealift_format::{Bundle, Directory, Entry, Index, InodeKind, Object, Ref, Row};
use sealift_verify::read_plan::ReadPlan;

use super::disk::{Blocks, DiskUse};

/// The wanted files, by the work they need.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    /// Directories in tree order, parents first.
    pub(crate) directories: Vec<Row<Directory>>,
    /// Regular files, sorted by object, then in tree order.
    pub(crate) regulars: Vec<PlannedName>,
    /// Symbolic links, devices, fifos and sockets.
    pub(crate) others: Vec<PlannedName>,
    /// Further names of files that are made under their first wanted name.
    pub(crate) links: Vec<Link>,
    /// The reads that bring their contents.
    pub(crate) reads: ReadPlan,
    /// Objects and numbers of pieces that are already in place.
    done_pieces: BTreeSet<(Row<Object>, u64)>,
}

/// A name to create.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PlannedName {
    /// The object of a regular file; the first for other kinds.
    pub(crate) object: Row<Object>,
    pub(crate) entry: Row<Entry>,
    pub(crate) directory: Row<Directory>,
}

/// A further name of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) from: PlannedName,
    pub(crate) entry: Row<Entry>,
    pub(crate) directory: Row<Directory>,
}

impl Selection {
    /// Selects what lies at or below `prefix` in a ref's tree, with its parent directories; an empty prefix selects all.
    pub(crate) fn new(bundle: &Bundle, tree: &Ref, prefix: &[u8]) -> Self {
        let mut selection = Self::list(&bundle.index, tree, prefix);
        selection.measure(bundle);
        selection
    }

    /// As [`Self::new`], but without planning the reads.
    pub(crate) fn list(index: &Index, tree: &Ref, prefix: &[u8]) -> Self {
        let mut selection = Self::default();
        let mut wanted = Wanted::new(index, tree, prefix);
        let mut place_of: Vec<Option<PlannedName>> = vec![None; index.inodes().len()];
        for directory in tree.directories() {
            if !wanted.directory(directory) {
                continue;
            }
            selection.directories.push(directory);
            for number in index.directory(directory).entries() {
                let entry = index.entry(number);
                if !wanted.entry(directory, index.name(entry)) {
                    continue;
                }
                let inode = index.inode(entry.inode);
                let place = |object| PlannedName { object, entry: number, directory };
                if matches!(inode.kind, InodeKind::Directory(_)) {
                    continue;
                }
                if let Some(from) = place_of[entry.inode.at()] {
                    selection.links.push(Link { from, entry: number, directory });
                    continue;
                }
                let new = match inode.kind {
                    InodeKind::Regular(object) => place(object),
                    _ => place(Row::FIRST),
                };
                place_of[entry.inode.at()] = Some(new);
                match inode.kind {
                    InodeKind::Regular(_) => selection.regulars.push(new),
                    _ => selection.others.push(new),
                }
            }
        }
        selection.regulars.sort_unstable();
        selection
    }

    /// Returns the wanted names, except directories.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Row<Entry>> {
        let places = self.regulars.iter().chain(&self.others).map(|place| place.entry);
        places.chain(self.links.iter().map(|link| link.entry))
    }

    /// Keeps only these entries and directories.
    pub(crate) fn retain(
        &mut self,
        bundle: &Bundle,
        is_wanted: impl Fn(Row<Entry>) -> bool,
        is_wanted_directory: impl Fn(Row<Directory>) -> bool,
    ) {
        self.regulars.retain(|place| is_wanted(place.entry));
        self.others.retain(|place| is_wanted(place.entry));
        self.links.retain(|link| is_wanted(link.entry));
        self.directories.retain(|directory| is_wanted_directory(*directory));
        self.measure(bundle);
    }

    /// Drops regular files and pieces that are already in place.
    pub(crate) fn take_away(
        &mut self,
        bundle: &Bundle,
        is_done: impl Fn(Row<Entry>) -> bool,
        pieces: BTreeSet<(Row<Object>, u64)>,
    ) {
        self.regulars.retain(|place| !is_done(place.entry));
        self.done_pieces.extend(pieces);
        self.measure(bundle);
    }

    /// Determines which chunks bring the files.
    fn measure(&mut self, bundle: &Bundle) {
        let mut wanted = vec![false; bundle.index.objects().len()];
        for place in &self.regulars {
            wanted[place.object.at()] = true;
        }
        self.reads = ReadPlan::new(bundle.into(), wanted, &|object, piece| self.done_pieces.contains(&(object, piece)));
    }

    /// Returns the files that have an object.
    pub(crate) fn places_of(&self, object: Row<Object>) -> &[PlannedName] {
        let start = self.regulars.partition_point(|place| place.object < object);
        // Most objects have one file: a second search would take as long as the first.
        let len = self.regulars[start..].iter().take_while(|place| place.object == object).count();
        &self.regulars[start..start + len]
    }

    /// Returns the bytes that everything needs on a file system with such blocks. Files that differ only in their names count once if they become
    /// `hard_links`.
    pub(crate) fn disk(&self, bundle: &Bundle, blocks: Blocks, hard_links: bool) -> u64 {
        let index = &bundle.index;
        let inode_of = |place: &PlannedName| index.inode(index.entry(place.entry).inode);
        let metadata = |place: &PlannedName| {
            let inode = inode_of(place);
            (inode.attributes, inode.mtime, inode.mtime_ns)
        };
        let regulars = self.regulars.chunk_by(|a, b| a.object == b.object).flat_map(|files| {
            let first = metadata(&files[0]);
            let is_link = move |place: &PlannedName| hard_links && metadata(place) == first;
            files[..1].iter().chain(files[1..].iter().filter(move |place| !is_link(place)))
        });
        let directories = self.directories.iter().map(|number| index.inode(index.directory(*number).inode));
        let inodes = regulars.chain(&self.others).map(inode_of).chain(directories);
        let disk = DiskUse::new(index, &bundle.layout, blocks);
        inodes.map(|inode| disk.of(inode)).fold(0, u64::saturating_add)
    }

    /// Returns the number of inodes that the file system must have free.
    pub(crate) fn inodes(&self) -> u64 {
        wide(self.directories.len() + self.regulars.len() + self.others.len())
    }
}

/// Follows a prefix down the tree.
struct Wanted<'a> {
    index: &'a Index,
    first: Row<Directory>,
    /// The prefix's components.
    prefix: Vec<&'a [u8]>,
    /// For each wanted directory of the ref, how many components of the prefix it matches.
    matched: Vec<Option<usize>>,
}

impl<'a> Wanted<'a> {
    fn new(index: &'a Index, tree: &Ref, prefix: &'a [u8]) -> Self {
        let prefix = prefix.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).collect();
        Self { index, first: tree.directory, prefix, matched: vec![None; tree.directories().len()] }
    }

    fn directory(&mut self, number: Row<Directory>) -> bool {
        let directory = self.index.directory(number);
        let matched = match directory.parent {
            None => Some(0),
            Some(parent) => {
                let name = self.index.name(self.index.entry(directory.entry));
                self.matched[parent.at() - self.first.at()].and_then(|matched| self.below(matched, name))
            }
        };
        self.matched[number.at() - self.first.at()] = matched;
        matched.is_some()
    }

    fn entry(&self, directory: Row<Directory>, name: &[u8]) -> bool {
        let Some(matched) = self.matched[directory.at() - self.first.at()] else { return false };
        // A file is wanted if it completes the prefix or lies below it.
        self.below(matched, name) == Some(self.prefix.len())
    }

    fn below(&self, matched: usize, name: &[u8]) -> Option<usize> {
        match self.prefix.get(matched) {
            None => Some(matched),
            Some(component) if *component == name => Some(matched + 1),
            Some(_) => None,
        }
    }
}
