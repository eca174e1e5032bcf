//! Builds files in a stage: those of a new tree, or those that an update lacks.

use std::sync::atomic::Ordering;

use sealift_format::num;

use super::files::Builder;
use super::from_base;
use super::hot_files::{HotFiles, Moved};
use super::job::Job;
use super::metadata::Privilege;
use super::plan::{PlannedName, Selection};
use super::premade::make_hot_set;
use super::rewrite::write_hot_set;
use super::staged;
use super::stats::UnpackStats;
use crate::Error;
use crate::delivery::Delivery;
use crate::directory::TreeStage;
use crate::directory::walk::Walk;
use crate::fs::writeback::with_writeback;
use crate::input::Input;
use crate::install::options::Durability;
use crate::progress::Phase;

/// What is built, and where.
pub(super) struct Build<'a> {
    pub(super) job: &'a Job<'a>,
    pub(super) stage: &'a TreeStage,
    pub(super) privilege: &'a Privilege,
    /// What is lacking.
    pub(super) selection: &'a Selection,
    /// The regular files that the stage holds at the end; some of them may exist already.
    pub(super) all: &'a [PlannedName],
    /// The hot set, if it is written again.
    pub(super) hot: &'a HotFiles<'a>,
}

impl<'a> Build<'a> {
    /// Builds everything, and seals it if that is wanted. Returns the files of the hot set that were moved.
    ///
    /// # Errors
    /// Returns an error if the bundle is damaged, or if a file cannot be made.
    pub(super) fn run(&self, input: &mut Input, stats: &mut UnpackStats) -> Result<Moved<'a>, Error> {
        let &Self { job, stage, privilege, .. } = self;
        stats.install.stored_bytes = self.selection.reads.stored_bytes();
        let mut builder = job.builder(self.selection, stage, privilege);
        let mut build = || {
            let moved = self.fill(&mut builder, input)?;
            if job.sealing.is_on {
                let moved = moved.iter().flatten().map(|file| file.place);
                let all: Vec<PlannedName> = self.all.iter().copied().chain(moved).collect();
                job.sealing.seal_staged(&builder, &all, job.options.jobs)?;
            }
            builder.finish_directories(&mut Walk::default()).map(|()| moved)
        };
        let moved = match job.options.tree.durability {
            Durability::End => with_writeback(|| stage.sync(), build)?,
            Durability::None | Durability::Each => build()?,
        };
        input.finish(&job.bundle.head)?;
        stats.shared_bytes = builder.duplicate_bytes.load(Ordering::Relaxed);
        let skipped = privilege.skipped();
        stats.owners_skipped = skipped.owners.load(Ordering::Relaxed);
        stats.set_ids_skipped = skipped.set_ids.load(Ordering::Relaxed);
        stats.xattrs_skipped = skipped.xattrs.load(Ordering::Relaxed);
        stats.devices_skipped = skipped.devices.load(Ordering::Relaxed);
        Ok(moved)
    }

    fn fill(&self, builder: &mut Builder<'_>, input: &mut Input) -> Result<Moved<'a>, Error> {
        let &Self { job, selection, hot, .. } = self;
        let (bundle, bases, jobs, progress) = (job.bundle, job.bases, job.options.jobs, job.progress);
        let mut hand = Walk::default();
        builder.make_directories(&mut hand)?;
        builder.premade = make_hot_set(job, builder, &mut hand)?;
        let builder = &*builder;
        builder.make_large(&mut hand)?;
        let (first, rest) = from_base::lacking(builder, job.order);
        from_base::copy(builder, bases, &first, jobs)?;
        let files = num::wide(selection.regulars.len() + selection.others.len());
        progress.enter(Phase::Unpacking, selection.reads.stored_bytes(), files);
        if job.order.is_some() && bundle.layout.landmark.is_none() && hot.is_empty() {
            // The delta brings nothing of the hot set.
            progress.first_is_written();
        }
        Delivery::new(bundle, bases, &selection.reads, jobs, progress).telling(hot.is_empty()).run(
            input,
            Walk::default,
            |hand, content| builder.take(hand, content),
            |hand, object| builder.finish_large(hand, object),
        )?;
        from_base::copy(builder, bases, &rest, jobs)?;
        let mut moved = None;
        if !hot.is_empty() {
            let beside = job.state_len().saturating_add(job.sealing.room(&bundle.index, self.all));
            moved = write_hot_set(job, builder, hot, beside)?;
            progress.first_is_written();
        }
        for &place in &selection.others {
            builder.make_other(&mut hand, place)?;
        }
        let mut from = Walk::default();
        for link in &selection.links {
            builder.link(&mut from, &mut hand, link)?;
        }
        Ok(moved)
    }
}

/// Takes away from the selection what an interrupted run left in the stage.
///
/// # Errors
/// Returns an error if the stage cannot be read, or if the run was cancelled.
pub(super) fn reuse_staged(
    job: &Job<'_>,
    stage: &TreeStage,
    privilege: &Privilege,
    selection: &mut Selection,
    stats: &mut UnpackStats,
) -> Result<(), Error> {
    job.progress.enter(Phase::Hashing, 0, 0);
    let reused = staged::reuse(&job.builder(selection, stage, privilege))?;
    stats.resumed_files = num::wide(reused.entries.len());
    job.progress.keep(stats.resumed_files);
    tracing::info!(files = stats.resumed_files, "reused files from an interrupted run");
    selection.take_away(job.bundle, |entry| reused.entries.contains(&entry), reused.pieces);
    Ok(())
}
