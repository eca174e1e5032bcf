//! What makes the OSTree commits of one index of those of another (spec 6.7.5).

mod apply;
mod between;
mod encode;
mod parse;

pub(super) use between::{between, is_same_file};
pub(super) use parse::Section;

use alloc::string::String;
use alloc::vec::Vec;

use crate::Error;
use crate::index::RepositoryFile;
use crate::num::at;
use crate::ostree::Checksum;

use super::reference::Rows;
use super::{Content, Reference, number, row};
use crate::index::row_fault;

/// The part of a difference that is about the refs of kind 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OsTreeDifference {
    base_objects: u32,
    base_files: u32,
    commits: Vec<EditedCommit>,
    dirmetas: Vec<Vec<u8>>,
    trees: Vec<EditedTree>,
    edits: Vec<TreeEdit>,
    /// Each with a zero byte behind it.
    names: Vec<u8>,
    files: Vec<NewOsTreeFile>,
    refs: Vec<EditedCommitRef>,
    repository_files: Vec<(RepositoryFile, Vec<u8>)>,
}

/// A commit of the wanted index.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EditedCommit {
    /// The commit itself.
    pub commit: CommitObject,
    /// What is said of it beside it.
    pub beside: Beside,
}

/// Where a commit is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "spec 6.7.5 lists them")]
pub enum CommitObject {
    /// The base has it: the number of the metadata object.
    Base(u32),
    /// The difference has it.
    Carried {
        /// Its bytes.
        bytes: Vec<u8>,
        /// The dirmeta of its root: one of [`OsTreeDifference::dirmetas`], or a metadata object of the base.
        meta: Reference,
        /// The dirtree of its root: one of [`OsTreeDifference::trees`], or a metadata object of the base.
        tree: Reference,
    },
}

/// The commitmeta of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "spec 6.7.5 lists them")]
pub enum Beside {
    /// There is none.
    Nothing,
    /// The one that the base has of this commit.
    OfBase,
    /// These bytes.
    Carried(Vec<u8>),
}

/// A dirtree that the base does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EditedTree {
    /// The dirtree to which its edits are relative: a metadata object of the base. Without one it is relative to the empty one.
    pub like: Option<u32>,
    /// Its first edit.
    pub first_edit: u32,
    /// How many edits it has.
    pub edits: u32,
    /// The edit that is the first to name it; `None` for the root of a commit.
    pub named_by: Option<u32>,
}

/// What becomes of a name in a dirtree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeEdit {
    name_at: u32,
    name_len: u8,
    /// What becomes of it.
    pub op: TreeOp,
}

/// What becomes of a name in a dirtree. A file is one of [`OsTreeDifference::files`] or of the base's, a tree and a meta are as in
/// [`CommitObject::Carried`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "spec 6.7.5 lists them")]
pub enum TreeOp {
    /// It goes.
    Removed,
    /// A file comes.
    FileAdded(Reference),
    /// A file comes in place of what had this name.
    FileReplaced(Reference),
    /// A directory comes.
    DirectoryAdded {
        /// Its dirtree.
        tree: Reference,
        /// Its dirmeta.
        meta: Reference,
    },
    /// A directory comes in place of a file.
    DirectoryReplaced {
        /// Its dirtree.
        tree: Reference,
        /// Its dirmeta.
        meta: Reference,
    },
    /// A directory stays, with another dirtree, another dirmeta, or both.
    DirectoryChanged {
        /// Its new dirtree.
        tree: Option<Reference>,
        /// Its new dirmeta.
        meta: Option<Reference>,
    },
}

/// A file object that the base does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewOsTreeFile {
    /// SHA-256 of its header and content.
    pub checksum: Checksum,
    /// Row of its attributes among [`super::Difference::attribute_rows`].
    pub attributes: u32,
    /// Its object or its target.
    pub content: Content,
}

/// What a ref of kind 1 says beyond its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditedCommitRef {
    /// The number of its commit among [`OsTreeDifference::commits`].
    pub commit: u32,
    /// Whether a ref before it has come to that commit.
    pub is_known: bool,
    /// Its collection id; empty where it has none.
    pub collection: String,
}

impl TreeOp {
    /// Returns the file that the name gets.
    #[must_use]
    pub fn file(self) -> Option<Reference> {
        match self {
            Self::FileAdded(file) | Self::FileReplaced(file) => Some(file),
            _ => None,
        }
    }

    /// Returns the dirtree that the name gets.
    #[must_use]
    pub fn tree(self) -> Option<Reference> {
        match self {
            Self::DirectoryAdded { tree, .. } | Self::DirectoryReplaced { tree, .. } => Some(tree),
            Self::DirectoryChanged { tree, .. } => tree,
            _ => None,
        }
    }

