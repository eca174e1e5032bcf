//! Delta bundles for a repository that holds their base: its install records, or else its commits, give the index;
//! its file objects give the contents.

use std::collections::HashMap;
use std::sync::Arc;

use sealift_format::num;
use sealift_format::{Bundle, Delta, Index, OsTree, Ref, verity};

use super::destination::destination;
use crate::base::{self, Base, Bases, Reading, Tip};
use crate::error::wrong_base;
use crate::ostree::records::{indexes, records, without_repository_files};
use crate::ostree::repo::Repo;
use crate::target::options::InstallOptions;
use crate::{Error, Progress};

/// Completes a delta to a whole bundle with what the repository holds, given the options of the import. Returns it with its bases: none if the
/// repository holds exactly the result of the delta.
pub(super) fn complete(
    delta: Delta,
    repo: &Arc<Repo>,
    options: &InstallOptions,
    progress: &Progress,
) -> Result<(Bundle, Bases), Error> {
    match (Finder { delta: &delta, repo, options, progress }).find()? {
        Found::Wanted(index) => Ok((delta.complete_with(*index)?, Bases::default())),
        Found::Bases(indexes) => {
            let bundle = delta.complete(&indexes.iter().collect::<Vec<_>>())?;
            let bases = indexes.into_iter().map(|index| Base::of_repository(repo, index));
            Ok((bundle, Bases::new(bases.collect())))
        }
    }
}

/// What a repository has of a delta.
#[derive(Debug)]
enum Found {
    /// The delta's result.
    Wanted(Box<Index>),
    /// The delta's bases.
    Bases(Vec<Index>),
}

/// The role of an index in a delta.
#[derive(Clone, Copy, Debug)]
enum Role {
    Wanted,
    /// The only base.
    Base,
}

impl Role {
    fn found(self, index: Index) -> Found {
        match self {
            Self::Wanted => Found::Wanted(Box::new(index)),
            Self::Base => Found::Bases(vec![index]),
        }
    }
}

/// Finds the base of a delta.
struct Finder<'a> {
    delta: &'a Delta,
    repo: &'a Arc<Repo>,
    options: &'a InstallOptions,
    progress: &'a Progress,
}

impl Finder<'_> {
    fn find(&self) -> Result<Found, Error> {
        let mut held = String::new();
        if let Some(kept) = records(self.repo).load(&self.delta.head.root().identity.name)? {
            held = format!("; the last imported bundle was {}", kept.head.root().as_base());
            if let Some(role) = self.role_of_kept(&kept.index)? {
                return Ok(role.found(kept.index));
            }
            if let Some(index) = without_repository_files(&kept.index)?
                && let Some(role) = self.role_of_kept(&index)?
            {
                return Ok(role.found(index));
            }
        }
        if self.delta.bases().len() > 1 {
            return self.several().map(Found::Bases);
        }
        tracing::info!("the repository has no install record of the base: reading its commits");
        let tips = self.tips(&held)?;
        match (self.by_reading(&tips, &held), self.reading().before(&tips)?) {
            // Some of its refs have already been updated.
            (Err(Error::MissingBase { .. }), Some(before)) => self.by_reading(&before, &held),
            (found, _) => found,
        }
        .map(|(index, role)| role.found(index))
    }

    /// Finds several bases among the records of each name.
    fn several(&self) -> Result<Vec<Index>, Error> {
        let kept = indexes(self.repo)?.into_iter();
        let mut kept: HashMap<[u8; 32], Index> = kept.map(|index| (verity::digest(index.bytes()), index)).collect();
        let (mut found, mut lacking) = (Vec::new(), Vec::new());
        for base in self.delta.bases() {
            match kept.remove(&base.index_digest) {
                Some(index) => found.push(index),
                None => lacking.push(base.clone()),
            }
        }
        if lacking.is_empty() {
            return Ok(found);
        }
        let problem =
            wrong_base(&lacking, "the repository has no record of that; import it first, or use the full bundle");
        Err(Error::MissingBase { path: self.repo.path().to_owned(), problem })
    }

    /// Returns the role of an index in the delta; `None` if it has none.
    fn role(&self, index: &Index) -> Option<Role> {
        self.role_of(&verity::digest(index.bytes()))
    }

    /// Returns the role of the index of this digest.
    fn role_of(&self, digest: &[u8; 32]) -> Option<Role> {
        if *digest == self.delta.head.root().contents.index_digest {
            return Some(Role::Wanted);
        }
        base::is_the_only(self.delta.bases(), digest).then_some(Role::Base)
    }

    /// Returns the role of a recorded index if its requested commits are present: they may have been rolled back and pruned.
    fn role_of_kept(&self, index: &Index) -> Result<Option<Role>, Error> {
        Ok(match self.role(index) {
            Some(Role::Wanted) if !self.has_tips(index)? => None,
            role => role,
        })
    }

    /// Returns whether the newest requested commits of an index are present.
    fn has_tips(&self, index: &Index) -> Result<bool, Error> {
        let objects = index.ostree().map_or(&[][..], OsTree::objects);
        let is_chosen = |from: &&Ref| self.options.refs.is_empty() || self.options.refs.contains(&from.name);
        for tip in index.refs().iter().filter(is_chosen).filter_map(|from| from.ostree.as_ref()) {
            let commit = objects.get(num::at(tip.commit));
            if let Some(commit) = commit
                && !self.repo.has_whole_commit(&commit.checksum)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the commits that the refs of the base name here.
    fn tips(&self, held: &str) -> Result<Vec<Tip<'_>>, Error> {
        let tips = self.reading().tips(|name, collection| {
            let place = destination(self.repo, name, collection, &self.options.ostree.destination)?;
            Ok(self.repo.read_ref(&place)?.ok_or_else(|| format!("the repository has no ref {place}")))
        });
        tips?.map_err(|why| self.missing(&why, held))
    }

    /// Returns the index of these commits, and its role.
    fn by_reading(&self, tips: &[Tip<'_>], held: &str) -> Result<(Index, Role), Error> {
        self.reading().index(tips, |digest| self.role_of(digest))?.map_err(|why| self.missing(&why, held))
    }

    fn reading(&self) -> Reading<'_> {
        Reading { delta: self.delta, repo: self.repo, jobs: self.options.jobs.max(1), progress: self.progress }
    }

    fn missing(&self, why: &str, held: &str) -> Error {
        let problem = wrong_base(self.delta.bases(), format_args!("{why}{held}; use the full bundle"));
        Error::MissingBase { path: self.repo.path().to_owned(), problem }
    }
}
