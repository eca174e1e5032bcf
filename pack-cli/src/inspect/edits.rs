//! What a delta bundle adds, changes and removes, as it says by itself (spec 6.7).

use sealift_format::difference::{Content, EditedKind, NewFile, Op, Reference, TreeOp};
use sealift_format::{Delta, Difference, FileType};

use crate::diff::Change;

/// A name of which a delta bundle says what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EditedName<'a> {
    /// The ref in whose tree it stands.
    pub reference: &'a str,
    /// Its path below the ref's root, without a leading slash; empty for the root.
    pub path: Vec<u8>,
    /// What becomes of it. [`Change::Moved`] is never among these: that takes the base.
    pub change: Change,
    /// What it names from then on, where the delta says that.
    pub file_type: Option<FileType>,
    /// The size of a content that the bundle carries.
    pub size: Option<u64>,
}

/// The names of all trees of which the delta says something, each tree's in tree order. Times that change by a rule for all files, and
/// what lies below a directory that goes, are not listed.
#[must_use]
pub fn edits(delta: &Delta) -> Vec<EditedName<'_>> {
    let difference = &delta.difference;
    let mut list = Vec::new();
    for edited in difference.refs() {
        match edited.kind {
            EditedKind::Tree(root) => add_tree(difference, &edited.name, root, &mut list),
            EditedKind::Commit(own) => add_commit(difference, &edited.name, own, &mut list),
        }
    }
    for gone in difference.base_refs() {
        if !difference.refs().iter().any(|edited| edited.name == gone.name) {
            let (change, path) = (Change::Removed, Vec::new());
            list.push(EditedName { reference: &gone.name, path, change, file_type: None, size: None });
        }
    }
    list
}

fn at(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn size_of(difference: &Difference, content: Option<Content>) -> Option<u64> {
    match content {
        Some(Content::Regular(Reference::Carried(object))) => Some(difference.objects()[at(object)].size),
        _ => None,
    }
}

fn add_tree<'a>(difference: &'a Difference, reference: &'a str, root: u32, list: &mut Vec<EditedName<'a>>) {
    let mut blocks = vec![root..root + 1];
    // In the order in which the tree is laid down: a block, and then what is below it.
    while let Some(mut block) = blocks.pop() {
        let Some(number) = block.next() else { continue };
        blocks.push(block);
        let edit = difference.edit(number);
        let (change, content) = match edit.op {
            Op::Within | Op::Named => (None, None),
            Op::Removed => (Some(Change::Removed), None),
            Op::Added(NewFile { content, .. }) => (Some(Change::Added), Some(content)),
            Op::Linked(_) => (Some(Change::Added), None),
            Op::Replaced(NewFile { content, .. }) => (Some(Change::Changed), Some(content)),
            Op::Relinked(_) => (Some(Change::Changed), None),
            Op::Changed(changed) if changed.content.is_some() => (Some(Change::Changed), changed.content),
            Op::Changed(_) => (Some(Change::Metadata), None),
        };
        if let Some(change) = change {
            list.push(EditedName {
                reference,
                path: difference.path(edit),
                change,
                file_type: difference.file_type(edit),
                size: size_of(difference, content),
            });
        }
        blocks.push(edit.block());
    }
}

fn add_commit<'a>(difference: &'a Difference, reference: &'a str, own: u32, list: &mut Vec<EditedName<'a>>) {
    let Some(ostree) = difference.ostree() else { return };
    let commit = &ostree.commits()[at(ostree.refs()[at(own)].commit)].commit;
    let sealift_format::difference::CommitObject::Carried { tree: Reference::Carried(root), .. } = commit else {
        return;
    };
    let mut pending = vec![(*root, Vec::new())];
    while let Some((tree, prefix)) = pending.pop() {
        let below = pending.len();
        for edit in ostree.edits(&ostree.trees()[at(tree)]) {
            let mut path: Vec<u8> = prefix.clone();
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend(ostree.name(edit));
            let change = match edit.op {
                TreeOp::Removed => Some(Change::Removed),
                TreeOp::FileAdded(_) | TreeOp::DirectoryAdded { .. } => Some(Change::Added),
                TreeOp::FileReplaced(_) | TreeOp::DirectoryReplaced { .. } => Some(Change::Changed),
                TreeOp::DirectoryChanged { meta, .. } => meta.map(|_| Change::Metadata),
            };
            let file = match edit.op.file() {
                Some(Reference::Carried(file)) => ostree.files().get(at(file)),
                _ => None,
            };
            if let Some(change) = change {
                let is_directory = edit.op.meta().is_some();
                let of_file = file.map(|file| difference.attribute_rows()[at(file.attributes)].file_type());
                list.push(EditedName {
                    reference,
                    path: path.clone(),
                    change,
                    file_type: if is_directory { Some(FileType::Directory) } else { of_file },
                    size: size_of(difference, file.map(|file| file.content)),
                });
            }
            if let Some(Reference::Carried(tree)) = edit.op.tree() {
                pending.push((tree, path));
            }
        }
        pending[below..].reverse();
    }
}
