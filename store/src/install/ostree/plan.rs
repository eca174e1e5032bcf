//! What a repository lacks of a bundle's commits.

use std::collections::{BTreeMap, HashMap, HashSet};

use sealift_format::num;
use sealift_format::ostree::{Checksum, Commit, DirTree};
use sealift_format::{InodeKind, Object, OsTreeKind, OsTreeObject, Ref, Row};

use super::closure::Seen;
use super::stats::OsTreeStats;
use crate::Error;
use crate::install::stats::{ImportStats, InstallStats};
use crate::ostree::carried::Carried;
use crate::ostree::object::ObjectType;
use crate::ostree::repo::Repo;
use crate::ostree::transaction::Transaction;
use crate::ostree::wanted::{Wanted, WantedContent};

/// What the repository lacks.
pub(super) struct Plan<'a> {
    carried: &'a Carried<'a>,
    transaction: &'a Transaction<'a>,
    repo: &'a Repo,
    /// For each object of the bundle, the files to build from it; symbolic links are under `None`.
    pub(super) wanted: BTreeMap<Option<Row<Object>>, Vec<u32>>,
    /// Children before parents.
    pub(super) metadata: Vec<(OsTreeKind, OsTreeObject)>,
    seen: HashSet<(OsTreeKind, Checksum)>,
    seen_files: HashSet<Checksum>,
}

impl<'a> Plan<'a> {
    /// Returns an empty plan.
    pub(super) fn new(carried: &'a Carried<'a>, transaction: &'a Transaction<'a>) -> Self {
        Self {
            carried,
            transaction,
            repo: transaction.repo,
            wanted: BTreeMap::new(),
            metadata: Vec::new(),
            seen: HashSet::new(),
            seen_files: HashSet::new(),
        }
    }

