//! The difference between two indexes, which a delta bundle carries in place of its index (delta 5).
//!
//! A difference can be listed without the base. Given the base, [`Difference::apply`] returns exactly the bytes of the wanted index.

mod apply;
mod between;
mod encode;
mod listing;
mod names;
mod objects;
mod ostree;
mod parse;
mod reference;
mod shape;
#[cfg(test)]
mod tests;
mod times;
mod tree;
mod used;

use alloc::string::String;
use alloc::vec::Vec;

use crate::attributes::{Attributes, FileType};
use crate::index::{Device, Index, Object, Symlink, number};
use crate::num::at;
use crate::{BaseObject, Row, Rows, Table};

pub use listing::{Becomes, EditedName};
pub use ostree::{Beside, CommitObject, EditedCommit, EditedCommitRef, NewOsTreeFile, OsTreeDifference};
pub use reference::Reference;
pub use times::TimeChange;

/// The difference from a base to the wanted index. Every number in it is a valid row number in its table, except for rows of the base, which
/// [`Self::apply`] checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    base_objects: u32,
    base_refs: Vec<BaseRef>,
    refs: Vec<EditedRef>,
    edits: Vec<Edit>,
    /// Names, each followed by a zero byte.
    names: Vec<u8>,
    symlinks: Vec<Symlink>,
    targets: Vec<u8>,
    times: Vec<TimeChange>,
    attributes: Vec<Attributes>,
    objects: Vec<Object>,
    verity: [u8; 32],
    ostree: Option<OsTreeDifference>,
}

/// A ref of the base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseRef {
    /// Its name.
    pub name: String,
    /// Whether it is an OSTree commit.
    pub is_commit: bool,
}

/// A ref of the wanted index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditedRef {
    /// Its name (core 6.1).
    pub name: String,
    /// The base's ref, of the same kind, to which its edits are relative.
    pub from: Option<u16>,
    /// Its kind.
    pub kind: EditedKind,
}

/// The kind of an edited ref.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "core 6.1 lists the kinds")]
pub enum EditedKind {
    /// A tree: the edit of its root directory.
    Tree(Row<Edit>),
    /// An OSTree commit: its row of [`OsTreeDifference::refs`].
    Commit(u32),
}

/// How a name in a tree changes, and the file that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edit {
    name_at: u32,
    name_len: u8,
    /// The edit of the directory that contains it; `None` for a ref's root.
    pub parent: Option<Row<Self>>,
    /// The first edit of its block; 0 if there is none.
    first_edit: u32,
    /// The number of edits in its block.
    block_len: u32,
    /// How it changes.
    pub op: Op,
}

/// How a name changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "delta 5.4 lists them")]
pub enum Op {
    /// A directory is kept, and something below it changes.
    Within,
    /// A file is kept, and other names are linked to it.
    Named,
    /// The name is removed, with everything below it.
    Removed,
    /// The name is new, and so is its file.
    Added(NewFile),
    /// A new file replaces the one with this name.
    Replaced(NewFile),
    /// The name is new, and names the file of this edit.
    Linked(Row<Edit>),
    /// The file of this edit replaces the one with this name.
    Relinked(Row<Edit>),
    /// The file or directory is kept, with all its names, but some of its properties change.
    Changed(Changed),
}

/// A new file of any type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewFile {
    /// Its attributes, among [`Difference::attribute_rows`].
    pub attributes: Row<Attributes>,
    /// Seconds since 1970-01-01 UTC, and nanoseconds.
    pub mtime: (i64, u32),
    /// Its content.
    pub content: NewContent,
}

/// The properties of a kept file that change. Those that are `None` are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Its type, which does not change.
    pub file_type: FileType,
    /// Its new attributes.
    pub attributes: Option<Row<Attributes>>,
    /// Its new time. Without one, [`Difference::new_time`] derives it from the base's.
    pub mtime: Option<(i64, u32)>,
    /// Its new content; `None` for a directory, whose block lists its changes.
    pub content: Option<NewContent>,
}

/// The content of a file, by its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "core 6.4 lists the types")]
pub enum NewContent {
    /// A directory: its children are its block of edits.
    Directory,
    /// The object of a regular file.
    Regular(Reference),
    /// The target of a symbolic link, for [`Difference::symlink_target`].
    Symlink(Row<Symlink>),
    /// The numbers of a device.
    Device(Device),
    /// A fifo or a socket, which has no content.
    Plain,
}

fn row<T>(rows: &[T], number: u32) -> &T {
    &rows[at(number)]
}

/// Returns an object of the bases.
#[must_use]
pub(crate) fn base_object<'a>(bases: &[&'a Index], object: Row<BaseObject>) -> Option<&'a Object> {
    let (base, own) = BaseObject::locate(object, bases.iter().map(|base| base.objects().len()))?;
    Some(bases[base].object(own))
}

impl Table for Edit {
    const COUNT: &'static str = "the number of edits";
}

impl Op {
    /// Returns whether the base must have this name; otherwise it must not have it.
    fn is_of_base(self) -> bool {
        !matches!(self, Self::Added(_) | Self::Linked(_))
    }

    /// Returns the new file with this name.
    #[must_use]
    pub fn new_file(self) -> Option<NewFile> {
        match self {
            Self::Added(file) | Self::Replaced(file) => Some(file),
            _ => None,
        }
    }