    /// Returns the dirmeta that the name gets.
    #[must_use]
    pub fn meta(self) -> Option<Reference> {
        match self {
            Self::DirectoryAdded { meta, .. } | Self::DirectoryReplaced { meta, .. } => Some(meta),
            Self::DirectoryChanged { meta, .. } => meta,
            _ => None,
        }
    }
}

impl OsTreeDifference {
    /// Returns the wanted index's commits in its order.
    #[must_use]
    pub fn commits(&self) -> &[EditedCommit] {
        &self.commits
    }

    /// Returns the dirmetas that the base does not have.
    #[must_use]
    pub fn dirmetas(&self) -> &[Vec<u8>] {
        &self.dirmetas
    }

    /// Returns the dirtrees that the base does not have, in the wanted index's order.
    #[must_use]
    pub fn trees(&self) -> &[EditedTree] {
        &self.trees
    }

    /// Returns the edits of a dirtree, by ascending name.
    #[must_use]
    pub fn edits(&self, tree: &EditedTree) -> &[TreeEdit] {
        &self.edits[at(tree.first_edit)..at(tree.first_edit) + at(tree.edits)]
    }

    /// Returns the first path at which a dirtree stands, by its number, without a leading slash; empty for a root. It may stand at others.
    #[must_use]
    pub fn path(&self, tree: u32) -> Vec<u8> {
        let mut names = Vec::new();
        let mut tree = row(&self.trees, tree);
        while let Some(edit) = tree.named_by {
            names.push(self.name(row(&self.edits, edit)));
            // The one above comes before: no dirtree is below itself.
            let above = self.trees.partition_point(|tree| tree.first_edit <= edit).saturating_sub(1);
            tree = &self.trees[above];
        }
        names.reverse();
        names.join(&b'/')
    }

    /// Returns the name of an edit.
    #[must_use]
    pub fn name(&self, edit: &TreeEdit) -> &[u8] {
        &self.names[at(edit.name_at)..at(edit.name_at) + usize::from(edit.name_len)]
    }

    /// Returns the file objects that the base does not have, in the wanted index's order.
    #[must_use]
    pub fn files(&self) -> &[NewOsTreeFile] {
        &self.files
    }

    /// Returns the refs of kind 1, in the order of all refs.
    #[must_use]
    pub fn refs(&self) -> &[EditedCommitRef] {
        &self.refs
    }

    /// Returns the files of the OSTree repository itself that travel with the commits.
    #[must_use]
    pub fn repository_files(&self) -> &[(RepositoryFile, Vec<u8>)] {
        &self.repository_files
    }

    pub(super) fn add_file(&mut self, checksum: Checksum, attributes: u32, content: Content) {
        self.files.push(NewOsTreeFile { checksum, attributes, content });
    }

    fn file_rows(&self) -> Rows {
        Rows { carried: number(self.files.len()), base: self.base_files }
    }

    fn tree_rows(&self) -> Rows {
        Rows { carried: number(self.trees.len()), base: self.base_objects }
    }

    fn meta_rows(&self) -> Rows {
        Rows { carried: number(self.dirmetas.len()), base: self.base_objects }
    }

    /// Follows the commits through the dirtrees that are carried, in the order of spec 6.6, which is to be that of the tables.
    fn walk(&self) -> Result<Walk, Error> {
        let mut walk = Walk {
            next_meta: 0,
            next_tree: 0,
            is_done: alloc::vec![false; self.trees.len()],
            bottom_up: Vec::with_capacity(self.trees.len()),
            named_by: Vec::with_capacity(self.trees.len()),
        };
        for commit in &self.commits {
            let CommitObject::Carried { meta, tree, .. } = &commit.commit else { continue };
            walk.meet_meta(*meta)?;
            // Dirtrees whose directories are still to come, and how many of their edits have been gone through.
            let mut open: Vec<(u32, u32)> = Vec::new();
            open.extend(walk.meet_tree(self, *tree, None)?.map(|tree| (tree, 0)));
            while let Some((tree, gone)) = open.last_mut() {
                let own = *tree;
                let Some(edit) = self.edits(row(&self.trees, own)).get(at(*gone)) else {
                    walk.is_done[at(own)] = true;
                    walk.bottom_up.push(own);
                    open.pop();
                    continue;
                };
                let named_by = row(&self.trees, own).first_edit + *gone;
                *gone += 1;
                if let Some(below) = edit.op.tree() {
                    open.extend(walk.meet_tree(self, below, Some(named_by))?.map(|tree| (tree, 0)));
                }
            }
        }
        if at(walk.next_tree) != self.trees.len() || at(walk.next_meta) != self.dirmetas.len() {
            return Err(row_fault("a dirtree or dirmeta is carried that no commit comes to", at(walk.next_tree)));
        }
        Ok(walk)
    }

    /// Gives each dirtree the edit that names it first.
    fn find_places(&mut self) -> Result<(), Error> {
        let named_by = self.walk()?.named_by;
        self.trees.iter_mut().zip(named_by).for_each(|(tree, named_by)| tree.named_by = named_by);
        Ok(())
    }
}

