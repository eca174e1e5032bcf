//! Updates an installed tree: only what it lacks is read and built, and then moved into it.

use std::os::fd::BorrowedFd;

use sealift_format::num;

use super::apply::Update;
use super::build::{Build, reuse_staged};
use super::compare::Compared;
use super::delta;
use super::hot_files::HotFiles;
use super::hot_set::gather;
use super::installed::{Installed, check_ours};
use super::job::Job;
use super::journal::{self, Interrupted};
use super::local::{copy_local, local_entries};
use super::metadata::Privilege;
use super::plan::{PlannedName, Selection};
use super::recorded_stats::recorded_stats;
use super::resume::abandon;
use super::stats::UnpackStats;
use super::trial::Findings;
use crate::directory::stage::{StageKind, TreeStage};
use crate::directory::state;
use crate::directory::target::Target;
use crate::fs::stat_cache::{FileTime, now};
use crate::input::Input;
use crate::install::options::Durability;
use crate::progress::Phase;
use crate::{Error, Keeps, Record, RecordFault};

/// What was found out about the target before its stage was opened.
struct Before<'s> {
    /// Its record.
    kept: Option<Installed>,
    /// What it keeps, if that was tried.
    findings: Option<Findings>,
    /// The comparison that was consented to.
    asked: Option<Compared<'s>>,
}

/// Brings the target, a directory with contents or an empty mount point, to the selection.
pub(super) fn update(
    job: &Job<'_>,
    input: &mut Input,
    selection: Selection,
    kept: Option<Installed>,
) -> Result<UnpackStats, Error> {
    if job.options.dry_run {
        return foresee(job, input, &selection, kept);
    }
    // Consent is asked for before there is a stage.
    let findings = job.consent.map(|_| job.keeping_beside(&selection, true)).transpose()?;
    let privilege = findings.as_ref().map(|findings| Privilege::new(findings.keeps));
    let asked = privilege.as_ref().map_or(Ok(None), |privilege| ask(job, &selection, privilege))?;
    job.admission.hold()?;
    let stage = TreeStage::open(job.site, StageKind::Files)?;
    let found = journal::complete(&stage, job.site, &job.needed, job.options.jobs, job.progress);
    let before = Before { kept, findings, asked };
    match found.and_then(|found| update_in(job, input, &stage, &selection, found, before)) {
        Err(error) => Err(abandon(stage, job.site, error)),
        Ok((stats, unlike)) => {
            stage.remove(job.site)?;
            job.admission.settle()?;
            // The target holds the bundle, but for what another process changed since it was examined.
            unlike.map_or(Ok(stats), Err)
        }
    }
}

/// Returns the stats that an update would have, without changing anything.
fn foresee(job: &Job<'_>, input: &Input, selection: &Selection, kept: Option<Installed>) -> Result<UnpackStats, Error> {
    job.site.check_writable()?;
    let adopted = check_ours(job.site, job.admission.state(), job.options, kept.as_ref())?;
    let Findings { keeps, not_kept } = job.keeping_beside(selection, false)?;
    let privilege = Privilege::new(keeps);
    let kept = kept.map_or_else(|| Installed::kept(job.site, job.options), |kept| Ok(Some(kept)))?;
    let compared = Compared::of(job, selection, &privilege, kept, FileTime::default())?;
    let mut pending = compared.to_build(job, selection);
    let stats = expected(job, &compared, &pending, job.options.tree.list_deletions)?;
    let was_complete = compared.is_done(job, &privilege);
    let mut stats = UnpackStats { was_adopted: adopted.is_some(), adopted, was_complete, not_kept, ..stats };
    job.progress.keep(stats.kept_files);
    delta::check_bases(job, &pending)?;
    if let Some((index, tree)) = compared.installed.tree() {
        let local = local_entries(&job.bundle.index, &pending, index, tree);
        pending.take_away(job.bundle, |entry| local.contains(&entry), Default::default());
    }
    delta::check_brought(job, &pending)?;
    stats.install.requests = job.requests(input, &pending);
    Ok(stats)
}

/// Compares a directory that would be adopted, and asks for consent. Nothing is written, and no other run can interfere.
fn ask<'s>(
    job: &'s Job<'_>,
    selection: &'s Selection,
    privilege: &'s Privilege,
) -> Result<Option<Compared<'s>>, Error> {
    let Some(consent) = job.consent else { return Ok(None) };
    let adopted = check_ours(job.site, job.admission.state(), job.options, None)?;
    if adopted.is_none() {
        return Ok(None);
    }
    job.site.lock()?;
    let (ground, path) = (job.site.ground(), job.site.ground_path());
    let begun = now(ground).map_err(|error| Error::io("create a file in", &path, error))?;
    let kept = Installed::kept(job.site, job.options)?;
    let compared = Compared::of(job, selection, privilege, kept, begun)?;
    let stats = expected(job, &compared, &compared.to_build(job, selection), true)?;
    consent(&UnpackStats { was_adopted: true, adopted, ..stats })?;
    Ok(Some(compared))
}