    /// Adds the wanted objects that are missing or damaged, and the commits that are marked as partial.
    pub(super) fn add_lacking(&mut self, wanted: &[Wanted<'_>], seen: &Seen) -> Result<(), Error> {
        for wanted in wanted {
            let (checksum, is_lacking) = (&wanted.checksum, seen.is_lacking(wanted));
            let kind = match wanted.kind {
                ObjectType::File => {
                    if is_lacking && let WantedContent::File(file) = wanted.what {
                        self.want(checksum, file.kind);
                    }
                    continue;
                }
                ObjectType::Commit => OsTreeKind::Commit,
                ObjectType::DirTree => OsTreeKind::DirTree,
                ObjectType::DirMeta => OsTreeKind::DirMeta,
                ObjectType::CommitMeta => OsTreeKind::CommitMeta,
            };
            let is_partial = wanted.kind == ObjectType::Commit && self.repo.is_partial(checksum)?;
            if is_lacking || is_partial {
                self.metadata.extend(self.carried.find(kind, checksum).map(|object| (kind, *object)));
            }
            if wanted.kind == ObjectType::Commit {
                let kind = OsTreeKind::CommitMeta;
                self.metadata.extend(self.carried.find(kind, checksum).map(|object| (kind, *object)));
            }
        }
        Ok(())
    }

    /// Adds a ref's commit and its ancestors, as far as they are carried. Objects shared with `there`, the commit that the ref names in the
    /// repository, are skipped.
    pub(super) fn add_commits(&mut self, from: &Ref, there: Option<Checksum>) -> Result<(), Error> {
        let mut next = Some(self.carried.tip(from)?.checksum);
        while let Some(checksum) = next.take() {
            let Some(object) = self.carried.find(OsTreeKind::Commit, &checksum) else { break };
            let bytes = self.carried.bundle.index.ostree_bytes(object);
            let commit = Commit::parse(bytes).map_err(|fault| self.repo.wrong(ObjectType::Commit, &checksum, fault))?;
            next = commit.parent.copied();
            if !self.seen.insert((OsTreeKind::Commit, checksum)) {
                continue;
            }
            if !self.repo.has_whole_commit(&checksum)? {
                let base = [there, next].into_iter().flatten();
                let base = self.whole_root(base)?;
                self.add_meta(commit.root_meta)?;
                self.add_tree(*commit.root_tree, base)?;
                self.metadata.push((OsTreeKind::Commit, *object));
            }
            let beside = self.carried.find(OsTreeKind::CommitMeta, &checksum);
            self.metadata.extend(beside.map(|object| (OsTreeKind::CommitMeta, *object)));
        }
        Ok(())
    }

    /// Returns the root of the first of these commits that the repository has completely.
    fn whole_root(&self, commits: impl Iterator<Item = Checksum>) -> Result<Option<Checksum>, Error> {
        for checksum in commits {
            if self.repo.has_whole_commit(&checksum)? {
                let bytes = self.repo.load_metadata(ObjectType::Commit, &checksum)?;
                let commit =
                    Commit::parse(&bytes).map_err(|fault| self.repo.wrong(ObjectType::Commit, &checksum, fault))?;
                return Ok(Some(*commit.root_tree));
            }
        }
        Ok(None)
    }

    fn add_meta(&mut self, checksum: &Checksum) -> Result<(), Error> {
        if self.seen.insert((OsTreeKind::DirMeta, *checksum))
            && !self.transaction.has(ObjectType::DirMeta, checksum)?
            && let Some(object) = self.carried.find(OsTreeKind::DirMeta, checksum)
        {
            self.metadata.push((OsTreeKind::DirMeta, *object));
        }
        Ok(())
    }

    /// Adds a dirtree with everything below it. If `base` is a dirtree that the repository has completely, both are traversed together, and what
    /// they share is skipped.
    fn add_tree(&mut self, root: Checksum, base: Option<Checksum>) -> Result<(), Error> {
        let mut pending = vec![(root, base)];
        while let Some((dirtree, base)) = pending.pop() {
            if base == Some(dirtree) || !self.seen.insert((OsTreeKind::DirTree, dirtree)) {
                continue;
            }
            let tree = self.carried.dirtree(self.repo, &dirtree)?;
            let old = match base {
                Some(base) => self.repo.load_metadata(ObjectType::DirTree, &base)?,
                None => Vec::new(),
            };
            let old = match base {
                Some(base) => {
                    DirTree::parse(&old).map_err(|fault| self.repo.wrong(ObjectType::DirTree, &base, fault))?
                }
                None => DirTree::default(),
            };
            let known: HashSet<&Checksum> = old.files.iter().map(|(_, file)| *file).collect();
            for (_, file) in tree.files.iter().filter(|(_, file)| !known.contains(file)) {
                self.add_file(file)?;
            }
            let below: HashMap<&[u8], (&Checksum, &Checksum)> =
                old.directories.iter().map(|(name, tree, meta)| (*name, (*tree, *meta))).collect();
            for (name, tree, meta) in &tree.directories {
                let old = below.get(name);
                if old.is_none_or(|(_, old)| old != meta) {
                    self.add_meta(meta)?;
                }
                pending.push((**tree, old.map(|(old, _)| **old)));
            }
            if !self.transaction.has(ObjectType::DirTree, &dirtree)?
                && let Some(object) = self.carried.find(OsTreeKind::DirTree, &dirtree)
            {
                self.metadata.push((OsTreeKind::DirTree, *object));
            }
        }
        Ok(())
    }

    fn add_file(&mut self, checksum: &Checksum) -> Result<(), Error> {
        let Some(&number) = self.carried.files.get(checksum) else { return Ok(()) };
        if self.seen_files.insert(*checksum) && !self.transaction.has(ObjectType::File, checksum)? {
            self.want(checksum, self.carried.ostree.files()[num::at(number)].kind);
        }
        Ok(())
    }

    fn want(&mut self, checksum: &Checksum, kind: InodeKind) {
        let object = match kind {
            InodeKind::Regular(object) => Some(object),
            _ => None,
        };
        if let Some(&number) = self.carried.files.get(checksum) {
            self.wanted.entry(object).or_default().push(number);
        }
    }

    /// Returns the checksums of the regular files that are wanted.
    pub(super) fn wanted_files(&self) -> HashSet<Checksum> {
        let regular = self.wanted.iter().filter(|(object, _)| object.is_some());
        regular.flat_map(|(_, files)| files).map(|file| self.checksum_of(*file)).collect()
    }

    /// Takes away files that need not be built.
    pub(super) fn take_away(&mut self, there: &HashSet<Checksum>) {
        if there.is_empty() {
            return;
        }
        let carried = self.carried;
        self.wanted.retain(|_, files| {
            files.retain(|file| !there.contains(&carried.ostree.files()[num::at(*file)].checksum));
            !files.is_empty()
        });
    }

    fn checksum_of(&self, file: u32) -> Checksum {
        self.carried.ostree.files()[num::at(file)].checksum
    }

    /// Returns the bytes of the files that are to be built.
    pub(super) fn logical_bytes(&self) -> u64 {
        let size =
            |object: &Option<Row<Object>>| object.map_or(0, |object| self.carried.bundle.index.object(object).size);
        let of = |(object, files): (&_, &Vec<u32>)| size(object).saturating_mul(num::wide(files.len()));
        self.wanted.iter().map(of).sum()
    }

    pub(super) fn stats(&self, seen: &Seen) -> OsTreeStats {
        let damaged =
            |is: &dyn Fn(ObjectType) -> bool| num::wide(seen.damaged.iter().filter(|(_, kind)| is(*kind)).count());
        let count =
            |is: &dyn Fn(OsTreeKind) -> bool| num::wide(self.metadata.iter().filter(|(kind, _)| is(*kind)).count());
        let len = |files: &Vec<u32>| num::wide(files.len());
        OsTreeStats {
            commits: count(&|kind| kind == OsTreeKind::Commit)
                .saturating_sub(damaged(&|kind| kind == ObjectType::Commit)),
            metadata: count(&|kind| matches!(kind, OsTreeKind::DirTree | OsTreeKind::DirMeta))
                .saturating_sub(damaged(&|kind| matches!(kind, ObjectType::DirTree | ObjectType::DirMeta))),
            files: self.wanted.values().map(len).sum::<u64>().saturating_sub(damaged(&|kind| kind == ObjectType::File)),
            hashed_bytes: seen.hashed_bytes,
            import: ImportStats {
                install: InstallStats { logical_bytes: self.logical_bytes(), ..InstallStats::default() },
                checked_objects: seen.checked,
                hashed_objects: seen.hashed,
                repaired_objects: damaged(&|_| true),
                ..ImportStats::default()
            },
            ..OsTreeStats::default()
        }
    }
}
