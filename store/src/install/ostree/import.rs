//! Imports a bundle into a repository: reads only what it lacks, compares each object with its checksum, and sets refs last.

use std::path::Path;
use std::sync::Arc;

use sealift_format::hex;
use sealift_format::num;
use sealift_format::{Bundle, Opened, OsTreeKind, Ref};

use super::closure::{self, Depth};
use super::delta;
use super::destination::destination;
use super::files::Work;
use super::plan::Plan;
use super::sealing;
use super::stats::OsTreeStats;
use super::summary::{Renewed, mirror_summary, renew_summary};
use crate::base::Bases;
use crate::fs::writeback::with_writeback;
use crate::input::Input;
use crate::install::options::{Destination, InstallOptions};
use crate::install::resume::{may_get_further, may_with_another_copy};
use crate::install::stats::{RefValue, SetRef};
use crate::ostree::carried::Carried;
use crate::ostree::object::ObjectType;
use crate::ostree::records::{self, records};
use crate::ostree::repo::Repo;
use crate::ostree::signatures;
use crate::ostree::transaction::Transaction;
use crate::progress::Phase;
use crate::seal::Seal;
use crate::threads::parallel::for_each;
use crate::trust::{Admission, Survey, TargetId, TargetKind, Trusted};
use crate::{Error, Progress};

/// Imports the commits of a bundle into the repository at `target`. A delta bundle requires its base: one that is given, or a repository that holds
/// it.
///
/// The device remembers the bundle before any of it can be reached in the repository. After a kill at any point the repository is consistent, and
/// another run completes it.
///
/// Existing objects of the commits are checked by size, type and time; those that are not as expected are imported again.
///
/// # Errors
/// Returns an error if the bundle is refused, damaged, older than the imported one, or cannot be remembered; if the repository cannot be used,
/// cannot hold what a commit has, or lacks space or the base of a delta; or if its remote does not accept a commit. Nothing in the repository is
/// changed then.
pub fn import(
    bundle: Trusted,
    target: &Path,
    options: &InstallOptions,
    progress: &Progress,
) -> Result<OsTreeStats, Error> {
    let (unopened, admission) = bundle.install(options.dry_run)?;
    let (mut input, opened) = unopened.open_any()?;
    let repo = Arc::new(Repo::open(target)?);
    repo.check_own()?;
    let name = &opened.head().root().identity.name;
    let survey = Survey::of_name(TargetKind::Ostree, repo.root(), repo.path(), name, Some(admission.state()))?;
    admission.check_bound(&survey, target)?;
    let survey = survey.with(&records(&repo).look(name, |_, record| Ok(record))?);
    survey.claim(options.adopt)?;
    let is_sealed = sealing::plan(&repo, name, options.seal)?;
    let (bundle, bases) = whole(opened, &mut input, &repo, options, progress)?;
    let signature = sealing::signature(&repo, &bundle.head, options.seal).filter(|_| is_sealed);
    if let Some(signature) = signature.filter(|signature| signature.is_required && !options.dry_run) {
        records::try_signature(&repo, &bundle, signature)?;
    }
    let options = &InstallOptions { seal: if is_sealed { Seal::Require } else { Seal::Off }, ..options.clone() };
    let started = records::now();
    // As long as it is there, the import is not complete.
    let running = if options.dry_run { None } else { Some(records::stage(&repo)?) };
    let place = TargetId::of_store(TargetKind::Ostree, repo.path())?;
    let import = Import { repo: &repo, options, admission: &admission, place: Some(&place), progress };
    let mut stats = import.take(&mut input, &bundle, &bases)?;
    stats.import.install.gone_back_from = survey.gone_back_from();
    if options.dry_run {
        return Ok(stats);
    }
    // A mirror of all refs uses the source's summary.
    if options.ostree.destination == Destination::Mirror && options.refs.is_empty() {
        stats.has_summary = mirror_summary(&repo, &Carried::new(&bundle)?)?;
    }
    if !stats.has_summary {
        let Renewed { is_updated, has_lost_signature, was_flatpak } = renew(&repo, &bundle, options)?;
        (stats.is_summary_updated, stats.has_lost_signature, stats.was_flatpak) =
            (is_updated, has_lost_signature, was_flatpak);
    }
    let kept = records::order_of(&repo, &bundle.index);
    let order = bases.order_of(&bundle, kept.as_ref());
    stats.import.install.kernel_signature = records::write(&repo, &bundle, order.as_ref(), is_sealed, signature)?;
    drop(running);
    admission.settle()?;
    if stats.import.hashed_objects > 0 && stats.import.repaired_objects == 0 {
        records(&repo).touch(&bundle.head.root().identity.name, started)?;
    }
    Ok(stats)
}

