//! Delta bundles for a repository that holds their base: its install records, or else its commits, give the index;
//! its file objects give the contents.

use std::collections::HashMap;
use std::sync::Arc;

use sealift_format::num;
use sealift_format::{Bundle, Delta, Index, OsTree, Ref, verity};

use super::destination::destination;
use crate::base::{Base, Bases, Reading, Tip};
use crate::install::options::InstallOptions;
use crate::ostree::records::{indexes, records};
use crate::ostree::repo::Repo;
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
        Holding::Wanted(index) => Ok((delta.complete_with(*index)?, Bases::default())),
        Holding::Bases(indexes) => {
            let bundle = delta.complete(&indexes.iter().collect::<Vec<_>>())?;
            let bases = indexes.into_iter().map(|index| Base::of_repository(repo, index));
            Ok((bundle, Bases::new(bases.collect())))
        }
    }
}

/// What a repository has of a delta.
#[derive(Debug)]
enum Holding {
    /// The delta's result.
    Wanted(Box<Index>),
    /// The delta's bases.
    Bases(Vec<Index>),
}

/// The role of an index in a delta.
#[derive(Clone, Copy, Debug)]
enum Role {
    Wanted,
    /// The first base, to which the difference applies.
    Base,
}

/// Finds the base of a delta.
struct Finder<'a> {
    delta: &'a Delta,
    repo: &'a Arc<Repo>,
    options: &'a InstallOptions,
    progress: &'a Progress,
}

impl Finder<'_> {
    fn find(&self) -> Result<Holding, Error> {
        let mut held = String::new();
        if let Some(kept) = records(self.repo).load(&self.delta.head.root().identity.name)? {
            held = format!("; the last imported bundle was {}", kept.head.root().as_base());
            if let Some(role) = self.role_of_kept(&kept.index)? {
                return self.found(kept.index, role);
            }
        }
        // Of several bases, the first may have come with another bundle.
        if self.delta.bases().len() > 1
            && let Some(first) =
                indexes(self.repo)?.into_iter().find(|index| matches!(self.role(index), Some(Role::Base)))
        {
            return self.found(first, Role::Base);
        }
        tracing::info!("the repository has no install record of the base: reading its commits");
        let tips = self.tips(&held)?;
        let (index, role) = match (self.by_reading(&tips, &held), self.reading().before(&tips)?) {
            // Some of its refs have already been updated.
            (Err(Error::MissingBase { .. }), Some(before)) => self.by_reading(&before, &held),
            (found, _) => found,
        }?;
        self.found(index, role)
    }

    /// Returns what was found, with the other bases: from the records of each name, or else by reading commits.
    fn found(&self, index: Index, role: Role) -> Result<Holding, Error> {
        if matches!(role, Role::Wanted) {
            return Ok(Holding::Wanted(Box::new(index)));
        }
        let declared = self.delta.bases();
        let mut found = HashMap::from([(0, index)]);
        if declared.len() > 1 {
            let number = |index: &Index| {
                let digest = verity::digest(index.bytes());
                declared.iter().position(|base| base.index_digest == digest)
            };
            found.extend(indexes(self.repo)?.into_iter().filter_map(|index| Some((number(&index)?, index))));
        }
        let lacking: Vec<usize> = (0..declared.len()).filter(|number| !found.contains_key(number)).collect();
        if !lacking.is_empty() {
            let further = self.reading().further(None, &lacking)?.into_iter();
            found.extend(further.map(|(index, number)| (number, index)));
        }
        let (mut bases, mut missing) = (Vec::new(), Vec::new());
        for (number, base) in declared.iter().enumerate() {
            match found.remove(&number) {
                Some(index) => bases.push(index),
                None => missing.push(base.clone()),
            }
        }
        if missing.is_empty() {
            return Ok(Holding::Bases(bases));
        }
        Err(Error::wrong_base(self.repo.path(), &missing, "no ref of the repository matches it"))
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
        let is_first = self.delta.bases().first().is_some_and(|base| base.index_digest == *digest);
        is_first.then_some(Role::Base)
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

    /// Returns the commits that the base's refs name in this repository.
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
        Error::wrong_base(self.repo.path(), self.delta.bases(), format_args!("{why}{held}"))
    }
}