/// Returns the expected stats of an update whose stage is not open.
fn expected(
    job: &Job<'_>,
    compared: &Compared<'_>,
    pending: &Selection,
    list_deletions: bool,
) -> Result<UnpackStats, Error> {
    check_beside(job, &compared.update.target, job.site.ground())?;
    let stats = compared.stats(job, pending, list_deletions)?;
    let free_bytes = job.expect_room(pending, 0)?;
    Ok(UnpackStats { free_bytes, ..stats })
}

/// Updates the target from the stage. Also returns the error of the first file that was changed meanwhile, and left so.
fn update_in(
    job: &Job<'_>,
    input: &mut Input,
    stage: &TreeStage,
    selection: &Selection,
    found: Interrupted,
    before: Before<'_>,
) -> Result<(UnpackStats, Option<Error>), Error> {
    let Before { kept, findings, asked } = before;
    let record = job.site.record()?;
    let adopted = may_update(job, kept.as_ref(), asked.is_some())?;
    let asked = asked.filter(|_| adopted.is_some() && found == Interrupted::Nothing);
    let begun = now(stage.own().fd()).map_err(|error| Error::io("create a file in", stage.own().path(), error))?;
    let kept = current(job, kept, found)?;
    let findings = findings.map_or_else(|| job.keeping(stage.own().fd(), selection, true), Ok)?;
    let privilege = Privilege::new(findings.keeps).within(stage.root());
    let privilege = &privilege.map_err(|error| Error::io("look at", job.site.path(), error))?;
    let compared = asked.map_or_else(|| Compared::of(job, selection, privilege, kept, begun), Ok);
    let mut compared = compared?;
    check_beside(job, &compared.update.target, stage.root())?;
    let mut pending = compared.to_build(job, selection);
    let free_bytes = job.check_room(stage, &pending, 0)?;
    delta::check_bases(job, &pending)?;
    let stats = compared.stats(job, &pending, job.options.tree.list_deletions)?;
    let (was_adopted, not_kept) = (adopted.is_some(), findings.not_kept);
    let mut stats = UnpackStats { was_adopted, adopted, free_bytes, not_kept, ..stats };
    let (is_done, reached) = (compared.is_done(job, privilege), record.as_ref().and_then(state::kept_seeks));
    let spare = free_bytes.saturating_sub(job.disk(&pending));
    let mut hot = HotFiles::default();
    if !is_done {
        check_names(job, stage)?;
        hot = gather(job, stage, &compared.update, spare, reached)?;
    }
    let all = pending.regulars.clone();
    job.progress.keep(compared.update.changes.kept);
    take_what_is_here(job, stage, &compared, privilege, &mut pending, &mut stats)?;
    if !is_done {
        job.try_signature(stage)?;
    }
    // If files are built, the stage is synced as a whole.
    let syncs = !(compared.update.changes.build.is_empty() && compared.update.made.is_empty());
    let moved = Build { job, stage, privilege, selection: &pending, all: &all, hot: &hot }.run(input, &mut stats)?;
    for file in moved.iter().flatten() {
        compared.update.changes.build_anew(file.place, &file.links);
    }
    stats.gathered_files = moved.as_ref().map_or(0, |moved| num::wide(moved.len()));
    if is_done {
        job.admit()?;
        refresh(job, &compared)?;
        stats.was_complete = true;
        return Ok((stats, None));
    }
    stage_record(job, stage, &compared, findings.keeps, syncs, &mut stats)?;
    let reached = if moved.is_some() { Some(hot.seeks_left(stage, &job.bundle.index)) } else { reached };
    if let (Some(seeks), Some(state)) = (reached, stage.state()?) {
        state::write_seeks(&state, seeks);
    }
    stage.check(job.site)?;
    job.site.check_record(record.as_ref())?;
    commit(job, stage, &compared).map(|unlike| (stats, unlike))
}

/// Refuses a target that is not this program's, or became so since it was examined and consented to. Returns why it is adopted, if it is.
fn may_update(job: &Job<'_>, kept: Option<&Installed>, was_asked: bool) -> Result<Option<RecordFault>, Error> {
    let adopted = check_ours(job.site, job.admission.state(), job.options, kept)?;
    if adopted.is_some() && job.consent.is_some() && !was_asked {
        return Err(Error::Changing { target: job.site.path().to_owned() });
    }
    Ok(adopted)
}

