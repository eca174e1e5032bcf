//! Computes the difference between two indexes (delta 5).

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use crate::attributes::{Attributes, FileType};
use crate::bytes::Widths;
use crate::index::{Directory, Entry, Index, Inode, InodeKind, Object, Symlink};
use crate::num::fit;
use crate::walk::{TreeOrder, pairs};
use crate::{BaseObject, Error, Row, Rows, Table as _};

use super::names::put_name;
use super::ostree;
use super::times::{new_time, usual_changes};
use super::{BaseRef, Changed, Difference, Edit, EditedKind, EditedRef, NewContent, NewFile, Op, Reference};

impl Difference {
    /// Returns the difference from `base` to `wanted`, given that a target also has the objects of `others`. `compress` returns its second argument
    /// as a zstd frame with its first argument as prefix (core 8.1).
    ///
    /// # Errors
    /// Returns the errors of `compress`, and an error if an OSTree file of `base` has another content than in `wanted`.
    pub fn between(
        base: &Index,
        others: &[&Index],
        wanted: &Index,
        compress: impl FnOnce(&[u8], &[u8]) -> Result<Vec<u8>, String>,
    ) -> Result<Self, String> {
        let from = pair_refs(base, wanted);
        let mut pairing = Pairing {
            base,
            wanted,
            base_of: alloc::vec![None; wanted.entries().len()],
            continues: alloc::vec![None; wanted.inodes().len()],
            continued_by: alloc::vec![None; base.inodes().len()],
        };
        for (edited, from) in wanted.refs().iter().zip(&from) {
            if let Some(from) = from
                && edited.ostree.is_none()
            {
                pairing.pair_trees(base.refs()[usize::from(*from)].directory, edited.directory);
            }
        }
        let known = || core::iter::once(&base).chain(others).flat_map(|base| base.objects());
        let base_count = fit(known().count(), BaseObject::COUNT).map_err(|error| error.to_string())?;
        let mut base_objects = BTreeMap::new();
        for (row, object) in Rows::<BaseObject>::new(0..base_count).zip(known()) {
            base_objects.entry((object.id, object.size)).or_insert(row);
        }
        let mut objects = Vec::new();
        let object_of = wanted.objects().iter().map(|object| match base_objects.get(&(object.id, object.size)) {
            Some(known) => Ok(Reference::Base(*known)),
            None => {
                objects.push(*object);
                Row::after(objects.len() - 1).map(Reference::Carried)
            }
        });
        let object_of = object_of.collect::<Result<Vec<Reference>, Error>>().map_err(|error| error.to_string())?;
        let is_of_base = |old, new: Row<Object>| object_of[new.at()] == Reference::Base(BaseObject::of_first(old));
        let is_same = |old: &_, new: &_| ostree::is_same_file(base, old, wanted, new, is_of_base);
        let commits = ostree::between(base, wanted, is_same, compress)?;
        let mut writer = Writer {
            object_of,
            attribute_rows: BTreeMap::new(),
            leads: pairing.leads(),
            widths: Widths::default(),
            edit_of: alloc::vec![Row::FIRST; wanted.inodes().len()],
            is_used: Vec::new(),
            difference: Self {
                base_objects: base_count,
                base_refs: base
                    .refs()
                    .iter()
                    .map(|named| BaseRef { name: named.name.clone(), is_commit: named.ostree.is_some() })
                    .collect(),
                times: usual_changes(pairing.times()),
                objects,
                verity: *wanted.verity(),
                ..Self::default()
            },
            pairing,
        };
        let mut commit_refs = 0;
        for (edited, from) in wanted.refs().iter().zip(from) {
            let kind = match &edited.ostree {
                Some(_) => {
                    commit_refs += 1;
                    EditedKind::Commit(commit_refs - 1)
                }
                None => {
                    let from = from.map(|from| base.refs()[usize::from(from)].directory);
                    EditedKind::Tree(writer.add_tree(from, edited.directory))
                }
            };
            writer.difference.refs.push(EditedRef { name: edited.name.clone(), from, kind });
        }
        if let Some((mut commits, files)) = commits {
            for file in files {
                let attributes = writer.attribute_row(wanted.ostree_attributes(&file));
                commits.add_file(attributes, writer.content(file.kind));
            }
            writer.difference.ostree = Some(commits);
        }
        writer.finish().map_err(|error| error.to_string())
    }
}