/// Updates the repository's summary, if it has one, to the imported refs.
fn renew(repo: &Repo, bundle: &Bundle, options: &InstallOptions) -> Result<Renewed, Error> {
    let names = choose(bundle, &options.refs)?.into_iter().map(|from| {
        let collection = from.ostree.as_ref().map_or("", |ostree| ostree.collection.as_str());
        destination(repo, &from.name, collection, &options.ostree.destination)
    });
    renew_summary(repo, &names.collect::<Result<Vec<_>, _>>()?, options.ostree.now)
}

/// Returns the whole bundle; completes a delta with the given bases, or else with what the repository holds.
pub(super) fn whole(
    opened: Opened,
    input: &mut Input,
    repo: &Arc<Repo>,
    options: &InstallOptions,
    progress: &Progress,
) -> Result<(Bundle, Bases), Error> {
    let (bundle, bases) = match options.bases.complete(opened, input.path(), progress)? {
        (Opened::Whole(bundle), bases) => (bundle, bases),
        (Opened::Delta(delta), _) => delta::complete(delta, repo, options, progress)?,
    };
    let bases = bases.making(&bundle, input, options.jobs)?;
    Ok((bundle, bases))
}

/// An import of an open, trusted bundle.
pub(super) struct Import<'a> {
    pub(super) repo: &'a Repo,
    /// Whether new objects are sealed has been decided.
    pub(super) options: &'a InstallOptions,
    pub(super) admission: &'a Admission,
    /// The permanent place of the commits, if they stay on this device.
    pub(super) place: Option<&'a TargetId>,
    pub(super) progress: &'a Progress,
}

