//! Delta bundles onto a repository that holds their base: what it kept of the bundles that it took, or else its commits, give the index;
//! its file objects give the contents.

use std::sync::Arc;

use sealift_format::difference::EditedKind;
use sealift_format::{Bundle, Delta, Difference, Index, OsTree, RepositoryFile, verity};

use super::import::{Destination, destination};
use super::kept::Kept;
use super::repo::Repo;
use crate::base::{self, Base, Bases};
use crate::pack::{CommitRef, HashedCommits};
use crate::source::{OstreeSource, SourceOptions};
use crate::{Error, Phase, Progress};

/// Makes the whole bundle of a delta with what a repository holds, into which its refs go to `to`. Returns it with its bases: none where
/// the repository holds just what the delta makes.
pub(super) fn complete(
    delta: Delta,
    repo: &Arc<Repo>,
    to: &Destination,
    jobs: usize,
    progress: &Progress,
) -> Result<(Bundle, Bases), Error> {
    let (index, role) = Finder { delta: &delta, repo }.find(to, jobs, progress)?;
    match role {
        Role::Wanted => Ok((delta.complete_with(index)?, Bases::default())),
        Role::Base => {
            let bundle = delta.complete(&[&index])?;
            Ok((bundle, Bases::new(vec![Base::of_repository(repo, index)])))
        }
    }
}

/// What an index is for a delta.
#[derive(Clone, Copy, Debug)]
enum Role {
    /// What it makes.
    Wanted,
    /// What it makes that of.
    Base,
}

/// Looks for the base of a delta.
struct Finder<'a> {
    delta: &'a Delta,
    repo: &'a Arc<Repo>,
}

/// A commit that may be one of the base.
struct Candidate<'a> {
    name: &'a str,
    /// The collection that the delta says.
    collection: String,
    source: OstreeSource,
}

