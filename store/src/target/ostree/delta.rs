//! Delta bundles for a repository that holds their base: its install records, or else its commits, give the index;
//! its file objects give the contents.

use std::collections::HashMap;
use std::sync::Arc;

use sealift_format::difference::{CommitObject, EditedCommitRef, EditedKind, OsTreeDifference};
use sealift_format::num;
use sealift_format::ostree::{Checksum, Commit};
use sealift_format::{Bundle, Delta, Index, OsTree, Ref, RepositoryFile, verity};
use sha2::{Digest as _, Sha256};

use super::destination::destination;
use crate::base::{self, Base, Bases};
use crate::contents::{CommitRef, HashedCommits};
use crate::error::wrong_base;
use crate::ostree::records::{indexes, records, without_repository_files};
use crate::ostree::repo::Repo;
use crate::source::{OstreeSource, SourceOptions};
use crate::target::options::InstallOptions;
use crate::{Error, Phase, Progress};

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

/// A ref of the base, and the candidate for its commit.
#[derive(Clone, Copy)]
struct Tip<'a> {
    name: &'a str,
    /// The collection according to the delta; empty if none.
    collection: &'a str,
    commit: Checksum,
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
        match (self.by_reading(&tips, &held), self.before(&tips)?) {
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
        let digest = verity::digest(index.bytes());
        if digest == self.delta.head.root().contents.index_digest {
            return Some(Role::Wanted);
        }
        base::is_the_only(self.delta.bases(), &digest).then_some(Role::Base)
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
        let mut tips = Vec::new();
        for named in self.delta.difference.base_refs() {
            let name = &*named.name;
            if !named.is_commit {
                return Err(self
                    .missing(&format!("the ref {name} of the base is a tree, and the repository has commits"), held));
            }
            let first = self.delta.difference.ostree().and_then(|ostree| ostree.refs().first());
            let collection = self.edited(name).or(first).map_or("", |edited| &edited.collection);
            let place = destination(self.repo, name, collection, &self.options.ostree.destination)?;
            let Some(commit) = self.repo.read_ref(&place)? else {
                return Err(self.missing(&format!("the repository has no ref {place}"), held));
            };
            tips.push(Tip { name, collection, commit });
        }
        Ok(tips)
    }

    /// Returns the same, replacing each commit that the delta brings by its parent; `None` if there is no such commit.
    fn before<'t>(&self, tips: &[Tip<'t>]) -> Result<Option<Vec<Tip<'t>>>, Error> {
        let mut before = tips.to_vec();
        for tip in &mut before {
            let commits = self.delta.difference.ostree().map_or(&[][..], OsTreeDifference::commits);
            let row = self.edited(tip.name).and_then(|edited| commits.get(usize::try_from(edited.commit).ok()?));
            let Some(CommitObject::Carried(bytes)) = row.map(|row| &row.commit) else { continue };
            if Sha256::digest(bytes)[..] != tip.commit {
                continue;
            }
            if let Some(parent) = Commit::parse(bytes).ok().and_then(|commit| commit.parent.copied())
                && self.repo.has_whole_commit(&parent)?
            {
                tip.commit = parent;
            }
        }
        let is_other = before.iter().zip(tips).any(|(before, tip)| before.commit != tip.commit);
        Ok(is_other.then_some(before))
    }

    /// Returns the delta's entry for a ref that is a commit.
    fn edited(&self, name: &str) -> Option<&EditedCommitRef> {
        let edited = self.delta.difference.refs().iter().find(|edited| edited.name == name)?;
        match edited.kind {
            EditedKind::Commit(row) => self.delta.difference.ostree()?.refs().get(num::at(row)),
            EditedKind::Tree(_) => None,
        }
    }

    /// Builds the index of these commits. Detached metadata and the source repository's files may differ here: each way is tried in which the base
    /// may have been built.
    fn by_reading(&self, tips: &[Tip<'_>], held: &str) -> Result<(Index, Role), Error> {
        let (jobs, progress) = (self.options.jobs.max(1), self.progress);
        progress.enter(Phase::Listing, 0, 0);
        let open = |tip: &Tip<'_>| OstreeSource::of_commit(self.repo, tip.commit, 0, &SourceOptions::default(), jobs);
        let sources: Result<Vec<OstreeSource>, Error> = tips.iter().map(open).collect();
        let sources = sources.map_err(|error| self.unreadable(error, held))?;
        let hashed = HashedCommits::read(&sources, jobs, progress).map_err(|error| self.unreadable(error, held))?;
        let mut objects = 0;
        for (collections, files) in self.ways(tips)? {
            let refs: Vec<CommitRef<'_>> = tips
                .iter()
                .zip(&collections)
                .zip(&sources)
                .map(|((tip, collection), source)| CommitRef { name: tip.name, collection, source })
                .collect();
            for with_commitmeta in [true, false] {
                progress.check()?;
                let index = hashed.index(&refs, with_commitmeta, &files)?;
                if let Some(role) = self.role(&index) {
                    return Ok((index, role));
                }
                objects = num::wide(index.objects().len());
            }
            // They are equal in each way.
            if ![self.delta.difference.base_objects().into(), self.delta.head.root().maxima.objects].contains(&objects)
            {
                break;
            }
        }
        let wanted = u64::from(self.delta.difference.base_objects());
        let why = if objects == wanted {
            "its refs are at other commits".to_owned()
        } else {
            format!(
                "the commits of its refs have {objects} objects, and the base has {wanted}; a base that includes parent commits must be the \
                 last bundle imported"
            )
        };
        Err(self.missing(&why, held))
    }

    /// Returns the ways in which an index may have been built: the collections of its refs, and the files of its source repository.
    fn ways(&self, tips: &[Tip<'_>]) -> Result<Vec<Way>, Error> {
        let own = self.repo.config().collection_id.clone().unwrap_or_default();
        let told = tips.iter().map(|tip| tip.collection.to_owned()).collect();
        let mut collections: Vec<Vec<String>> = vec![told];
        for id in [own, String::new()] {
            let all = vec![id; tips.len()];
            if !collections.contains(&all) {
                collections.push(all);
            }
        }
        let mut files = vec![Vec::new()];
        for some in [
            top_files(self.repo)?,
            self.delta.difference.ostree().map_or(&[][..], |own| own.repository_files()).to_vec(),
        ] {
            if !files.contains(&some) {
                files.push(some);
            }
        }
        Ok(collections.iter().flat_map(|ids| files.iter().map(|files| (ids.clone(), files.clone()))).collect())
    }

    /// Returns the error for commits of which something is missing or damaged.
    fn unreadable(&self, error: Error, held: &str) -> Error {
        match error {
            Error::Repository { fault, .. } => self.missing(&format!("its commits cannot be read: {fault}"), held),
            error => error,
        }
    }

    fn missing(&self, why: &str, held: &str) -> Error {
        let problem = wrong_base(self.delta.bases(), format_args!("{why}{held}; use the full bundle"));
        Error::MissingBase { path: self.repo.path().to_owned(), problem }
    }
}

/// Collections of refs, and files of a repository.
type Way = (Vec<String>, Vec<(RepositoryFile, Vec<u8>)>);

/// Returns the files of a repository that travel with its commits.
fn top_files(repo: &Repo) -> Result<Vec<(RepositoryFile, Vec<u8>)>, Error> {
    let mut files = Vec::new();
    for kind in RepositoryFile::ALL {
        files.extend(repo.top_file(kind.name())?.map(|bytes| (kind, bytes)));
    }
    Ok(files)
}
