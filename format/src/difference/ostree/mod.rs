//! The difference between the OSTree commits of two indexes (ostree 8).

mod apply;
mod between;
mod dirtrees;
mod encode;
mod parse;

pub(super) use between::{between, is_same_file};
pub(super) use parse::Section;

use alloc::string::String;
use alloc::vec::Vec;

use crate::Row;
use crate::attributes::Attributes;

use super::{NewContent, Reference, number, row};

use dirtrees::DirTrees;

/// The part of a difference for the refs of kind 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OsTreeDifference {
    commits: Vec<EditedCommit>,
    dirmetas: Vec<Vec<u8>>,
    dirtrees: DirTrees,
    files: Vec<NewOsTreeFile>,
    refs: Vec<EditedCommitRef>,
}

/// A commit of the wanted index.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EditedCommit {
    /// The commit itself.
    pub commit: CommitObject,
    /// Its commitmeta.
    pub beside: Beside,
}

/// Where a commit comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "ostree 8 lists them")]
pub enum CommitObject {
    /// The base has it, as the metadata object with this number.
    Base(u32),
    /// The difference carries these bytes.
    Carried(Vec<u8>),
}

/// The commitmeta of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "ostree 8 lists them")]
pub enum Beside {
    /// There is none.
    Nothing,
    /// The one that the base has for this commit.
    OfBase,
    /// The difference carries these bytes.
    Carried(Vec<u8>),
}

/// A file object that the base does not have. A dirtree contains its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewOsTreeFile {
    /// Its attributes, among [`super::Difference::attribute_rows`].
    pub attributes: Row<Attributes>,
    /// Its object or its target.
    pub content: NewContent,
}

/// What a ref of kind 1 has besides its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditedCommitRef {
    /// The number of its commit among [`OsTreeDifference::commits`].
    pub commit: u32,
    /// Its collection id; empty if it has none.
    pub collection: String,
}

impl OsTreeDifference {
    /// Returns the wanted index's commits in its order.
    #[must_use]
    pub fn commits(&self) -> &[EditedCommit] {
        &self.commits
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

    pub(super) fn add_file(&mut self, attributes: Row<Attributes>, content: NewContent) {
        self.files.push(NewOsTreeFile { attributes, content });
    }
}

/// Ways to break a difference, for tests with both kinds of refs.
#[cfg(test)]
mod breaks {
    use super::*;

    /// A change of a difference, and a part of the error that it causes.
    type Break = (fn(&mut OsTreeDifference), &'static str);

    impl OsTreeDifference {
        /// For a difference that carries a dirmeta, some dirtrees and files, and whose base has one commit with a commitmeta.
        pub(in crate::difference) fn breaks() -> Vec<Break> {
            alloc::vec![
                (|own| own.dirmetas[0].clear(), "index: "),
                (|own| own.refs[0].commit = 1, "a ref names no commit"),
                (|own| own.refs[0].collection.push('.'), "collection id"),
                (|own| own.commits[0].beside = Beside::OfBase, "unknown kind of commitmeta"),
                (|own| own.dirtrees.frame.truncate(4), "the zstd frame"),
                (|own| own.dirtrees.lens[0] += 1, "another content size"),
                (|own| own.dirtrees.lens[0] = u32::MAX, "the dirtrees are longer than the index"),
            ]
        }

        /// The same, for errors that are found only with the base.
        pub(in crate::difference) fn misfits() -> Vec<Break> {
            alloc::vec![
                (|own| own.commits[0].commit = CommitObject::Base(1), "has no commit of that number"),
                (|own| own.commits[0].commit = CommitObject::Base(99), "has no commit of that number"),
                (|own| own.dirmetas.push(own.dirmetas[0].clone()), "is carried twice, or the base has it"),
                (|own| own.dirmetas[0].clear(), "that neither base nor difference have"),
                (|own| own.dirtrees.lens.swap(0, 1), "index: "),
                (|own| own.files.truncate(1), "more OSTree files are named than there are"),
                (|own| own.files.push(own.files[0]), "unreferenced OSTree file"),
                (
                    |own| own.commits.push(EditedCommit { commit: CommitObject::Base(0), beside: Beside::Nothing }),
                    "unreferenced commit"
                ),
            ]
        }
    }
}