/// Returns the target's record after what was `found` of an earlier run: `kept` if no other update has run since it was read.
fn current(job: &Job<'_>, kept: Option<Installed>, found: Interrupted) -> Result<Option<Installed>, Error> {
    match found {
        Interrupted::Damaged => Ok(None),
        Interrupted::Nothing if kept.as_ref().map_or(Ok(false), |kept| kept.is_current(job.site, job.options))? => {
            Ok(kept)
        }
        Interrupted::Nothing | Interrupted::Finished => Installed::kept(job.site, job.options),
    }
}

/// Checks that files can be renamed from `directory` into the target.
fn check_beside(job: &Job<'_>, target: &Target<'_>, directory: BorrowedFd<'_>) -> Result<(), Error> {
    let path = job.site.path();
    match target.is_beside(directory).map_err(|error| Error::io("look at", path, error))? {
        true => Ok(()),
        false => Err(Error::Unusable {
            path: path.to_owned(),
            problem: "is a mount point, and cannot be updated as a whole",
        }),
    }
}

/// Refuses a file system on which a file of another name could be replaced.
fn check_names(job: &Job<'_>, stage: &TreeStage) -> Result<(), Error> {
    if stage.folds_names()? {
        let problem = "is on a file system that ignores case, so an update could replace the wrong file";
        return Err(Error::Unusable { path: job.site.path().to_owned(), problem });
    }
    Ok(())
}

/// Takes away from what is pending what an interrupted run left in the stage, and copies what the target has under another name.
fn take_what_is_here(
    job: &Job<'_>,
    stage: &TreeStage,
    compared: &Compared<'_>,
    privilege: &Privilege,
    pending: &mut Selection,
    stats: &mut UnpackStats,
) -> Result<(), Error> {
    if stage.is_resumed() {
        reuse_staged(job, stage, privilege, pending, stats)?;
    }
    if !pending.regulars.is_empty()
        && let Some((index, tree)) = compared.installed.tree()
    {
        let copied = copy_local(&job.builder(pending, stage, privilege), &Target::open(job.site, index)?, tree)?;
        pending.take_away(job.bundle, |entry| copied.contains(&entry), Default::default());
        stats.copied_files = num::wide(copied.len());
    }
    delta::check_brought(job, pending)
}

/// Seals what stays, prepares new directories, writes the next record to the stage, and makes the stage durable.
fn stage_record(
    job: &Job<'_>,
    stage: &TreeStage,
    compared: &Compared<'_>,
    keeps: Keeps,
    syncs: bool,
    stats: &mut UnpackStats,
) -> Result<(), Error> {
    let Compared { installed, update, .. } = compared;
    seal_kept(job, update, installed)?;
    update.stage_directories(&stage.new_directories()?)?;
    stats.sealed_files = job.sealing.files();
    let durable = job.options.tree.durability != Durability::None;
    let (inode, had_linked_duplicates) = (job.site.inode_id()?.1, installed.has_linked_duplicates());
    stats.install.kernel_signature = job.write_record(stage, inode, keeps, had_linked_duplicates, durable && !syncs)?;
    if durable && syncs {
        job.progress.enter(Phase::Syncing, 0, 0);
        stage.sync()?;
    }
    Ok(())
}

/// Moves what was built into the target. All new content is complete and checked: the device remembers this version before.
fn commit(job: &Job<'_>, stage: &TreeStage, compared: &Compared<'_>) -> Result<Option<Error>, Error> {
    let (site, update, durable) = (job.site, &compared.update, job.options.tree.durability != Durability::None);
    job.admit()?;
    job.progress.while_changing(|| {
        journal::write(stage, site, update.may_delete, durable)?;
        journal::commit_update(stage, site, update, Some(&compared.kept()), durable)
    })
}

/// Records the new stats of files that were merely touched, and that all of them are of one bundle.
fn refresh(job: &Job<'_>, compared: &Compared<'_>) -> Result<(), Error> {
    let (Some(recheck), Some(record)) = (&compared.recheck, job.site.record()?) else { return Ok(()) };
    record.remove(Record::MIXED)?;
    if recheck.is_refreshed {
        let stats = recorded_stats(&compared.update, &compared.kept(), compared.begun)?;
        state::write_stats(&record, &stats)?;
    }
    Ok(())
}

/// Seals what stays. Recorded seals are adopted with their digests; files that were examined are sealed now.
fn seal_kept(job: &Job<'_>, update: &Update<'_>, installed: &Installed) -> Result<(), Error> {
    if !job.sealing.is_on {
        return Ok(());
    }
    if !installed.was_hashed() {
        job.sealing.take_known(installed.sealed(), update.target.index);
        return Ok(());
    }
    let stays = |place: &&PlannedName| !update.changes.build.contains(&place.entry);
    let kept: Vec<PlannedName> = update.selection.regulars.iter().filter(stays).copied().collect();
    job.sealing.seal_kept(&update.target, &kept, job.options.jobs, job.progress)
}
