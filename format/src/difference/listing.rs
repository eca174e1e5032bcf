//! Lists what a difference adds, changes and removes, without the base.

use alloc::vec::Vec;

use crate::attributes::FileType;
use crate::{Object, Row};

use super::{Difference, Edit, EditedKind, NewContent, NewFile, Op, Reference};

/// How a name changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a caller shows each")]
pub enum Becomes {
    /// The name is new.
    Added,
    /// The name gets another file, or its file's content, target, device number or type changes.
    Changed,
    /// Only its file's attributes or time change.
    Metadata,
    /// The name is removed, with everything below it.
    Removed,
}

/// A name that a difference lists, and how it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EditedName<'a> {
    /// The ref whose tree it is in.
    pub reference: &'a str,
    /// Its path below the ref's root, without a leading slash; empty for the root.
    pub path: Vec<u8>,
    /// How it changes.
    pub becomes: Becomes,
    /// Whether the directory that contains it is new.
    pub is_below_new: bool,
    /// The type of the file that it names afterwards, if the difference states it.
    pub file_type: Option<FileType>,
    /// The size of its content, if that is carried.
    pub size: Option<u64>,
    /// The number of its content among the carried objects.
    pub carried: Option<Row<Object>>,
}

impl Difference {
    /// Returns the names that are edited in refs of kind 0, in tree order for each tree, and the refs that are removed. It does not list times that
    /// change by a rule for all files ([`Self::times`]), names below a removed directory, and names in commits, which are known only with the base.
    pub fn edited_names(&self) -> impl Iterator<Item = EditedName<'_>> {
        let trees = self.refs().iter().filter_map(|edited| match edited.kind {
            EditedKind::Tree(root) => Some((&*edited.name, root)),
            EditedKind::Commit(_) => None,
        });
        let is_edited = |name: &str| self.refs().iter().any(|edited| &*edited.name == name);
        let gone = self.base_refs().iter().filter(move |gone| !is_edited(&gone.name)).map(|gone| EditedName {
            reference: &gone.name,
            path: Vec::new(),
            becomes: Becomes::Removed,
            is_below_new: false,
            file_type: None,
            size: None,
            carried: None,
        });
        trees.flat_map(|(reference, root)| in_tree(self, reference, root)).chain(gone)
    }
}

fn carried(content: Option<NewContent>) -> Option<Row<Object>> {
    match content {
        Some(NewContent::Regular(Reference::Carried(object))) => Some(object),
        _ => None,
    }
}

fn size_of(difference: &Difference, object: Option<Row<Object>>) -> Option<u64> {
    object.map(|object| difference.objects()[object.at()].size)
}

fn in_tree<'a>(
    difference: &'a Difference,
    reference: &'a str,
    root: Row<Edit>,
) -> impl Iterator<Item = EditedName<'a>> {
    // The edits are in tree order, and end at the root of the next ref.
    let own = &difference.edits()[root.at()..];
    let len = own.iter().skip(1).take_while(|edit| edit.parent.is_some()).count();
    own[..=len].iter().filter_map(move |edit| {
        let (becomes, content) = match edit.op {
            Op::Within | Op::Named => return None,
            Op::Removed => (Becomes::Removed, None),
            Op::Added(NewFile { content, .. }) => (Becomes::Added, Some(content)),
            Op::Linked(_) => (Becomes::Added, None),
            Op::Replaced(NewFile { content, .. }) => (Becomes::Changed, Some(content)),
            Op::Relinked(_) => (Becomes::Changed, None),
            Op::Changed(changed) if changed.content.is_some() => (Becomes::Changed, changed.content),
            Op::Changed(_) => (Becomes::Metadata, None),
        };
        let carried = carried(content);
        Some(EditedName {
            reference,
            path: difference.path(edit),
            becomes,
            is_below_new: edit.parent.is_some_and(|parent| difference.edit(parent).op.new_file().is_some()),
            file_type: difference.file_type(edit),
            size: size_of(difference, carried),
            carried,
        })
    })
}
