//! Audits a repository: whether its refs, and each object's checksum, still match the signed bundles, as `ostree fsck` compares them.
//!
//! The kernel is asked about sealed objects. A commit, dirtree or dirmeta is in the index, and so is its digest. For contents the index has one
//! digest of all digests: if those from the kernel agree with it, no content is read; otherwise all contents are read, to find the one that
//! differs.

use std::collections::HashSet;
use std::path::Path;

use sealift_format::hex;
use sealift_format::num;
use sealift_format::ostree::{Checksum, Commit};
use sealift_format::{Index, Limits, OsTree, Ref};

use super::{Finding, FindingKind, StoreAudit, StoreAuditOptions, kept_names};
use crate::input::Input;
use crate::install_record::InstallRecord;
use crate::ostree::look::{ObjectCheck, ObjectState};
use crate::ostree::object::{ObjectType, loose_path};
use crate::ostree::records::records;
use crate::ostree::refs::{RefName, RefOwner};
use crate::ostree::repo::Repo;
use crate::ostree::wanted::{Walk, Wanted, WantedContent, WantedObjects};
use crate::threads::parallel::map;
use crate::trust::{Guard, Judged, Survey, TargetKind};
use crate::{Error, Phase, Progress};

/// Compares a repository with a bundle, or with its record of the bundles installed into it. Other commits and objects are ignored.
///
/// `guard` decides by each bundle's head whether its index can be trusted, before that is parsed, as [`Guard::judge_installed`] does; the judgements
/// come with the result. The record does not say where a ref was put: it counts as present if there is a ref of this name, whether the repository's
/// own, a remote's or the collection's.
///
/// # Errors
/// Returns an error if there is no repository or it has no record, if a bundle or a record is refused or damaged, or if something cannot be read.
pub fn audit(
    target: &Path,
    bundle: Option<Input>,
    options: &StoreAuditOptions,
    limits: Limits,
    guard: &Guard,
    progress: &Progress,
) -> Result<(StoreAudit, Vec<Judged>), Error> {
    let repo = Repo::open(target)?;
    let (mut judged, mut held, mut audit) = (Vec::new(), Vec::new(), StoreAudit::default());
    if let Some(input) = bundle {
        let unopened = input.begin(limits)?;
        judged.push(guard.judge_installed(unopened.head())?);
        let (_, bundle, _) = options.bases.open(unopened, progress)?;
        held.push((bundle.head, bundle.index));
    } else {
        for name in kept_names(repo.path(), records(&repo).names()?, &options.names)? {
            let state = Some(guard.state());
            audit.take(&name, &Survey::of_name(TargetKind::Ostree, repo.root(), repo.path(), &name, state)?);
            let loaded =
                records(&repo).load_judged(&name, |head| guard.judge_installed(head), |_, record| Ok(record))?;
            let Some((bundle, InstallRecord { head, index, .. })) = loaded else { continue };
            judged.push(bundle);
            held.push((head, index));
        }
    }
    for (head, index) in &held {
        let is_sealed = records(&repo).is_sealed(&head.root().identity.name);
        audit.is_sealed |= is_sealed;
        let Some(ostree) = index.ostree() else { continue };
        let mut job = BundleAudit { repo: &repo, index, ostree, is_sealed, options, progress, audit: &mut audit };
        let trees = job.check_refs()?;
        job.check_objects(&trees)?;
    }
    if audit.trees.is_empty() {
        return Err(Error::Usage(match &options.reference {
            Some(name) => format!("none of the compared bundles has an OSTree ref {}", name.escape_debug()),
            None => "none of the compared bundles has an OSTree commit".into(),
        }));
    }
    audit.sum_up();
    Ok((audit, judged))
}

/// The audit of one bundle.
struct BundleAudit<'a, 'b> {
    repo: &'a Repo,
    index: &'a Index,
    ostree: &'a OsTree,
    /// Whether what it brought should be sealed.
    is_sealed: bool,
    options: &'a StoreAuditOptions,
    progress: &'a Progress,
    audit: &'b mut StoreAudit,
}

/// The places of a ref.
struct Standing {
    /// The commit in each place that has the ref; `None` for anything else.
    there: Vec<(RefName, Option<Checksum>)>,
    /// Whether the repository has the expected commit.
    has_tip: bool,
}