/// Returns for each wanted ref the base's ref to which it is relative: the one with the same name, or else one whose name the wanted index does not
/// have.
fn pair_refs(base: &Index, wanted: &Index) -> Vec<Option<u16>> {
    let mut left: Vec<bool> = alloc::vec![true; base.refs().len()];
    let mut from = alloc::vec![None; wanted.refs().len()];
    for by_name in [true, false] {
        for (from, edited) in from.iter_mut().zip(wanted.refs()).filter(|(from, _)| from.is_none()) {
            let fits = base.refs().iter().zip(&left).position(|(named, left)| {
                *left && named.ostree.is_some() == edited.ostree.is_some() && (!by_name || named.name == edited.name)
            });
            if let Some(fits) = fits {
                left[fits] = false;
                *from = u16::try_from(fits).ok();
            }
        }
    }
    from
}

/// Which inodes of the base continue as inodes of the wanted index.
struct Pairing<'a> {
    base: &'a Index,
    wanted: &'a Index,
    /// For each wanted entry, the base's entry with the same path.
    base_of: Vec<Option<Row<Entry>>>,
    /// For each wanted inode, the base's inode that it continues.
    continues: Vec<Option<Row<Inode>>>,
    /// For each inode of the base, the wanted one that continues it.
    continued_by: Vec<Option<Row<Inode>>>,
}

/// Returns the names in two directories, each with its entry in the base, in the wanted index, or both.
fn blocks<'a>(
    base: &'a Index,
    left: Option<Row<Directory>>,
    wanted: &'a Index,
    right: Row<Directory>,
) -> impl Iterator<Item = (&'a [u8], Option<Row<Entry>>, Option<Row<Entry>>)> {
    pairs(left.into_iter().flat_map(|left| base.names_in(left)), wanted.names_in(right))
}

impl Pairing<'_> {
    fn file_type(index: &Index, inode: Row<Inode>) -> FileType {
        index.attributes(index.inode(inode)).file_type()
    }

    /// Pairs files of the same type at the same path, each once, in tree order.
    fn pair_trees(&mut self, base_root: Row<Directory>, wanted_root: Row<Directory>) {
        let (base, wanted) = (self.base, self.wanted);
        self.join(base.directory(base_root).inode, wanted.directory(wanted_root).inode);
        let mut order = TreeOrder::new((base_root, wanted_root));
        while let Some((left, right)) = order.pop() {
            for pair in blocks(base, Some(left), wanted, right) {
                let (_, Some(left), Some(right)) = pair else { continue };
                self.base_of[right.at()] = Some(left);
                let (left, right) = (base.entry(left).inode, wanted.entry(right).inode);
                let is_free = self.continued_by[left.at()].is_none() && self.continues[right.at()].is_none();
                if is_free && Self::file_type(base, left) == Self::file_type(wanted, right) {
                    self.join(left, right);
                }
                if let (InodeKind::Directory(left), InodeKind::Directory(right)) =
                    (base.inode(left).kind, wanted.inode(right).kind)
                {
                    order.push((left, right));
                }
            }
        }
    }

    fn join(&mut self, base: Row<Inode>, wanted: Row<Inode>) {
        self.continued_by[base.at()] = Some(wanted);
        self.continues[wanted.at()] = Some(base);
    }

    /// Returns the base's inode that a wanted one continues.
    fn continued(&self, wanted: Row<Inode>) -> Option<Row<Inode>> {
        self.continues[wanted.at()]
    }

    /// Returns whether an entry names the same continued file in both indexes, so that the name needs no edit.
    fn is_kept(&self, entry: Row<Entry>) -> bool {
        let base = self.base_of[entry.at()].map(|base| self.base.entry(base).inode);
        base.is_some() && self.continued(self.wanted.entry(entry).inode) == base
    }

    /// Returns the old and the new time of each file that continues.
    fn times(&self) -> Vec<((i64, u32), (i64, u32))> {
        let time = |inode: &Inode| (inode.mtime, inode.mtime_ns);
        let pairs = self.wanted.inodes().iter().zip(&self.continues);
        pairs.filter_map(|(wanted, base)| Some((time(self.base.inode((*base)?)), time(wanted)))).collect()
    }

    /// Returns for each wanted inode the name at which it is edited, which is its first kept name or else its first name, and whether other names are
    /// linked to it.
    fn leads(&self) -> Vec<Lead> {
        let mut leads: Vec<Lead> = alloc::vec![(None, false); self.wanted.inodes().len()];
        for (row, entry) in Row::all(self.wanted.entries()) {
            let is_kept = self.is_kept(row);
            let lead = &mut leads[entry.inode.at()];
            let is_lead = lead.0.is_none() && (is_kept || self.continued(entry.inode).is_none());
            if is_lead {
                lead.0 = Some(row);
            } else if !is_kept {
                lead.1 = true;
            }
        }
        leads
    }
}

