//! The differences between an installed tree and the wanted one.

use std::collections::{HashMap, HashSet};

use sealift_format::walk::pairs;
use sealift_format::{Directory, Entry, Index, Inode, InodeKind, Ref, Row};

use super::metadata::Privilege;
use super::plan::{Link, PlannedName, Selection};
use super::recheck::Recheck;

/// What to do with an installed tree, by numbers of the wanted index.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Entries, except directories, whose files are rebuilt.
    pub(super) build: HashSet<Row<Entry>>,
    /// Regular files that get another time, in tree order.
    pub(super) metadata: Vec<PlannedName>,
    /// Directories, in tree order, that the installed tree lacks.
    pub(super) new_directories: Vec<Row<Directory>>,
    /// Directories whose metadata is set, because it differs or because changes inside alter it.
    pub(super) directories: HashMap<Row<Directory>, Depth>,
    /// Directories that hold only wanted names.
    pub(super) exact: HashSet<Row<Directory>>,
    /// Directories of which the installed tree has names that are not wanted.
    pub(super) shrinking: HashSet<Row<Directory>>,
    /// The number of regular files that stay unchanged.
    pub(super) kept: u64,
    /// For each entry of the wanted index, the installed entry of the same path.
    installed: Vec<Option<Row<Entry>>>,
}

/// How much of the metadata is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// The modification time.
    Time,
    /// All metadata.
    All,
}

/// The decision for an inode of the wanted index.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Unknown,
    /// The installed inode that all of its names have.
    Is(Row<Inode>),
    New,
}

impl Changes {
    /// Compares the selection of `wanted` with an installed tree. The directories of `strangers` are not those that were installed, and are made anew.
    pub(super) fn between(
        installed: &Index,
        tree: &Ref,
        wanted: &Index,
        selection: &Selection,
        privilege: &Privilege,
        recheck: &Recheck,
        strangers: &HashSet<Row<Directory>>,
    ) -> Self {
        let mut changes = Self::default();
        let mut pairing = Pairing::new(installed, tree, wanted, recheck, strangers);
        let mut is_selected = vec![false; wanted.entries().len()];
        for entry in selection.entries() {
            is_selected[entry.at()] = true;
        }
        for &directory in &selection.directories {
            let are_all_wanted = pairing.pair(directory, &is_selected);
            if !are_all_wanted {
                changes.shrinking.insert(directory);
            }
            match pairing.directory_of[directory.at()] {
                None => {
                    changes.new_directories.push(directory);
                    changes.touch(directory);
                    wanted.directory(directory).parent.into_iter().for_each(|parent| changes.touch(parent));
                }
                Some(old) => {
                    if recheck.exact_directories.contains(&old) && are_all_wanted {
                        changes.exact.insert(directory);
                    }
                    let (a, b) = (installed.directory(old).inode, wanted.directory(directory).inode);
                    let (a, b) = (installed.inode(a), wanted.inode(b));
                    match difference(installed, a, wanted, b, privilege) {
                        _ if recheck.unlike_directories.contains(&old) => changes.touch(directory),
                        // Setting only the time, without opening the directory, takes a name, and the root of the tree has none.
                        Some(Depth::Time) if wanted.directory(directory).parent.is_some() => {
                            changes.directories.insert(directory, Depth::Time);
                        }
                        Some(_) => changes.touch(directory),
                        None => {}
                    }
                }
            }
        }
        let names = selection.regulars.iter().chain(&selection.others).map(|place| (place.entry, place.directory));
        for (entry, directory) in names.chain(selection.links.iter().map(|link| (link.entry, link.directory))) {
            if pairing.is_new(wanted.entry(entry).inode, privilege) {
                changes.build.insert(entry);
                changes.touch(directory);
            }
        }
        for &place in &selection.regulars {
            let inode = wanted.entry(place.entry).inode;
            let Fate::Is(old) = pairing.fates[inode.at()] else { continue };
            if changes.build.contains(&place.entry) {
                continue;
            }
            match difference(installed, installed.inode(old), wanted, wanted.inode(inode), privilege) {
                None if !recheck.retimed.contains(&old) => changes.kept += 1,
                _ => changes.metadata.push(place),
            }
        }
        changes.metadata.sort_unstable_by_key(|place| place.entry);
        changes.installed = pairing.entry_of;
        changes
    }

    /// Returns the installed entry that matches an entry of the wanted index.
    pub(super) fn installed(&self, entry: Row<Entry>) -> Option<Row<Entry>> {
        self.installed.get(entry.at()).copied().flatten()
    }

    /// Returns the changes that complete an interrupted update of everything selected. Nothing is known of the installed tree, but whatever was to be
    /// rebuilt is in `staged` or already in its place.
    pub(super) fn all(
        selection: &Selection,
        new_directories: Vec<Row<Directory>>,
        staged: HashSet<Row<Entry>>,
    ) -> Self {
        let rest = selection.regulars.iter().filter(|place| !staged.contains(&place.entry));
        let mut metadata: Vec<_> = rest.copied().collect();
        metadata.sort_unstable_by_key(|place| place.entry);
        Self {
            metadata,
            new_directories,
            directories: selection.directories.iter().map(|directory| (*directory, Depth::All)).collect(),
            build: staged,
            exact: HashSet::new(),
            shrinking: HashSet::new(),
            kept: 0,
            installed: Vec::new(),
        }
    }

    /// Plans to rebuild a file that would otherwise stay, with its further names.
    pub(super) fn build_anew(&mut self, place: PlannedName, links: &[&Link]) {
        let links = links.iter().map(|link| (link.directory, link.entry));
        for (directory, entry) in std::iter::once((place.directory, place.entry)).chain(links) {
            self.build.insert(entry);
            self.touch(directory);
        }
        match self.metadata.binary_search_by_key(&place.entry, |place| place.entry) {
            Ok(at) => drop(self.metadata.remove(at)),
            Err(_) => self.kept -= 1,
        }
    }

