//! Makes the wanted index from a base and a difference (delta 5.6).

use alloc::vec::Vec;

use crate::attributes::FileType;
use crate::digest_map::DigestMap;
use crate::index::{Directory, Index, IndexBuilder, Inode, InodeKind, Node, Object};
use crate::num::at;

use super::{Changed, Difference, Edit, EditedKind, NewContent, NewFile, Op, Reference, base_object, row};
use crate::index::row_fault;
use crate::walk::{TreeOrder, pairs};
use crate::{BaseObject, Error, Row};

/// For each object of the bases, the one that represents it, since several bases may have the same object; empty if there is only one base.
pub(super) type Same = Vec<Row<BaseObject>>;

impl Difference {
    /// Returns the bytes of the wanted index. Only their digest tells whether `bases` were the right ones.
    ///
    /// # Errors
    /// Returns an error if the edits do not apply to the first base, or the bases have another number of objects.
    pub fn apply(&self, bases: &[&Index]) -> Result<Vec<u8>, Error> {
        let base = self.check_bases(bases)?;
        let same = same_objects(bases);
        let mut trees = Trees {
            difference: self,
            base,
            same: &same,
            of_edits: self.resolve(base)?,
            changed: alloc::vec![None; base.inodes().len()],
            inode_of_base: alloc::vec![None; base.inodes().len()],
            inode_of_edit: alloc::vec![None; self.edits.len()],
            builder: IndexBuilder::default(),
        };
        trees.find_changed()?;
        let ostree = self.ostree.as_ref();
        let added = ostree.map(|ostree| ostree.add_objects(base, &mut trees.builder)).transpose()?;
        for edited in &self.refs {
            match edited.kind {
                EditedKind::Tree(root) => {
                    trees.builder.begin_ref(&edited.name);
                    let from = edited.from.map(|from| base.refs()[usize::from(from)].directory);
                    trees.add_tree(root, from);
                }
                EditedKind::Commit(own) => {
                    let (Some(ostree), Some(added)) = (ostree, &added) else { continue };
                    let known = *row(&added.known, own);
                    trees.builder.commit_ref(&edited.name, known, &row(ostree.refs(), own).collection);
                }
            }
        }
        let mut builder = trees.builder;
        if let Some(added) = added {
            added.add_files(self, base, &same, &mut builder);
        }
        self.check_objects(&builder)?;
        let contents = builder.contents().to_vec();
        let objects = contents.iter().map(|content| self.object(bases, *content)).collect::<Result<Vec<_>, _>>()?;
        builder.finish(objects.into_iter(), &self.verity)
    }

