//! Makes a target that is not there, or is empty.

use super::build::{Build, reuse_staged};
use super::delta;
use super::hot_files::HotFiles;
use super::job::Job;
use super::metadata::Privilege;
use super::plan::Selection;
use super::recorded_stats::of_new;
use super::resume::abandon;
use super::stats::UnpackStats;
use super::update::update;
use crate::directory::stage::StageKind;
use crate::directory::{Target, TreeStage, state};
use crate::fs::stat_cache::next_moment;
use crate::input::Input;
use crate::install::options::Durability;
use crate::progress::Phase;
use crate::seal::KernelSignature;
use crate::{Error, Keeps, inode_id};

/// Makes the selection as a new directory, which appears by one rename together with its record.
pub(super) fn make(job: Job<'_>, input: &mut Input, selection: Selection) -> Result<UnpackStats, Error> {
    let site = job.site;
    let mut stats = job.expected(&selection);
    delta::check_bases(&job, &selection)?;
    if job.options.dry_run {
        site.check_writable()?;
        stats.not_kept = job.keeping_beside(&selection, false)?.not_kept;
        stats.free_bytes = job.expect_room(&selection, job.state_len())?;
        stats.install.requests = job.requests(input, &selection);
        return Ok(stats);
    }
    let stage = TreeStage::open(site, StageKind::Tree)?;
    if !stage.moves_directories(site)? {
        stage.remove(site)?;
        return make_in_place(job, input, selection);
    }
    if let Err(error) = make_in(&job, input, &stage, selection, &mut stats) {
        return Err(abandon(stage, site, error));
    }
    stage.finish(site, job.options.tree.durability != Durability::None)?;
    job.admission.settle()?;
    Ok(stats)
}

/// Makes the selection where the target will be, as an update of an empty directory: no directory can be renamed to its name.
fn make_in_place(job: Job<'_>, input: &mut Input, selection: Selection) -> Result<UnpackStats, Error> {
    let site = job.site.with_directory()?;
    let filled = update(&Job { site: &site, ..job }, input, selection, None);
    if filled.is_err() {
        site.remove_empty();
    }
    filled
}

/// Makes the selection and its record in the stage.
fn make_in(
    job: &Job<'_>,
    input: &mut Input,
    stage: &TreeStage,
    mut selection: Selection,
    stats: &mut UnpackStats,
) -> Result<(), Error> {
    stats.free_bytes = job.check_room(stage, &selection, job.state_len())?;
    job.try_signature(stage)?;
    let findings = job.keeping(stage.own().fd(), &selection, true)?;
    stats.not_kept = findings.not_kept;
    let privilege = Privilege::new(findings.keeps).within(stage.root());
    let privilege = &privilege.map_err(|error| Error::io("look at", job.site.path(), error))?;
    let everything = selection.clone();
    if stage.is_resumed() {
        reuse_staged(job, stage, privilege, &mut selection, stats)?;
    }
    let (all, hot) = (&everything.regulars[..], &HotFiles::default());
    Build { job, stage, privilege, selection: &selection, all, hot }.run(input, stats)?;
    stats.sealed_files = job.sealing.files();
    stats.install.kernel_signature = write_record(job, stage, &everything, findings.keeps)?;
    Ok(())
}

/// Makes the built tree and its record durable. The record gets its name before the tree does: a tree without its record would be bound to no
/// name. Returns what happened to the signature for the kernel.
fn write_record(
    job: &Job<'_>,
    stage: &TreeStage,
    selection: &Selection,
    keeps: Keeps,
) -> Result<KernelSignature, Error> {
    let durable = job.options.tree.durability != Durability::None;
    let failed = |error| Error::io("look at", stage.target(), error);
    let tree = inode_id(stage.root()).map_err(failed)?;
    let kernel_signature = job.write_record(stage, tree.1, keeps, false, false)?;
    if let Some(state) = stage.state()? {
        let since = next_moment(stage.own().fd()).map_err(failed)?;
        // The root may be closed to its own user by now.
        let stats = stage.while_open(|| {
            let built = Target::staged(stage.target(), stage.root(), &job.bundle.index)?;
            let of = job.bundle.head.root().contents.index_digest;
            of_new(&built, of, selection, &keeps, &job.finished.take(), since, job.options.jobs)
        })?;
        state::write_stats(&state, &stats)?;
    }
    job.progress.enter(Phase::Syncing, 0, 0);
    if durable {
        stage.sync()?;
    }
    stage.check(job.site)?;
    // All new content is complete and checked. From here on the device remembers this version.
    job.admit()?;
    state::replace(stage, job.site).map(|()| kernel_signature)
}
