//! The base of a delta bundle among the commits of a repository that has no record of it.
//!
//! Detached metadata and collections may differ between this repository and the one that the base was packed from: the index is built in each way in
//! which it may have been built there.

use std::sync::Arc;

use sealift_format::difference::{CommitObject, EditedCommitRef, EditedKind, OsTreeDifference};
use sealift_format::num;
use sealift_format::ostree::{Checksum, Commit};
use sealift_format::{Delta, Index, verity};
use sha2::{Digest as _, Sha256};

use crate::contents::{CommitRef, HashedCommits};
use crate::ostree::RefOwner;
use crate::ostree::repo::Repo;
use crate::source::{OstreeSource, SourceOptions};
use crate::{Error, Phase, Progress};

/// Reads commits of a repository to find an index that a delta bundle names.
pub(crate) struct Reading<'a> {
    pub(crate) delta: &'a Delta,
    pub(crate) repo: &'a Arc<Repo>,
    pub(crate) jobs: usize,
    pub(crate) progress: &'a Progress,
}

/// A ref of the base, and the candidate for its commit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tip<'a> {
    pub(crate) name: &'a str,
    /// The collection according to the delta; empty if none.
    pub(crate) collection: &'a str,
    pub(crate) commit: Checksum,
}

/// The sources of commits, and what was read of them.
type ReadCommits = (Vec<OstreeSource>, HashedCommits);

impl<'a> Reading<'a> {
    /// Finds the index of the delta's first base, and returns it with the base's number, or else the reason why it is not there. The base's refs are
    /// assumed to be at the commit `reference`, or else at the commits of the repository's refs of the same names; if the delta brings such a commit,
    /// at its parent.
    ///
    /// # Errors
    /// Returns an error if the repository cannot be read, or has no commit `reference`.
    pub(crate) fn base(&self, reference: Option<&str>) -> Result<Result<(Index, usize), String>, Error> {
        let given = reference.map(|text| self.repo.find_commit(text)).transpose()?;
        let refs = self.repo.refs()?;
        let tips = self.tips(|name, _| {
            let there = refs.iter().find(|(found, _)| found.name() == name).map(|(_, commit)| *commit);
            let commit = given.as_ref().map(|(commit, _)| *commit).or(there);
            Ok(commit.ok_or_else(|| format!("the repository has no ref {name}")))
        })?;
        let tips = match tips {
            Ok(tips) if given.is_some() => tips,
            Ok(tips) => self.before(&tips)?.unwrap_or(tips),
            Err(why) => return Ok(Err(why)),
        };
        self.index(&tips, |digest| self.delta.bases().iter().position(|base| base.index_digest == *digest))
    }

    /// Finds further bases of the delta, of those with the numbers `lacking`, and returns their indexes with their numbers. The delta names only the
    /// refs of its first base: another base is found only if it has a single ref, with the name of a ref of the repository, at that ref's commit or
    /// at the commit `reference`.
    ///
    /// # Errors
    /// Returns an error if the repository cannot be read, or has no commit `reference`.
    pub(crate) fn further(&self, reference: Option<&str>, lacking: &[usize]) -> Result<Vec<(Index, usize)>, Error> {
        let given = reference.map(|text| self.repo.find_commit(text)).transpose()?;
        let first = self.delta.difference.ostree().and_then(|ostree| ostree.refs().first());
        let refs = self.repo.refs()?;
        let mut tips: Vec<Tip<'_>> = Vec::new();
        for (named, at) in &refs {
            let commit = match &given {
                Some((_, Some(own))) if own != named => continue,
                Some((commit, _)) => *commit,
                None => *at,
            };
            let collection = match named.place() {
                RefOwner::Mirror(id) => id,
                RefOwner::Heads | RefOwner::Remote(_) => first.map_or("", |edited| &edited.collection),
            };
            tips.push(Tip { name: named.name(), collection, commit });
        }
        tips.sort_by_key(|tip| tip.commit);
        let mut found: Vec<(Index, usize)> = Vec::new();
        for of_one in tips.chunk_by(|one, other| one.commit == other.commit) {
            let Ok(commits) = self.hashed(&of_one[..1])? else { continue };
            for tip in of_one {
                let is_it = |number: usize, digest: &[u8; 32]| self.delta.bases()[number].index_digest == *digest;
                let is_new = |number: &usize| found.iter().all(|(_, known)| known != number);
                let new: Vec<usize> = lacking.iter().copied().filter(is_new).collect();
                if new.is_empty() {
                    return Ok(found);
                }
                let number = |digest: &[u8; 32]| new.iter().copied().find(|number| is_it(*number, digest));
                found.extend(self.index_of(std::slice::from_ref(tip), &commits, number)?.ok());
            }
        }
        Ok(found)
    }