    /// Returns the base to which the edits are relative.
    fn check_bases<'a>(&self, bases: &[&'a Index]) -> Result<&'a Index, Error> {
        let other =
            || row_fault("the difference is to another base: it has other refs or another number of objects", 0);
        let base = *bases.first().ok_or_else(other)?;
        let same_refs = self.base_refs.len() == base.refs().len()
            && self
                .base_refs
                .iter()
                .zip(base.refs())
                .all(|(own, named)| own.name == named.name && own.is_commit == named.ostree.is_some());
        let objects = || bases.iter().flat_map(|base| base.objects());
        if !same_refs || at(self.base_objects) != objects().count() {
            return Err(other());
        }
        let mut carried: Vec<&[u8; 32]> = self.objects.iter().map(|object| &object.id).collect();
        carried.sort_unstable();
        match objects().position(|object| carried.binary_search(&&object.id).is_ok()) {
            Some(object) => Err(row_fault("an object is carried that the bases have", object)),
            None => Ok(base),
        }
    }

    /// Returns the number by which the builder knows an object: those of the base come first.
    fn content(&self, object: Reference, same: &Same) -> u32 {
        match object {
            Reference::Base(object) => same.get(object.at()).unwrap_or(&object).number(),
            Reference::Carried(object) => self.base_objects + object.number(),
        }
    }

    fn object(&self, bases: &[&Index], content: u32) -> Result<Object, Error> {
        let object = match content.checked_sub(self.base_objects) {
            Some(carried) => self.objects.get(at(carried)),
            None => Row::new(content).and_then(|object| base_object(bases, object)),
        };
        object.copied().ok_or_else(|| row_fault("the bases lack an object", at(content)))
    }

    pub(super) fn node(&self, content: NewContent, same: &Same, children: u32) -> Node<'_> {
        match content {
            NewContent::Directory => Node::Directory { children },
            NewContent::Regular(object) => Node::Regular { content: self.content(object, same) },
            NewContent::Symlink(symlink) => Node::Symlink(self.symlink_target(symlink)),
            NewContent::Device(device) => Node::Device(device),
            NewContent::Plain => Node::Plain,
        }
    }

    /// Checks that the carried objects are in the order of the wanted index.
    fn check_objects(&self, builder: &IndexBuilder) -> Result<(), Error> {
        let carried = builder.contents().iter().filter_map(|content| content.checked_sub(self.base_objects));
        match carried.zip(0..).find(|(object, place)| object != place) {
            Some((object, _)) => Err(row_fault("a carried object is in another place than in the index", at(object))),
            None => Ok(()),
        }
    }

    /// Finds what the base has for the name of each edit.
    fn resolve(&self, base: &Index) -> Result<Vec<OfBase>, Error> {
        let mut found: Vec<OfBase> = Vec::with_capacity(self.edits.len());
        let mut roots = self.trees();
        for (own, edit) in self.edits.iter().enumerate() {
            let Some(parent) = edit.parent else {
                let from = roots.next().and_then(|(_, from)| from);
                let directory = from.map(|from| base.refs()[usize::from(from)].directory);
                let inode = directory.map(|directory| base.directory(directory).inode);
                let grown = directory.map_or(0, |directory| base.directory(directory).children);
                found.push(OfBase { directory, inode, children: grown });
                continue;
            };
            let parent = parent.at();
            let directory = found[parent].directory.map(|directory| base.directory(directory));
            let entry = directory.and_then(|directory| base.find_entry(directory, self.name(edit)));
            if entry.is_some() != edit.op.is_of_base() {
                return Err(row_fault("an edit does not fit the base: a name is missing there, or there already", own));
            }
            let inode = entry.map(|(_, entry)| entry.inode);
            let kind = inode.map(|inode| base.inode(inode).kind);
            let is_directory = matches!(kind, Some(InodeKind::Directory(_)));
            let fits = match edit.op {
                Op::Within => is_directory,
                Op::Named => !is_directory,
                Op::Changed(changed) => {
                    inode.is_some_and(|inode| base.attributes(base.inode(inode)).file_type() == changed.file_type)
                }
                _ => true,
            };
            if !fits {
                return Err(row_fault("an edit does not fit the base: a file has another type there", own));
            }
            match edit.op {
                Op::Added(_) | Op::Linked(_) => found[parent].children = found[parent].children.saturating_add(1),
                Op::Removed => found[parent].children = found[parent].children.saturating_sub(1),
                _ => {}
            }
            // A replaced directory keeps nothing of the one in the base.
            let directory = match kind {
                Some(InodeKind::Directory(directory)) if matches!(edit.op, Op::Within | Op::Changed(_)) => {
                    Some(directory)
                }
                _ => None,
            };
            let children = directory.map_or(0, |directory| base.directory(directory).children);
            found.push(OfBase { directory, inode, children });
        }
        Ok(found)
    }
}

/// Finds equal objects of several bases: each content has only one row in the wanted index.
fn same_objects(bases: &[&Index]) -> Same {
    if bases.len() < 2 {
        return Same::new();
    }
    let mut known = DigestMap::default();
    let objects = (0..u32::MAX).zip(bases.iter().flat_map(|base| base.objects()));
    objects.filter_map(|(row, object)| Row::new(known.get_or_insert(object.id, row))).collect()
}

/// What the base has for the name of an edit.
#[derive(Clone, Copy)]
struct OfBase {
    /// The directory that is kept.
    directory: Option<Row<Directory>>,
    inode: Option<Row<Inode>>,
    /// How many children the directory has in the wanted index.
    children: u32,
}

/// Builds the wanted trees.
struct Trees<'a> {
    difference: &'a Difference,
    base: &'a Index,
    same: &'a Same,
    of_edits: Vec<OfBase>,
    /// For each inode of the base, its changes.
    changed: Vec<Option<Changed>>,
    inode_of_base: Vec<Option<Row<Inode>>>,
    inode_of_edit: Vec<Option<Row<Inode>>>,
    builder: IndexBuilder,
}

/// A file of the wanted index.
#[derive(Clone, Copy)]
enum File {
    /// A kept file.
    Base(Row<Inode>),
    /// A new file, of this edit.
    New(Row<Edit>, NewFile),
}

