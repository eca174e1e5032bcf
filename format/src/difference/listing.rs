//! What a difference adds, changes and removes, as it says by itself.

use alloc::vec::Vec;

use crate::attributes::FileType;
use crate::num::at;
use crate::{Object, Row};

use super::{Content, Difference, EditedKind, NewFile, Op, Reference};

/// What becomes of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a caller shows each")]
pub enum Becomes {
    /// It comes.
    Added,
    /// It gets another content, target, device number or type, or names another file.
    Changed,
    /// Its attributes or time change, and nothing else.
    Metadata,
    /// It goes, with all that is below it.
    Removed,
}

/// A name of which a difference says what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EditedName<'a> {
    /// The ref in whose tree it stands.
    pub reference: &'a str,
    /// Its path below the ref's root, without a leading slash; empty for the root.
    pub path: Vec<u8>,
    /// What becomes of it.
    pub becomes: Becomes,
    /// What it names from then on, where the difference says that.
    pub file_type: Option<FileType>,
    /// The size of a content that is carried.
    pub size: Option<u64>,
    /// That content among the objects that are carried.
    pub carried: Option<Row<Object>>,
}

impl Difference {
    /// Returns the names that are edited in refs of kind 0, each tree's in tree order, and the refs that are removed. Times that change by a
    /// rule for all files ([`Self::times`]), and what lies below a directory that is removed, are not listed; names in commits are known
    /// only with the base.
    #[must_use]
    pub fn edited_names(&self) -> Vec<EditedName<'_>> {
        let mut list = Vec::new();
        for edited in self.refs() {
            if let EditedKind::Tree(root) = edited.kind {
                add_tree(self, &edited.name, root, &mut list);
            }
        }
        for gone in self.base_refs() {
            if !self.refs().iter().any(|edited| edited.name == gone.name) {
                list.push(EditedName {
                    reference: &gone.name,
                    path: Vec::new(),
                    becomes: Becomes::Removed,
                    file_type: None,
                    size: None,
                    carried: None,
                });
            }
        }
        list
    }
}

fn carried(content: Option<Content>) -> Option<Row<Object>> {
    match content {
        Some(Content::Regular(Reference::Carried(object))) => Some(object),
        _ => None,
    }
}

fn size_of(difference: &Difference, object: Option<Row<Object>>) -> Option<u64> {
    object.map(|object| difference.objects()[object.at()].size)
}

fn add_tree<'a>(difference: &'a Difference, reference: &'a str, root: u32, list: &mut Vec<EditedName<'a>>) {
    // They stand in tree order, up to the root of the next ref.
    let own = &difference.edits()[at(root)..];
    let len = own.iter().skip(1).take_while(|edit| edit.parent.is_some()).count();
    for edit in &own[..=len] {
        let (becomes, content) = match edit.op {
            Op::Within | Op::Named => (None, None),
            Op::Removed => (Some(Becomes::Removed), None),
            Op::Added(NewFile { content, .. }) => (Some(Becomes::Added), Some(content)),
            Op::Linked(_) => (Some(Becomes::Added), None),
            Op::Replaced(NewFile { content, .. }) => (Some(Becomes::Changed), Some(content)),
            Op::Relinked(_) => (Some(Becomes::Changed), None),
            Op::Changed(changed) if changed.content.is_some() => (Some(Becomes::Changed), changed.content),
            Op::Changed(_) => (Some(Becomes::Metadata), None),
        };
        if let Some(becomes) = becomes {
            let carried = carried(content);
            list.push(EditedName {
                reference,
                path: difference.path(edit),
                becomes,
                file_type: difference.file_type(edit),
                size: size_of(difference, carried),
                carried,
            });
        }
    }
}