impl Import<'_> {
    /// Imports the commits. After an error, the file objects that are complete stay in the stage for the next run, if that may get further.
    pub(super) fn take(&self, input: &mut Input, bundle: &Bundle, bases: &Bases) -> Result<OsTreeStats, Error> {
        let mut transaction = Transaction::begin(self.repo)?;
        let taken = self.take_in(&mut transaction, input, bundle, bases);
        if taken.as_ref().is_err_and(|error| may_get_further(error) || may_with_another_copy(error)) {
            transaction.keep();
        }
        taken
    }

    fn take_in(
        &self,
        transaction: &mut Transaction<'_>,
        input: &mut Input,
        bundle: &Bundle,
        bases: &Bases,
    ) -> Result<OsTreeStats, Error> {
        let &Self { repo, options, admission, place, progress } = self;
        let jobs = options.jobs.max(1);
        let carried = Carried::new(bundle)?;
        let refs = choose(bundle, &options.refs)?;
        let names = refs.iter().map(|from| {
            let collection = from.ostree.as_ref().map_or("", |ostree| ostree.collection.as_str());
            destination(repo, &from.name, collection, &options.ostree.destination)
        });
        let names = names.collect::<Result<Vec<_>, _>>()?;
        repo.check_places(&names)?;
        // A medium has no owners of its own.
        place.map_or(Ok(()), |_| repo.check_own_refs(&names))?;
        for (from, name) in refs.iter().zip(&names) {
            signatures::check(repo, name, &carried, from)?;
        }
        // Report an unreadable ref before anything is written.
        let there = names.iter().map(|name| repo.read_ref(name)).collect::<Result<Vec<_>, _>>()?;
        let wanted = if options.no_check { Vec::new() } else { closure::of(repo, &carried, &refs)? };
        let depth = if options.rehash { Depth::Content } else { Depth::Sizes };
        let seen = closure::look(repo, bundle, &wanted, depth, jobs, progress)?;
        transaction.replace(seen.damaged.clone());
        let transaction = &*transaction;
        let mut plan = Plan::new(&carried, transaction);
        if options.no_check {
            for (from, commit) in refs.iter().zip(there) {
                plan.add_commits(from, commit)?;
            }
        } else {
            plan.add_lacking(&wanted, &seen)?;
        }
        let left = transaction.find_left(&plan.wanted_files(), jobs, progress)?;
        let mut stats = plan.stats(&seen);
        plan.take_away(&left.iter().map(|object| object.checksum).collect());
        stats.import.install.logical_bytes = plan.logical_bytes();
        stats.import.resumed_objects = num::wide(left.len());
        progress.keep(stats.import.resumed_objects);
        stats.import.refs = refs
            .iter()
            .zip(&names)
            .map(|(from, name)| {
                let value = RefValue::Commit(hex(&carried.tip(from)?.checksum));
                Ok(SetRef { name: name.to_string(), value })
            })
            .collect::<Result<_, Error>>()?;
        let work = Work::new(bundle, bases, &carried, &plan, transaction, progress);
        stats.import.install.stored_bytes = work.stored_bytes();
        if !options.dry_run {
            transaction.discard_left_but(&left)?;
        }
        // Unsupported files, lack of space and missing base contents are reported before anything is written.
        work.check()?;
        work.check_bases(&options.bases, jobs)?;
        if options.dry_run {
            stats.import.install.requests = work.requests(input);
            return Ok(stats);
        }
        transaction.take_left(&left)?;
        with_writeback(|| transaction.sync(), || work.run(input, jobs))?;
        input.finish(&bundle.head)?;
        for_each(jobs, &plan.metadata, |(kind, object)| {
            let (checksum, bytes) = (&object.checksum, bundle.index.ostree_bytes(object));
            let is_new = match kind {
                OsTreeKind::Commit => transaction.write_commit(checksum, bytes)?,
                OsTreeKind::CommitMeta => transaction.write_commitmeta(checksum, bytes)?,
                OsTreeKind::DirTree => transaction.write_metadata(ObjectType::DirTree, checksum, bytes)?,
                OsTreeKind::DirMeta => transaction.write_metadata(ObjectType::DirMeta, checksum, bytes)?,
            };
            tracing::trace!(object = %hex(checksum), ?kind, is_new);
            Ok(())
        })?;
        for (from, name) in refs.iter().zip(names) {
            transaction.set_ref(name, carried.tip(from)?.checksum);
        }
        if options.seal == Seal::Require {
            stats.import.install.is_sealed = true;
            stats.import.sealed_objects = transaction.seal(jobs, progress)?;
        }
        progress.enter(Phase::Syncing, 0, 0);
        transaction.finish(jobs, || {
            admission.commit(place)?;
            if place.is_some() { records(repo).begin(&bundle.head) } else { Ok(()) }
        })?;
        Ok(stats)
    }
}

/// Returns the requested refs, or all that are commits.
pub(super) fn choose<'a>(bundle: &'a Bundle, names: &[String]) -> Result<Vec<&'a Ref>, Error> {
    let all = || bundle.index.refs().iter().filter(|from| from.ostree.is_some());
    if all().next().is_none() {
        return Err(Error::NoCommit);
    }
    if names.is_empty() {
        return Ok(all().collect());
    }
    let find =
        |name: &String| all().find(|from| from.name == *name).ok_or_else(|| Error::no_ref("OSTree ref", name, all()));
    names.iter().map(find).collect()
}
