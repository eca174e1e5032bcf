//! What makes one index of another: the structural difference that a delta bundle carries in place of its index (delta 5).
//!
//! A difference can be listed without the base. With it, [`Difference::apply`] gives exactly the bytes of the wanted index.

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
use core::ops::Range;

use crate::attributes::{Attributes, FileType};
use crate::index::{Device, Index, Object, number};
use crate::num::at;
use crate::{BaseObject, Row};

pub use listing::{Becomes, EditedName};
pub use ostree::{Beside, CommitObject, EditedCommit, EditedCommitRef, NewOsTreeFile, OsTreeDifference};
pub use reference::Reference;
pub use times::TimeChange;

/// What makes the wanted index of a base. Every number in it is a valid row number of the table that it points to, apart from those of
/// the base, which [`Self::apply`] compares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    base_objects: u32,
    base_refs: Vec<BaseRef>,
    refs: Vec<EditedRef>,
    edits: Vec<Edit>,
    /// Each with a zero byte behind it.
    names: Vec<u8>,
    symlinks: Vec<(u32, u32)>,
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
    /// What it is.
    pub kind: EditedKind,
}

/// What an edited ref is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "core 6.1 lists the kinds")]
pub enum EditedKind {
    /// A tree: the edit of its root directory.
    Tree(u32),
    /// An OSTree commit: its row of [`OsTreeDifference::refs`].
    Commit(u32),
}

/// What becomes of a name in a tree, and of what it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edit {
    name_at: u32,
    name_len: u8,
    /// The edit of the directory that contains it; `None` for a ref's root.
    pub parent: Option<u32>,
    /// First edit of its block; 0 where there is none.
    pub first_edit: u32,
    /// Edits of its block.
    pub block_len: u32,
    /// What becomes of it.
    pub op: Op,
}

/// What becomes of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "delta 5.4 lists them")]
pub enum Op {
    /// A directory that stays, but for what is below it.
    Within,
    /// A file that stays, and that other names are linked to.
    Named,
    /// It goes, with all that is below it.
    Removed,
    /// It comes.
    Added(NewFile),
    /// It comes in place of what had this name.
    Replaced(NewFile),
    /// It comes as another name of the file of this edit.
    Linked(u32),
    /// It comes as another name of the file of this edit, in place of what had this name.
    Relinked(u32),
    /// The file, or directory, stays, with all its names, but for some of what it is.
    Changed(Changed),
}

/// A file of any type, as it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewFile {
    /// Row of its attributes among [`Difference::attribute_rows`].
    pub attributes: u32,
    /// Seconds since 1970-01-01 UTC, and nanoseconds.
    pub mtime: (i64, u32),
    /// What it has beside that.
    pub content: Content,
}

/// What changes of a file that stays. What is `None` stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Its type, which stays.
    pub file_type: FileType,
    /// Row of its new attributes.
    pub attributes: Option<u32>,
    /// Its new time. Without one, [`Difference::new_time`] says what becomes of the base's.
    pub mtime: Option<(i64, u32)>,
    /// Its new content; `None` for a directory, which has its block.
    pub content: Option<Content>,
}

/// What a file has beside attributes and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "core 6.4 lists the types")]
pub enum Content {
    /// That of a directory is its block.
    Directory,
    /// The object of a regular file.
    Regular(Reference),
    /// The target of a symbolic link: its row, for [`Difference::symlink_target`].
    Symlink(u32),
    /// The numbers of a device.
    Device(Device),
    /// A fifo and a socket have nothing.
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

impl Op {
    /// Returns whether the base is to have that name; where not, it is to lack it.
    fn is_of_base(self) -> bool {
        !matches!(self, Self::Added(_) | Self::Linked(_))
    }

    /// Returns the file that comes with this name.
    #[must_use]
    pub fn new_file(self) -> Option<NewFile> {
        match self {
            Self::Added(file) | Self::Replaced(file) => Some(file),
            _ => None,
        }
    }

    /// Returns the edit of the file of which this is another name.
    #[must_use]
    pub fn link(self) -> Option<u32> {
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
            _ => self.new_file().is_some_and(|file| file.content == Content::Directory),
        }
    }
}

impl Edit {
    /// Returns the edits of its block.
    #[must_use]
    pub fn block(&self) -> Range<u32> {
        self.first_edit..self.first_edit + self.block_len
    }
}

impl Difference {
    /// Returns how many objects the base has.
    #[must_use]
    pub fn base_objects(&self) -> u32 {
        self.base_objects
    }

    /// Returns the refs of the base, by name: those that the wanted index has no more among them.
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

    /// Returns an edit by its number.
    #[must_use]
    pub fn edit(&self, edit: u32) -> &Edit {
        row(&self.edits, edit)
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

    /// Returns the target of a symbolic link, by its row in [`Content::Symlink`].
    #[must_use]
    pub fn symlink_target(&self, symlink: u32) -> &[u8] {
        let (start, len) = *row(&self.symlinks, symlink);
        &self.targets[at(start)..at(start) + at(len)]
    }

    /// Returns the type of what an edit names, where the edit knows it.
    #[must_use]
    pub fn file_type(&self, edit: &Edit) -> Option<FileType> {
        match edit.op {
            Op::Within => Some(FileType::Directory),
            Op::Changed(changed) => Some(changed.file_type),
            Op::Linked(link) | Op::Relinked(link) => match self.edit(link).op {
                Op::Changed(changed) => Some(changed.file_type),
                op => op.new_file().map(|file| row(&self.attributes, file.attributes).file_type()),
            },
            op => op.new_file().map(|file| row(&self.attributes, file.attributes).file_type()),
        }
    }

    /// Returns the attributes that new and changed files have.
    #[must_use]
    pub fn attribute_rows(&self) -> &[Attributes] {
        &self.attributes
    }

    /// Returns what becomes of the times of files that stay and have no time of their own in an edit, by ascending old time.
    #[must_use]
    pub fn times(&self) -> &[TimeChange] {
        &self.times
    }

    /// Returns the time of a file that stays, by its time in the base, where its edit does not say another.
    #[must_use]
    pub fn new_time(&self, old: (i64, u32)) -> (i64, u32) {
        times::new_time(&self.times, old)
    }

    /// Returns the carried objects: the rows of the wanted index's object table that the base's lacks, in the wanted table's order.
    #[must_use]
    pub fn objects(&self) -> &[Object] {
        &self.objects
    }

    /// Returns where the wanted index has each carried object, as far as it has them in their order.
    #[must_use]
    pub fn carried_in(&self, wanted: &Index) -> Vec<Row<Object>> {
        let mut carried = self.objects.iter().peekable();
        let rows = Row::all(wanted.objects());
        rows.filter(|(_, row)| carried.next_if_eq(row).is_some()).map(|(number, _)| number).collect()
    }

    /// fs-verity digest over the fs-verity digests of all objects of the wanted index (core 6, section 10).
    #[must_use]
    pub fn verity(&self) -> &[u8; 32] {
        &self.verity
    }

    /// Returns what becomes of the OSTree commits, if a ref of the wanted index is one.
    #[must_use]
    pub fn ostree(&self) -> Option<&OsTreeDifference> {
        self.ostree.as_ref()
    }

    /// Returns the refs that are trees: the edit of each one's root, and the base's ref to which it is relative.
    fn trees(&self) -> impl Iterator<Item = (u32, Option<u16>)> {
        self.refs.iter().filter_map(|edited| match edited.kind {
            EditedKind::Tree(root) => Some((root, edited.from)),
            EditedKind::Commit(_) => None,
        })
    }
}