/// The name at which a wanted inode is edited, and whether other names are linked to it.
type Lead = (Option<Row<Entry>>, bool);

/// Collects the edits.
struct Writer<'a> {
    pairing: Pairing<'a>,
    object_of: Vec<Reference>,
    attribute_rows: BTreeMap<&'a Attributes, Row<Attributes>>,
    leads: Vec<Lead>,
    /// For each wanted inode, the edit at its lead.
    edit_of: Vec<Row<Edit>>,
    /// For each edit, whether it or one below it changes something.
    is_used: Vec<bool>,
    difference: Difference,
    widths: Widths,
}

impl<'a> Writer<'a> {
    fn add_tree(&mut self, base_root: Option<Row<Directory>>, wanted_root: Row<Directory>) -> Row<Edit> {
        let (base, wanted) = (self.pairing.base, self.pairing.wanted);
        let inode = wanted.directory(wanted_root).inode;
        let op = match base_root {
            Some(_) => self.change(inode).map_or(Op::Within, Op::Changed),
            None => Op::Added(self.new_file(inode)),
        };
        let root = self.push(None, b"", op);
        self.is_used[root.at()] = true;
        let mut order = TreeOrder::new((root, base_root, wanted_root));
        while let Some((parent, left, right)) = order.pop() {
            for (name, left, right) in blocks(base, left, wanted, right) {
                let Some(right) = right else {
                    self.push(Some(parent), name, Op::Removed);
                    continue;
                };
                let entry = wanted.entry(right);
                let Some(op) = self.op(right) else { continue };
                let edit = self.push(Some(parent), name, op);
                if let InodeKind::Directory(directory) = wanted.inode(entry.inode).kind {
                    let stays = self.pairing.is_kept(right);
                    let left = left.filter(|_| stays).map(|left| base.inode(base.entry(left).inode).kind);
                    let left = match left {
                        Some(InodeKind::Directory(left)) => Some(left),
                        _ => None,
                    };
                    order.push((edit, left, directory));
                }
                if self.leads[entry.inode.at()].0 == Some(right) {
                    self.edit_of[entry.inode.at()] = edit;
                }
            }
        }
        root
    }

    /// Returns the edit for a wanted entry, if it needs one. Each directory gets one, since something below it may change.
    fn op(&mut self, entry: Row<Entry>) -> Option<Op> {
        let inode = self.pairing.wanted.entry(entry).inode;
        let (lead, is_linked) = self.leads[inode.at()];
        let is_new = self.pairing.base_of[entry.at()].is_none();
        match (self.pairing.is_kept(entry), lead == Some(entry)) {
            (true, true) => {
                let changed = self.change(inode).map(Op::Changed);
                let is_directory = matches!(self.pairing.wanted.inode(inode).kind, InodeKind::Directory(_));
                changed.or(is_directory.then_some(Op::Within)).or(is_linked.then_some(Op::Named))
            }
            (true, false) => None,
            (false, true) if is_new => Some(Op::Added(self.new_file(inode))),
            (false, true) => Some(Op::Replaced(self.new_file(inode))),
            // The inode's number takes the place of the edit's until all edits are numbered.
            (false, false) if is_new => Some(Op::Linked(inode.cast())),
            (false, false) => Some(Op::Relinked(inode.cast())),
        }
    }

    fn push(&mut self, parent: Option<Row<Edit>>, name: &[u8], op: Op) -> Row<Edit> {
        let difference = &mut self.difference;
        let edit = self.widths.row(difference.edits.len());
        let name_at = self.widths.fit(difference.names.len(), "the length of all names");
        let name_len = self.widths.fit(name.len(), "the length of a name");
        put_name(&mut difference.names, name);
        difference.edits.push(Edit { name_at, name_len, parent, first_edit: 0, block_len: 0, op });
        self.is_used.push(op != Op::Within);
        let mut above = parent.filter(|_| op != Op::Within);
        // Above a directory that is marked, all are marked already.
        while let Some(directory) = above.filter(|directory| !self.is_used[directory.at()]) {
            self.is_used[directory.at()] = true;
            above = self.difference.edits[directory.at()].parent;
        }
        edit
    }