    /// Returns the commits that `commit_of` gives for the refs of the first base, by their names and their collections; or the reason why there are
    /// none.
    pub(crate) fn tips(
        &self,
        commit_of: impl Fn(&str, &str) -> Result<Result<Checksum, String>, Error>,
    ) -> Result<Result<Vec<Tip<'a>>, String>, Error> {
        let mut tips = Vec::new();
        for named in self.delta.difference.base_refs() {
            let name = &*named.name;
            if !named.is_commit {
                return Ok(Err(format!("the ref {name} of the base is a tree, and the repository has commits")));
            }
            let first = self.delta.difference.ostree().and_then(|ostree| ostree.refs().first());
            let collection = self.edited(name).or(first).map_or("", |edited| &edited.collection);
            match commit_of(name, collection)? {
                Ok(commit) => tips.push(Tip { name, collection, commit }),
                Err(why) => return Ok(Err(why)),
            }
        }
        Ok(Ok(tips))
    }

    /// Replaces each of these commits that the delta brings by its parent, if the repository has that; returns `None` if there is no such commit.
    pub(crate) fn before(&self, tips: &[Tip<'a>]) -> Result<Option<Vec<Tip<'a>>>, Error> {
        let mut before = tips.to_vec();
        for tip in &mut before {
            if let Some((brought, Some(parent))) = self.brought(tip.name)
                && brought == tip.commit
                && self.repo.has_whole_commit(&parent)?
            {
                tip.commit = parent;
            }
        }
        Ok((before != tips).then_some(before))
    }

    /// Returns the commit that the delta brings for a ref, and its parent.
    fn brought(&self, name: &str) -> Option<(Checksum, Option<Checksum>)> {
        let commits = self.delta.difference.ostree().map_or(&[][..], OsTreeDifference::commits);
        let row = commits.get(usize::try_from(self.edited(name)?.commit).ok()?)?;
        let CommitObject::Carried(bytes) = &row.commit else { return None };
        let parent = Commit::parse(bytes).ok().and_then(|commit| commit.parent.copied());
        Some((Sha256::digest(bytes).into(), parent))
    }

    /// Returns the delta's entry for a ref that is a commit.
    fn edited(&self, name: &str) -> Option<&'a EditedCommitRef> {
        let edited = self.delta.difference.refs().iter().find(|edited| edited.name == name)?;
        match edited.kind {
            EditedKind::Commit(row) => self.delta.difference.ostree()?.refs().get(num::at(row)),
            EditedKind::Tree(_) => None,
        }
    }

    /// Builds the index of these commits, in each way. Returns the first one for whose digest `role` returns a value, with that value, or else the
    /// reason why there is none.
    pub(crate) fn index<R>(
        &self,
        tips: &[Tip<'_>],
        role: impl Fn(&[u8; 32]) -> Option<R>,
    ) -> Result<Result<(Index, R), String>, Error> {
        match self.hashed(tips)? {
            Ok(commits) => self.index_of(tips, &commits, role),
            Err(why) => Ok(Err(why)),
        }
    }

    /// Reads all contents of these commits; or returns the reason why they cannot be read.
    fn hashed(&self, tips: &[Tip<'_>]) -> Result<Result<ReadCommits, String>, Error> {
        self.progress.enter(Phase::Listing, 0, 0);
        let open =
            |tip: &Tip<'_>| OstreeSource::of_commit(self.repo, tip.commit, 0, &SourceOptions::default(), self.jobs);
        let sources = tips.iter().map(open).collect::<Result<Vec<OstreeSource>, Error>>();
        let hashed = sources.and_then(|sources| {
            let hashed = HashedCommits::read(&sources, self.jobs, self.progress)?;
            Ok((sources, hashed))
        });
        match hashed {
            // An object of the commits is missing or damaged.
            Err(Error::Repository { fault, .. }) => Ok(Err(format!("its commits cannot be read: {fault}"))),
            read => read.map(Ok),
        }
    }

    /// As [`Self::index`], for commits that have been read.
    fn index_of<R>(
        &self,
        tips: &[Tip<'_>],
        (sources, hashed): &ReadCommits,
        role: impl Fn(&[u8; 32]) -> Option<R>,
    ) -> Result<Result<(Index, R), String>, Error> {
        let mut objects = 0;
        let wanted = u64::from(self.delta.difference.base_objects());
        // `wanted` counts the objects of all bases together.
        let is_possible = |objects| if self.delta.bases().len() > 1 { objects <= wanted } else { objects == wanted };
        for collections in self.collections(tips) {
            let refs: Vec<CommitRef<'_>> = tips
                .iter()
                .zip(&collections)
                .zip(sources)
                .map(|((tip, collection), source)| CommitRef { name: tip.name, collection, source })
                .collect();
            for with_commitmeta in [true, false] {
                self.progress.check()?;
                let index = hashed.index(&refs, with_commitmeta)?;
                if let Some(role) = role(&verity::digest(index.bytes())) {
                    return Ok(Ok((index, role)));
                }
                objects = num::wide(index.objects().len());
            }
            // The number of objects is the same in each way.
            if !is_possible(objects) && objects != self.delta.head.root().maxima.objects {
                break;
            }
        }
        Ok(Err(if is_possible(objects) {
            "its refs are at other commits".to_owned()
        } else {
            format!(
                "the commits of its refs have {objects} objects, and the base has {wanted}; a base that includes parent commits must be the \
                 last bundle imported"
            )
        }))
    }

    /// Returns the collections that the refs may have had where the base was packed, each as a list.
    fn collections(&self, tips: &[Tip<'_>]) -> Vec<Vec<String>> {
        let own = self.repo.config().collection_id.clone().unwrap_or_default();
        let told = tips.iter().map(|tip| tip.collection.to_owned()).collect();
        let mut collections: Vec<Vec<String>> = vec![told];
        for id in [own, String::new()] {
            let all = vec![id; tips.len()];
            if !collections.contains(&all) {
                collections.push(all);
            }
        }
        collections
    }
}