impl<'a> BundleAudit<'a, '_> {
    /// Determines which refs were imported, and whether they are in place. A ref was imported if it is in place or the repository has its commit;
    /// if that is true of none, all count as imported.
    fn check_refs(&mut self) -> Result<Vec<&'a Ref>, Error> {
        let (mut taken, mut others) = (Vec::new(), Vec::new());
        for from in self.index.refs() {
            let Some(tip) = self.tip(from) else { continue };
            let is_asked = self.options.reference.as_ref().is_some_and(|name| *name == from.name);
            if self.options.reference.is_some() && !is_asked {
                continue;
            }
            let standing = self.standing(from, &tip)?;
            let stands = standing.there.iter().any(|(_, commit)| *commit == Some(tip));
            let place = if is_asked || stands || standing.has_tip { &mut taken } else { &mut others };
            place.push((from, tip, standing));
        }
        let trees = if taken.is_empty() { others } else { taken };
        for (from, tip, standing) in &trees {
            self.report_ref(from, tip, standing)?;
        }
        self.audit.trees.extend(trees.iter().map(|(from, ..)| from.name.clone()));
        Ok(trees.into_iter().map(|(from, ..)| from).collect())
    }

    fn tip(&self, from: &Ref) -> Option<Checksum> {
        let number = usize::try_from(from.ostree.as_ref()?.commit).ok()?;
        Some(self.ostree.objects().get(number)?.checksum)
    }

    fn standing(&self, from: &Ref, tip: &Checksum) -> Result<Standing, Error> {
        let collection = from.ostree.as_ref().map_or("", |own| own.collection.as_str());
        let mut places = vec![RefOwner::Heads];
        places.extend((!collection.is_empty()).then(|| RefOwner::Mirror(collection.to_owned())));
        places.extend(self.repo.remotes_with_refs()?.into_iter().map(RefOwner::Remote));
        let mut there = Vec::new();
        for name in places.into_iter().filter_map(|place| RefName::new(place, &from.name).ok()) {
            match self.repo.read_ref(&name) {
                Ok(None) => {}
                Ok(commit) => there.push((name, commit)),
                Err(Error::Repository { .. }) => there.push((name, None)),
                Err(error) => return Err(error),
            }
        }
        Ok(Standing { there, has_tip: self.repo.has(ObjectType::Commit, tip)? })
    }

    fn report_ref(&mut self, from: &Ref, tip: &Checksum, standing: &Standing) -> Result<(), Error> {
        if standing.there.iter().any(|(_, commit)| commit == &Some(*tip)) {
            return Ok(());
        }
        let tree = Some(from.name.clone());
        if standing.there.is_empty() {
            // It may have been elsewhere: this is the default place.
            let name = format!("refs/heads/{}", from.name);
            self.audit.findings.push(Finding { tree, ..Finding::new(FindingKind::Missing, name) });
            return Ok(());
        }
        // There may be unrelated refs of this name: the imported one is that which descends from the expected commit.
        let mut moved = Vec::new();
        for (name, commit) in &standing.there {
            if let Some(commit) = commit
                && self.descends(commit, tip)?
            {
                moved.push((name, Some(*commit)));
            }
        }
        if moved.is_empty() {
            moved.extend(standing.there.iter().map(|(name, commit)| (name, *commit)));
        }
        let finding = |(name, commit): (&RefName, Option<Checksum>)| Finding {
            tree: tree.clone(),
            expected: Some(hex(tip)),
            found: commit.map(|commit| hex(&commit)),
            ..Finding::new(FindingKind::Changed, name.path())
        };
        self.audit.findings.extend(moved.into_iter().map(finding));
        Ok(())
    }

    /// Returns whether a commit descends from another one, as far as the repository has those between.
    fn descends(&self, commit: &Checksum, from: &Checksum) -> Result<bool, Error> {
        let (mut at, mut seen) = (*commit, HashSet::new());
        while at != *from {
            if !seen.insert(at) {
                return Ok(false);
            }
            let bytes = match self.repo.load_metadata(ObjectType::Commit, &at) {
                Err(Error::Repository { .. }) => return Ok(false),
                bytes => bytes?,
            };
            match Commit::parse(&bytes).ok().and_then(|commit| commit.parent.copied()) {
                Some(parent) => at = parent,
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    fn check_objects(&mut self, trees: &[&'a Ref]) -> Result<(), Error> {
        let wanted = self.wanted(trees)?;
        let look = ObjectCheck::new(self.repo, self.index, self.progress, self.options.jobs.max(1));
        let (mut metadata, mut files) = (Vec::new(), Vec::new());
        for (at, wanted) in wanted.objects.iter().enumerate() {
            match wanted.what {
                WantedContent::Metadata(bytes) => metadata.push((at, bytes)),
                WantedContent::File(file) => files.push((at, file)),
            }
        }
        self.progress.enter(Phase::Verifying, 0, num::wide(wanted.objects.len()));
        let mut results = map(self.options.jobs.max(1), &metadata, |(at, bytes)| {
            let Wanted { kind, checksum, .. } = &wanted.objects[*at];
            Ok((*at, look.metadata(*kind, checksum, bytes)?))
        })?;
        results.extend(look.files(&files)?);
        self.audit.counts.objects += num::wide(wanted.objects.len());
        for (at, looked) in results {
            let object = &wanted.objects[at];
            self.report_object(object, || wanted.path(object), looked, &look)?;
        }
        Ok(())
    }

    fn report_object(
        &mut self,
        wanted: &Wanted<'_>,
        path: impl FnOnce() -> Option<Vec<u8>>,
        looked: ObjectState,
        look: &ObjectCheck<'_>,
    ) -> Result<(), Error> {
        let counts = &mut self.audit.counts;
        let kind = match looked {
            ObjectState::Vouched => {
                counts.vouched += 1;
                return Ok(());
            }
            ObjectState::Right { bytes } => {
                counts.hashed += 1;
                counts.hashed_bytes = counts.hashed_bytes.saturating_add(bytes);
                if !self.is_sealed || !look.is_unsealed(wanted.kind, &wanted.checksum)? {
                    return Ok(());
                }
                FindingKind::Unsealed
            }
            ObjectState::Missing => FindingKind::Missing,
            ObjectState::Changed => FindingKind::Changed,
        };
        let name = loose_path(wanted.kind, &wanted.checksum, self.repo.config().mode);
        self.audit.findings.push(Finding {
            tree: Some(wanted.tree.name.clone()),
            path: path(),
            ..Finding::new(kind, format!("objects/{name}"))
        });
        Ok(())
    }

    /// Returns all objects of the trees, and of their parent commits that the bundle carries.
    fn wanted(&self, trees: &[&'a Ref]) -> Result<WantedObjects<'a>, Error> {
        let mut walk = Walk::new(self.repo, self.index, self.ostree);
        for tree in trees {
            let mut next = self.tip(tree);
            while let Some(commit) = next {
                next = walk.add_commit(tree, commit)?;
            }
        }
        Ok(walk.finish())
    }
}