    fn new_file(&mut self, inode: Row<Inode>) -> NewFile {
        let wanted = self.pairing.wanted;
        let found = wanted.inode(inode);
        let attributes = self.attribute_row(wanted.attributes(found));
        NewFile { attributes, mtime: (found.mtime, found.mtime_ns), content: self.content(found.kind) }
    }

    /// Returns the changes of a wanted inode that continues one of the base.
    fn change(&mut self, inode: Row<Inode>) -> Option<Changed> {
        let (base, wanted) = (self.pairing.base, self.pairing.wanted);
        let (old, new) = (base.inode(self.pairing.continued(inode)?), wanted.inode(inode));
        let attributes = wanted.attributes(new);
        let is_of_base = |old, new: Row<Object>| self.object_of[new.at()] == Reference::Base(BaseObject::of_first(old));
        let is_same = base.is_same_content(old.kind, wanted, new.kind, is_of_base);
        let mtime = (new.mtime, new.mtime_ns);
        let usual = new_time(&self.difference.times, (old.mtime, old.mtime_ns));
        let changed = Changed {
            file_type: attributes.file_type(),
            attributes: (base.attributes(old) != attributes).then(|| self.attribute_row(attributes)),
            mtime: (mtime != usual).then_some(mtime),
            content: (!is_same).then(|| self.content(new.kind)),
        };
        let is_change = changed.attributes.is_some() || changed.mtime.is_some() || changed.content.is_some();
        is_change.then_some(changed)
    }

    fn content(&mut self, kind: InodeKind) -> NewContent {
        let wanted = self.pairing.wanted;
        match kind {
            InodeKind::Directory(_) => NewContent::Directory,
            InodeKind::Regular(object) => NewContent::Regular(self.object_of[object.at()]),
            InodeKind::Symlink(symlink) => NewContent::Symlink(self.symlink(wanted.symlink_target(symlink))),
            InodeKind::CharDevice(device) | InodeKind::BlockDevice(device) => NewContent::Device(wanted.device(device)),
            InodeKind::Fifo | InodeKind::Socket => NewContent::Plain,
        }
    }

    fn symlink(&mut self, target: &[u8]) -> Row<Symlink> {
        let difference = &mut self.difference;
        let row = self.widths.row(difference.symlinks.len());
        let at = self.widths.fit(difference.targets.len(), "the length of all targets");
        let len = self.widths.fit(target.len(), "the length of a symbolic link's target");
        difference.symlinks.push(Symlink { at, len });
        difference.targets.extend(target);
        row
    }

    fn attribute_row(&mut self, attributes: &'a Attributes) -> Row<Attributes> {
        let (rows, widths) = (&mut self.difference.attributes, &mut self.widths);
        *self.attribute_rows.entry(attributes).or_insert_with(|| {
            rows.push(attributes.clone());
            widths.row(rows.len() - 1)
        })
    }

    /// Removes the directories below which nothing changes, and numbers the edits.
    fn finish(self) -> Result<Difference, Error> {
        let Self { mut difference, is_used, edit_of, widths, .. } = self;
        widths.check()?;
        let mut used: usize = 0;
        let numbers = is_used.iter().map(|is_used| {
            used += usize::from(*is_used);
            Row::after(used.saturating_sub(1))
        });
        let numbers = numbers.collect::<Result<Vec<Row<Edit>>, Error>>()?;
        let mut edits: Vec<Edit> = Vec::with_capacity(used);
        let mut names = Vec::new();
        for (edit, _) in difference.edits.iter().zip(is_used).filter(|(_, is_used)| *is_used) {
            let own = fit(edits.len(), Edit::COUNT)?;
            let name = difference.name(edit);
            let mut edit = Edit { name_at: fit(names.len(), "the length of all names")?, ..*edit };
            put_name(&mut names, name);
            if let Op::Linked(link) | Op::Relinked(link) = &mut edit.op {
                *link = numbers[edit_of[link.at()].at()];
            }
            if let Some(parent) = &mut edit.parent {
                *parent = numbers[parent.at()];
                let parent = &mut edits[parent.at()];
                if parent.block_len == 0 {
                    parent.first_edit = own;
                }
                parent.block_len += 1;
            }
            edits.push(edit);
        }
        for edited in &mut difference.refs {
            if let EditedKind::Tree(root) = &mut edited.kind {
                *root = numbers[root.at()];
            }
        }
        (difference.edits, difference.names) = (edits, names);
        Ok(difference)
    }
}