impl Finder<'_> {
    fn find(&self, to: &Destination, jobs: usize, progress: &Progress) -> Result<(Index, Role), Error> {
        let root = self.delta.head.root();
        let mut held = String::new();
        if let Some(kept) = Kept::load(self.repo, &root.identity.name)? {
            let identity = &kept.head.root().identity;
            let digest = base::short(&kept.digest());
            held = format!("; it took {} version {}, content {digest}", identity.name, identity.version);
            let bare = kept.without_repository_files()?;
            for index in std::iter::once(kept.index).chain(bare) {
                match self.role(&index) {
                    Some(Role::Base) => return Ok((index, Role::Base)),
                    Some(Role::Wanted) if self.has_tips(&index)? => return Ok((index, Role::Wanted)),
                    _ => {}
                }
            }
        }
        tracing::info!("what the repository kept is not the base: its commits are read");
        self.by_reading(to, &held, jobs, progress)
    }

    fn role(&self, index: &Index) -> Option<Role> {
        let digest = verity::digest(index.bytes());
        if digest == self.delta.head.root().contents.index_digest {
            return Some(Role::Wanted);
        }
        base::is_the_only(self.delta.bases(), &digest).then_some(Role::Base)
    }

    /// Whether the newest commits of an index are there: what the repository took may have been taken back and pruned.
    fn has_tips(&self, index: &Index) -> Result<bool, Error> {
        let objects = index.ostree().map_or(&[][..], OsTree::objects);
        for tip in index.refs().iter().filter_map(|from| from.ostree.as_ref()) {
            let commit = objects.get(usize::try_from(tip.commit).unwrap_or(usize::MAX));
            if let Some(commit) = commit
                && !self.repo.has_whole_commit(&commit.checksum)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes the index of the commits that the refs of the base name here. What stands beside commits, and the files of the repository
    /// that they came from, may be others there: each way is tried in which the base may have been made.
    fn by_reading(
        &self,
        to: &Destination,
        held: &str,
        jobs: usize,
        progress: &Progress,
    ) -> Result<(Index, Role), Error> {
        progress.enter(Phase::Listing, 0, 0);
        let candidates = self.candidates(to, held, jobs)?;
        let sources: Vec<&OstreeSource> = candidates.iter().map(|candidate| &candidate.source).collect();
        let hashed = HashedCommits::read(&sources, jobs, progress).map_err(|error| self.unreadable(error, held))?;
        let mut objects = 0;
        for (collections, files) in self.ways(&candidates)? {
            let refs: Vec<CommitRef<'_>> = candidates
                .iter()
                .zip(&collections)
                .map(|(Candidate { name, source, .. }, collection)| CommitRef { name, collection, source })
                .collect();
            for with_commitmeta in [true, false] {
                progress.check()?;
                let index = hashed.index(&refs, with_commitmeta, &files)?;
                if let Some(role) = self.role(&index) {
                    return Ok((index, role));
                }
                objects = u64::try_from(index.objects().len()).unwrap_or(u64::MAX);
            }
            // They are the same in each way.
            if ![self.delta.difference.base_objects().into(), self.delta.head.root().maxima.objects].contains(&objects)
            {
                break;
            }
        }
        let wanted = u64::from(self.delta.difference.base_objects());
        let why = if objects == wanted {
            "the commits that its refs name are others".to_owned()
        } else {
            format!(
                "the commits that its refs name have {objects} objects, and the base {wanted}; where that has commits before them too, it \
                 has to be what was taken last"
            )
        };
        Err(self.missing(&why, held))
    }

    /// In which ways an index may have been made: the collections of its refs, and the files of the repository that it came from.
    fn ways(&self, candidates: &[Candidate<'_>]) -> Result<Vec<Way>, Error> {
        let own = self.repo.config().collection_id.clone().unwrap_or_default();
        let told = candidates.iter().map(|candidate| candidate.collection.clone()).collect();
        let mut collections: Vec<Vec<String>> = vec![told];
        for id in [own, String::new()] {
            let all = vec![id; candidates.len()];
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

    /// The commits that the refs of the base name here.
    fn candidates(&self, to: &Destination, held: &str, jobs: usize) -> Result<Vec<Candidate<'_>>, Error> {
        let mut candidates = Vec::new();
        for named in self.delta.difference.base_refs() {
            let name = &*named.name;
            if !named.is_commit {
                return Err(self.missing(&format!("{name} of the base is a directory, which it cannot tell"), held));
            }
            let collection = collection_of(&self.delta.difference, name);
            let place = destination(self.repo, name, &collection, to)?;
            let Some(tip) = self.repo.read_ref(&place)? else {
                return Err(self.missing(&format!("it has no ref {place}, which the base has"), held));
            };
            let source = OstreeSource::of_commit(self.repo, tip, 0, &SourceOptions::default(), jobs);
            let source = source.map_err(|error| self.unreadable(error, held))?;
            candidates.push(Candidate { name, collection, source });
        }
        Ok(candidates)
    }

    /// The error of commits of which something is missing or damaged.
    fn unreadable(&self, error: Error, held: &str) -> Error {
        match error {
            Error::Repository { fault, .. } => {
                self.missing(&format!("what its refs name cannot be read, since {fault}"), held)
            }
            error => error,
        }
    }

    fn missing(&self, why: &str, held: &str) -> Error {
        let bases = base::listed(self.delta.bases());
        let problem = format!("it does not hold the base, content {bases}: {why}{held}; take the full bundle");
        Error::MissingBase { path: self.repo.path().to_owned(), problem }
    }
}

/// Collections of refs, and files of a repository.
type Way = (Vec<String>, Vec<(RepositoryFile, Vec<u8>)>);

/// The collection that a delta says of the ref of this name, or else of its first commit.
fn collection_of(difference: &Difference, name: &str) -> String {
    let Some(ostree) = difference.ostree() else { return String::new() };
    let own = difference.refs().iter().find(|edited| edited.name == name).and_then(|edited| match edited.kind {
        EditedKind::Commit(row) => ostree.refs().get(usize::try_from(row).unwrap_or(usize::MAX)),
        EditedKind::Tree(_) => None,
    });
    own.or(ostree.refs().first()).map_or_else(String::new, |from| from.collection.clone())
}

/// The files of a repository that travel with its commits.
fn top_files(repo: &Repo) -> Result<Vec<(RepositoryFile, Vec<u8>)>, Error> {
    let mut files = Vec::new();
    for kind in RepositoryFile::ALL {
        files.extend(repo.top_file(kind.name())?.map(|bytes| (kind, bytes)));
    }
    Ok(files)
}
