//! The OSTree objects that a bundle carries, by their checksums.

use std::collections::HashMap;

use sealift_format::num;
use sealift_format::ostree::{Checksum, Commit, DirTree};
use sealift_format::{Bundle, OsTree, OsTreeKind, OsTreeObject, Ref};

use crate::Error;
use crate::ostree::object::ObjectType;
use crate::ostree::repo::Repo;

/// The OSTree objects of a bundle, by their checksums.
pub(crate) struct Carried<'a> {
    pub(crate) bundle: &'a Bundle,
    pub(crate) ostree: &'a OsTree,
    objects: HashMap<(OsTreeKind, Checksum), &'a OsTreeObject>,
    pub(crate) files: HashMap<Checksum, u32>,
}

/// A commit with its detached metadata.
#[derive(Clone, Copy)]
pub(crate) struct Tip<'a> {
    pub(crate) checksum: Checksum,
    pub(crate) bytes: &'a [u8],
    /// The detached metadata, with its signatures.
    pub(crate) beside: Option<&'a [u8]>,
}

impl<'a> Carried<'a> {
    pub(crate) fn new(bundle: &'a Bundle) -> Result<Self, Error> {
        let ostree = bundle.index.ostree().ok_or(Error::NoCommit)?;
        let objects = ostree.objects().iter().map(|object| ((object.kind, object.checksum), object)).collect();
        let files = (0..).zip(ostree.files()).map(|(number, file)| (file.checksum, number)).collect();
        Ok(Self { bundle, ostree, objects, files })
    }

    pub(crate) fn find(&self, kind: OsTreeKind, checksum: &Checksum) -> Option<&'a OsTreeObject> {
        self.objects.get(&(kind, *checksum)).copied()
    }

    fn bytes(&self, kind: OsTreeKind, checksum: &Checksum) -> &'a [u8] {
        self.find(kind, checksum).map_or(&[], |object| self.bundle.index.ostree_bytes(object))
    }

    pub(crate) fn tip(&self, from: &'a Ref) -> Result<Tip<'a>, Error> {
        let number = num::at(from.ostree.as_ref().ok_or(Error::NoCommit)?.commit);
        let object = self.ostree.objects().get(number).ok_or(Error::NoCommit)?;
        Ok(self.with_beside(object))
    }

    /// Returns the ancestors of a ref's commit, as far as they are carried.
    pub(crate) fn before(&self, repo: &Repo, from: &'a Ref) -> Result<Vec<Tip<'a>>, Error> {
        let mut before = Vec::new();
        let mut at = self.tip(from)?;
        loop {
            let commit =
                Commit::parse(at.bytes).map_err(|fault| repo.wrong(ObjectType::Commit, &at.checksum, fault))?;
            let Some(parent) = commit.parent.and_then(|parent| self.find(OsTreeKind::Commit, parent)) else { break };
            at = self.with_beside(parent);
            before.push(at);
        }
        Ok(before)
    }

    fn with_beside(&self, commit: &'a OsTreeObject) -> Tip<'a> {
        let beside = self.find(OsTreeKind::CommitMeta, &commit.checksum);
        Tip {
            checksum: commit.checksum,
            bytes: self.bundle.index.ostree_bytes(commit),
            beside: beside.map(|beside| self.bundle.index.ostree_bytes(beside)),
        }
    }

    pub(crate) fn dirtree(&self, repo: &Repo, checksum: &Checksum) -> Result<DirTree<'a>, Error> {
        DirTree::parse(self.bytes(OsTreeKind::DirTree, checksum))
            .map_err(|fault| repo.wrong(ObjectType::DirTree, checksum, fault))
    }
}