/// Where a walk through what is carried stands.
struct Walk {
    next_meta: u32,
    next_tree: u32,
    is_done: Vec<bool>,
    /// The dirtrees, each after all that are below it.
    bottom_up: Vec<u32>,
    /// For each dirtree that it has come to the edit that led there.
    named_by: Vec<Option<u32>>,
}

impl Walk {
    fn meet_meta(&mut self, meta: Reference) -> Result<(), Error> {
        match meta {
            Reference::Carried(meta) if meta > self.next_meta => {
                Err(row_fault("a carried dirmeta is in another place than where it is come to", at(meta)))
            }
            Reference::Carried(meta) => {
                self.next_meta = self.next_meta.max(meta + 1);
                Ok(())
            }
            Reference::Base(_) => Ok(()),
        }
    }

    /// Returns the dirtree if it is one that nothing has come to yet. Its dirmetas come before all that is below it.
    fn meet_tree(
        &mut self,
        difference: &OsTreeDifference,
        tree: Reference,
        named_by: Option<u32>,
    ) -> Result<Option<u32>, Error> {
        let Reference::Carried(tree) = tree else { return Ok(None) };
        if tree > self.next_tree {
            return Err(row_fault("a carried dirtree is in another place than where it is come to", at(tree)));
        }
        if tree < self.next_tree {
            // What was come to before and is not done yet is above this place.
            let is_done = self.is_done[at(tree)];
            return if is_done { Ok(None) } else { Err(row_fault("a dirtree is below itself", at(tree))) };
        }
        self.next_tree += 1;
        self.named_by.push(named_by);
        for edit in difference.edits(row(&difference.trees, tree)) {
            edit.op.meta().map_or(Ok(()), |meta| self.meet_meta(meta))?;
        }
        Ok(Some(tree))
    }
}

/// Ways to break a difference, for tests that are of both kinds of refs.
#[cfg(test)]
mod breaks {
    use super::*;

    /// What is done to a difference, and a part of what is said of it then.
    type Break = (fn(&mut OsTreeDifference), &'static str);

    impl OsTreeDifference {
        /// Makes the first directory of a dirtree lead back to another one.
        pub(in crate::difference) fn turn_back(&mut self, tree: u32, to: u32) {
            let tree = *row(&self.trees, tree);
            let mut edits = self.edits[at(tree.first_edit)..].iter_mut();
            let edit = edits.find_map(|edit| match &mut edit.op {
                TreeOp::DirectoryAdded { tree, .. } => Some(tree),
                _ => None,
            });
            *edit.expect("it has a directory") = Reference::Carried(to);
        }

        /// Gives it the numbers of another base.
        pub(in crate::difference) fn claim_base_of(&mut self, other: &Self) {
            (self.base_objects, self.base_files) = (other.base_objects, other.base_files);
        }

        /// Of a difference whose first dirtree is like one of the base's, with edits of `d`, `f` and `n`, and whose last is new.
        pub(in crate::difference) fn breaks() -> Vec<Break> {
            alloc::vec![
                (|own| own.trees[1].like = own.trees[0].like, "that another is like"),
                (|own| own.trees[0].like = Some(own.base_objects), "that the base does not have"),
                (|own| own.trees[0].like = None, "in a dirtree that is like none"),
                (|own| own.dirmetas.push(own.dirmetas[0].clone()), "that no commit comes to"),
                (|own| own.dirmetas[0].clear(), "index: "),
                (|own| own.files.push(own.files[0]), "is carried twice"),
                (|own| own.names[0] = b'z', "do not ascend"),
                (|own| own.names[0] = 0xff, "do not ascend"),
                (|own| own.names[0] = b'/', "contains a slash"),
                (|own| own.refs[0].commit = 1, "a ref names no commit"),
                (|own| own.refs[0].collection.push('.'), "a collection id"),
                (|own| own.commits[0].beside = Beside::OfBase, "what is beside a commit"),
                (|own| own.edits[0].op = TreeOp::FileReplaced(Reference::Base(99)), "neither base nor difference"),
            ]
        }

        /// The same, where only the base tells.
        pub(in crate::difference) fn misfits() -> Vec<Break> {
            alloc::vec![
                (|own| own.base_files += 1, "another number of OSTree objects"),
                (|own| own.trees[0].like = Some(0), "of that number and type"),
                (|own| own.edits[1].op = TreeOp::FileAdded(Reference::Base(0)), "does not fit the base"),
                (|own| own.edits[1].op = TreeOp::Removed, "another checksum than the commit says"),
                (|own| own.commits[0].beside = Beside::OfBase, "the base has nothing beside that commit"),
                (|own| own.files.reverse(), "index: "),
            ]
        }
    }
}