    /// Returns the edit of the file of which this is another name.
    #[must_use]
    pub fn link(self) -> Option<Row<Edit>> {
        match self {
            Self::Linked(edit) | Self::Relinked(edit) => Some(edit),
            _ => None,
        }
    }

    /// Returns whether it is a directory that has a block of edits.
    fn has_block(self) -> bool {
        match self {
            Self::Within => true,
            Self::Changed(changed) => changed.file_type == FileType::Directory,
            _ => self.new_file().is_some_and(|file| file.content == NewContent::Directory),
        }
    }
}

impl Edit {
    /// Returns the edits of its block.
    #[must_use]
    pub fn block(&self) -> Rows<Self> {
        Rows::new(self.first_edit..self.first_edit + self.block_len)
    }
}

impl Difference {
    /// Returns how many objects the base has.
    #[must_use]
    pub fn base_objects(&self) -> u32 {
        self.base_objects
    }

    /// Returns the refs of the base, by name, including those that the wanted index lacks.
    #[must_use]
    pub fn base_refs(&self) -> &[BaseRef] {
        &self.base_refs
    }

    /// Returns the refs of the wanted index, by name.
    #[must_use]
    pub fn refs(&self) -> &[EditedRef] {
        &self.refs
    }

    /// Returns the edits of all trees, in tree order (core 6.1).
    #[must_use]
    pub fn edits(&self) -> &[Edit] {
        &self.edits
    }

    /// Returns an edit by its row.
    #[must_use]
    pub fn edit(&self, edit: Row<Edit>) -> &Edit {
        &self.edits[edit.at()]
    }

    /// Returns the name of an edit; empty for a ref's root.
    #[must_use]
    pub fn name(&self, edit: &Edit) -> &[u8] {
        &self.names[at(edit.name_at)..at(edit.name_at) + usize::from(edit.name_len)]
    }

    /// Returns the path of an edit below its ref's root, without a leading slash; empty for the root itself.
    #[must_use]
    pub fn path(&self, edit: &Edit) -> Vec<u8> {
        let mut names = Vec::new();
        let mut edit = edit;
        while let Some(parent) = edit.parent {
            names.push(self.name(edit));
            edit = self.edit(parent);
        }
        names.reverse();
        names.join(&b'/')
    }

    /// Returns the target of a symbolic link, by its row in [`NewContent::Symlink`].
    #[must_use]
    pub fn symlink_target(&self, symlink: Row<Symlink>) -> &[u8] {
        let span = self.symlinks[symlink.at()];
        &self.targets[at(span.at)..at(span.at) + at(span.len)]
    }

    /// Returns the type of the file that an edit names, if the edit states it.
    #[must_use]
    pub fn file_type(&self, edit: &Edit) -> Option<FileType> {
        match edit.op {
            Op::Within => Some(FileType::Directory),
            Op::Changed(changed) => Some(changed.file_type),
            Op::Linked(link) | Op::Relinked(link) => match self.edit(link).op {
                Op::Changed(changed) => Some(changed.file_type),
                op => op.new_file().map(|file| self.attributes[file.attributes.at()].file_type()),
            },
            op => op.new_file().map(|file| self.attributes[file.attributes.at()].file_type()),
        }
    }

    /// Returns the attributes of new and changed files.
    #[must_use]
    pub fn attribute_rows(&self) -> &[Attributes] {
        &self.attributes
    }

    /// Returns how the times of kept files change if their edit states no time, in ascending order of the old times.
    #[must_use]
    pub fn times(&self) -> &[TimeChange] {
        &self.times
    }

    /// Returns the new time of a kept file whose edit states none, from its time in the base.
    #[must_use]
    pub fn new_time(&self, old: (i64, u32)) -> (i64, u32) {
        times::new_time(&self.times, old)
    }

    /// Returns the carried objects, which are those of the wanted index that no base has, in the order of the wanted index.
    #[must_use]
    pub fn objects(&self) -> &[Object] {
        &self.objects
    }

    /// Returns the number of each carried object in the wanted index, up to the first that it does not have in this order.
    #[must_use]
    pub fn carried_in(&self, wanted: &Index) -> Vec<Row<Object>> {
        let mut carried = self.objects.iter().peekable();
        let rows = Row::all(wanted.objects());
        rows.filter(|(_, row)| carried.next_if_eq(row).is_some()).map(|(number, _)| number).collect()
    }

    /// Returns the fs-verity digest over the fs-verity digests of all objects of the wanted index (core 6, section 10).
    #[must_use]
    pub fn verity(&self) -> &[u8; 32] {
        &self.verity
    }

    /// Returns how the OSTree commits change, if a ref of the wanted index is one.
    #[must_use]
    pub fn ostree(&self) -> Option<&OsTreeDifference> {
        self.ostree.as_ref()
    }

    /// Returns the edit of the root of each ref that is a tree, with the base's ref to which it is relative.
    fn trees(&self) -> impl Iterator<Item = (Row<Edit>, Option<u16>)> {
        self.refs.iter().filter_map(|edited| match edited.kind {
            EditedKind::Tree(root) => Some((root, edited.from)),
            EditedKind::Commit(_) => None,
        })
    }
}