impl Trees<'_> {
    fn find_changed(&mut self) -> Result<(), Error> {
        for (own, (edit, found)) in self.difference.edits.iter().zip(&self.of_edits).enumerate() {
            let (Op::Changed(changed), Some(inode)) = (edit.op, found.inode) else { continue };
            if self.changed[inode.at()].replace(changed).is_some() {
                return Err(row_fault("a file is changed at two of its names", own));
            }
        }
        Ok(())
    }

    /// Builds a tree in tree order (core 6.1).
    fn add_tree(&mut self, root: Row<Edit>, from: Option<Row<Directory>>) {
        let (difference, base) = (self.difference, self.base);
        let file = self.file_of(root);
        self.add_inode(file, self.of_edits[root.at()].children);
        let mut order = TreeOrder::new((Some(root), from));
        while let Some((edit, directory)) = order.pop() {
            let entries = directory.into_iter().flat_map(|directory| base.names_in(directory));
            let edits = edit.into_iter().flat_map(|edit| difference.edit(edit).block());
            let edits = edits.map(|edit| (difference.name(difference.edit(edit)), edit));
            for (name, entry, edit) in pairs(entries, edits) {
                let op = edit.map(|edit| difference.edit(edit).op);
                let file = match (op.and_then(Op::link).or(edit), entry) {
                    (Some(_), _) if op == Some(Op::Removed) => continue,
                    (Some(edit), _) => self.file_of(edit),
                    (None, Some(entry)) => File::Base(base.entry(entry).inode),
                    (None, None) => continue,
                };
                let known = self.inode_of(file);
                self.builder.entry(name, known);
                if known.is_some() {
                    continue;
                }
                let directory = self.directory_of(file);
                let children = match (edit, directory) {
                    (Some(edit), _) => self.of_edits[edit.at()].children,
                    (None, Some(directory)) => base.directory(directory).children,
                    (None, None) => 0,
                };
                if self.add_inode(file, children) == FileType::Directory {
                    order.push((edit, directory));
                }
            }
        }
    }

    /// Returns the file of an edit that is not a link.
    fn file_of(&self, edit: Row<Edit>) -> File {
        match self.difference.edit(edit).op.new_file() {
            Some(file) => File::New(edit, file),
            None => File::Base(self.of_edits[edit.at()].inode.unwrap_or(Row::FIRST)),
        }
    }

    /// Returns the directory of the base that a kept directory was.
    fn directory_of(&self, file: File) -> Option<Row<Directory>> {
        let File::Base(inode) = file else { return None };
        match self.base.inode(inode).kind {
            InodeKind::Directory(directory) => Some(directory),
            _ => None,
        }
    }

    /// Returns the inode of a file, if it was added already.
    fn inode_of(&self, file: File) -> Option<Row<Inode>> {
        match file {
            File::Base(inode) => self.inode_of_base[inode.at()],
            File::New(edit, _) => self.inode_of_edit[edit.at()],
        }
    }

    /// Adds a file's inode, and returns its type.
    fn add_inode(&mut self, file: File, children: u32) -> FileType {
        let (difference, base, same) = (self.difference, self.base, self.same);
        let (place, attributes, mtime, node) = match file {
            File::New(edit, file) => {
                let attributes = &difference.attributes[file.attributes.at()];
                let node = difference.node(file.content, same, children);
                (&mut self.inode_of_edit[edit.at()], attributes, file.mtime, node)
            }
            File::Base(inode) => {
                let found = base.inode(inode);
                let changed = self.changed[inode.at()];
                let attributes = changed.and_then(|changed| changed.attributes);
                let attributes =
                    attributes.map_or(base.attributes(found), |attributes| &difference.attributes[attributes.at()]);
                let mtime = changed.and_then(|changed| changed.mtime);
                let mtime = mtime.unwrap_or_else(|| difference.new_time((found.mtime, found.mtime_ns)));
                let node = match (changed.and_then(|changed| changed.content), found.kind) {
                    (Some(content), _) => difference.node(content, same, children),
                    (None, InodeKind::Directory(_)) => Node::Directory { children },
                    (None, kind) => base.node(kind),
                };
                (&mut self.inode_of_base[inode.at()], attributes, mtime, node)
            }
        };
        *place = Some(self.builder.inode(attributes, mtime, node));
        attributes.file_type()
    }
}
