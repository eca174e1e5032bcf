//! What a difference adds, changes and removes, as it says by itself.

use alloc::vec::Vec;

use crate::attributes::FileType;
use crate::num::at;
use crate::walk::TreeOrder;

use super::{
    CommitObject, Content, Difference, EditedKind, NewFile, Op, OsTreeDifference, Reference, TreeEdit, TreeOp,
};

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
    /// The number of that content among the objects that are carried.
    pub carried: Option<u32>,
}

impl Difference {
    /// Returns the names of all trees of which it says something, each tree's in tree order. Times that change by a rule for all files
    /// ([`Self::times`]), and what lies below a directory that goes, are not listed.
    #[must_use]
    pub fn edited_names(&self) -> Vec<EditedName<'_>> {
        let mut list = Vec::new();
        for edited in self.refs() {
            match edited.kind {
                EditedKind::Tree(root) => add_tree(self, &edited.name, root, &mut list),
                EditedKind::Commit(own) => add_commit(self, &edited.name, own, &mut list),
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

fn carried(content: Option<Content>) -> Option<u32> {
    match content {
        Some(Content::Regular(Reference::Carried(object))) => Some(object),
        _ => None,
    }
}

fn size_of(difference: &Difference, object: Option<u32>) -> Option<u64> {
    object.map(|object| difference.objects()[at(object)].size)
}

fn add_tree<'a>(difference: &'a Difference, reference: &'a str, root: u32, list: &mut Vec<EditedName<'a>>) {
    // They are laid down in tree order, up to the root of the next ref.
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

fn add_commit<'a>(difference: &'a Difference, reference: &'a str, own: u32, list: &mut Vec<EditedName<'a>>) {
    let Some(ostree) = difference.ostree() else { return };
    let commit = &ostree.commits()[at(ostree.refs()[at(own)].commit)].commit;
    let CommitObject::Carried { tree: Reference::Carried(root), .. } = commit else {
        return;
    };
    let mut order = TreeOrder::new((*root, Vec::new()));
    while let Some((tree, prefix)) = order.pop() {
        for edit in ostree.edits(&ostree.trees()[at(tree)]) {
            let mut path: Vec<u8> = prefix.clone();
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend(ostree.name(edit));
            list.extend(name_in_dirtree(difference, ostree, edit, reference, path.clone()));
            if let Some(Reference::Carried(tree)) = edit.op.tree() {
                order.push((tree, path));
            }
        }
    }
}

fn name_in_dirtree<'a>(
    difference: &Difference,
    ostree: &OsTreeDifference,
    edit: &TreeEdit,
    reference: &'a str,
    path: Vec<u8>,
) -> Option<EditedName<'a>> {
    let becomes = match edit.op {
        TreeOp::Removed => Becomes::Removed,
        TreeOp::FileAdded(_) | TreeOp::DirectoryAdded { .. } => Becomes::Added,
        TreeOp::FileReplaced(_) | TreeOp::DirectoryReplaced { .. } => Becomes::Changed,
        TreeOp::DirectoryChanged { meta: Some(_), .. } => Becomes::Metadata,
        TreeOp::DirectoryChanged { meta: None, .. } => return None,
    };
    let file = match edit.op.file() {
        Some(Reference::Carried(file)) => ostree.files().get(at(file)),
        _ => None,
    };
    let of_file = file.map(|file| difference.attribute_rows()[at(file.attributes)].file_type());
    let file_type = if edit.op.meta().is_some() { Some(FileType::Directory) } else { of_file };
    let carried = carried(file.map(|file| file.content));
    let size = size_of(difference, carried);
    Some(EditedName { reference, path, becomes, file_type, size, carried })
}