    /// Marks a directory in which something is created or removed.
    pub(super) fn touch(&mut self, directory: Row<Directory>) {
        self.directories.insert(directory, Depth::All);
    }

    /// Returns whether nothing has to be done.
    pub(super) fn is_empty(&self) -> bool {
        self.build.is_empty()
            && self.metadata.is_empty()
            && self.new_directories.is_empty()
            && self.directories.is_empty()
    }
}

/// Matches the names of two indexes.
struct Pairing<'a> {
    installed: &'a Index,
    wanted: &'a Index,
    recheck: &'a Recheck,
    strangers: &'a HashSet<Row<Directory>>,
    /// The installed entry of each wanted one.
    entry_of: Vec<Option<Row<Entry>>>,
    /// The installed directory of each wanted one.
    directory_of: Vec<Option<Row<Directory>>>,
    root: Row<Directory>,
    fates: Vec<Fate>,
    /// The number of names of each inode.
    installed_names: Vec<u32>,
    wanted_names: Vec<u32>,
}

impl<'a> Pairing<'a> {
    fn new(
        installed: &'a Index,
        tree: &Ref,
        wanted: &'a Index,
        recheck: &'a Recheck,
        strangers: &'a HashSet<Row<Directory>>,
    ) -> Self {
        let mut installed_names = vec![0; installed.inodes().len()];
        for directory in tree.directories() {
            for entry in installed.directory(directory).entries() {
                installed_names[installed.entry(entry).inode.at()] += 1;
            }
        }
        Self {
            installed,
            wanted,
            recheck,
            strangers,
            entry_of: vec![None; wanted.entries().len()],
            directory_of: vec![None; wanted.directories().len()],
            root: tree.directory,
            fates: vec![Fate::Unknown; wanted.inodes().len()],
            installed_names,
            wanted_names: vec![0; wanted.inodes().len()],
        }
    }

    /// Matches a wanted directory with the installed one of the same path; the parent comes first. Returns whether each name of the installed one
    /// is wanted.
    fn pair(&mut self, directory: Row<Directory>, is_selected: &[bool]) -> bool {
        let row = self.wanted.directory(directory);
        if row.parent.is_none() {
            self.directory_of[directory.at()] = Some(self.root);
        }
        let (installed, wanted) = (self.installed, self.wanted);
        let old = self.directory_of[directory.at()];
        let names = old.into_iter().flat_map(|old| installed.names_in(old));
        let mut are_all_wanted = true;
        for (_, found, number) in pairs(names, wanted.names_in(directory)) {
            let Some(number) = number else {
                are_all_wanted = false;
                continue;
            };
            let entry = wanted.entry(number);
            self.entry_of[number.at()] = found;
            let found = found.map(|found| installed.entry(found).inode);
            match (self.wanted.inode(entry.inode).kind, found) {
                (InodeKind::Directory(below), Some(found)) => {
                    if let InodeKind::Directory(old) = self.installed.inode(found).kind
                        && !self.recheck.missing_directories.contains(&old)
                        && !self.strangers.contains(&below)
                    {
                        self.directory_of[below.at()] = Some(old);
                    }
                }
                (InodeKind::Directory(_), None) => {}
                (_, found) if is_selected[number.at()] => {
                    self.wanted_names[entry.inode.at()] += 1;
                    let fate = &mut self.fates[entry.inode.at()];
                    *fate = match (*fate, found) {
                        (_, Some(found)) if self.recheck.unlike.contains(&found) => Fate::New,
                        (Fate::Unknown, Some(found)) => Fate::Is(found),
                        (Fate::Is(known), Some(found)) if known == found => Fate::Is(known),
                        _ => Fate::New,
                    };
                }
                _ => {}
            }
        }
        are_all_wanted
    }

    /// Returns whether a file has to be rebuilt: its content, kind or set of names differs, or metadata that is never set in place.
    fn is_new(&self, inode: Row<Inode>, privilege: &Privilege) -> bool {
        let Fate::Is(old) = self.fates[inode.at()] else { return true };
        let (a, b) = (self.installed.inode(old), self.wanted.inode(inode));
        if self.installed_names[old.at()] != self.wanted_names[inode.at()] {
            return true;
        }
        let is_retimed = self.recheck.retimed.contains(&old);
        let differs = is_retimed || difference(self.installed, a, self.wanted, b, privilege).is_some();
        // A change in place would also affect the file's names elsewhere.
        if differs && self.recheck.linked.contains(&old) {
            return true;
        }
        let is_same = self.installed.is_same_content(a.kind, self.wanted, b.kind, |old, new| {
            self.installed.object(old) == self.wanted.object(new)
        });
        let changes = match b.kind {
            InodeKind::Regular(_) => privilege.makes_anew(self.installed.attributes(a), self.wanted.attributes(b)),
            _ => differs,
        };
        !is_same || changes
    }
}

/// Returns how the metadata differs, as far as this process may set it.
fn difference(installed: &Index, old: &Inode, wanted: &Index, new: &Inode, privilege: &Privilege) -> Option<Depth> {
    let (a, b) = (installed.attributes(old), wanted.attributes(new));
    if !privilege.would_be_equal(a, b) {
        Some(Depth::All)
    } else if privilege.keeps().time((old.mtime, old.mtime_ns)) != privilege.keeps().time((new.mtime, new.mtime_ns)) {
        Some(Depth::Time)
    } else {
        None
    }
}
