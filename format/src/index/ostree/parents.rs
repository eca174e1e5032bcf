//! What only the parents of refs' commits bring (ostree 6.1).

use alloc::vec::Vec;

use super::section::Resolved;
use super::{OsTree, OsTreeKind};
use crate::index::Inode;
use crate::num::{at, wide};

/// The block length of core 4.4.
const BLOCK_LEN: u64 = 4096;

/// The objects that belong to no ref: each takes a file in a repository, although no tree has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfParents {
    /// The commits, and the names in dirtrees.
    pub entries: u64,
    /// How many metadata and file objects there are.
    pub objects: u64,
    /// The components of the longest path in the trees of all commits.
    pub depth: u32,
    /// Bytes that the metadata objects take on a disk, in blocks of 4096.
    pub metadata_disk: u64,
    /// An inode for each file object.
    pub inodes: Vec<Inode>,
}

/// Which objects belong to refs.
pub(in crate::index) struct OfRefs {
    metadata: Vec<bool>,
    files: Vec<bool>,
}

impl OfRefs {
    pub(in crate::index) fn new(ostree: &OsTree) -> Self {
        Self { metadata: alloc::vec![false; ostree.objects.len()], files: alloc::vec![false; ostree.files.len()] }
    }

    pub(in crate::index) fn add_metadata(&mut self, object: u32) {
        set(&mut self.metadata, object);
    }

    pub(in crate::index) fn add_file(&mut self, file: u32) {
        set(&mut self.files, file);
    }
}

impl OfParents {
    /// Finds what does not belong to refs; of these, `of_refs` has the files, and all metadata objects but the commits and their commitmetas. `depth`
    /// is that of the trees of all commits.
    pub(in crate::index) fn find(resolved: &Resolved, mut of_refs: OfRefs, depth: u32) -> Self {
        let OsTree { objects, files, .. } = &resolved.ostree;
        for own in &resolved.refs {
            of_refs.add_metadata(own.commit);
            // A commitmeta follows its commit (ostree 4).
            let next = own.commit.saturating_add(1);
            if objects.get(at(next)).is_some_and(|next| next.kind == OsTreeKind::CommitMeta) {
                of_refs.add_metadata(next);
            }
        }
        let mut found = Self { depth, ..Self::default() };
        for ((object, tree), is_of_ref) in objects.iter().zip(&resolved.trees).zip(of_refs.metadata) {
            if !is_of_ref {
                found.objects += 1;
                found.metadata_disk += u64::from(object.len).next_multiple_of(BLOCK_LEN);
                found.entries += u64::from(object.kind == OsTreeKind::Commit) + wide(tree.len());
            }
        }
        for (file, is_of_ref) in files.iter().zip(of_refs.files) {
            if !is_of_ref {
                found.objects += 1;
                found.inodes.push(Inode { attributes: file.attributes, mtime: 0, mtime_ns: 0, kind: file.kind });
            }
        }
        found
    }
}

fn set(marks: &mut [bool], number: u32) {
    if let Some(mark) = marks.get_mut(at(number)) {
        *mark = true;
    }
}
