//! What a target has before an update, and what the update has to do.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use sealift_format::{Directory, Row, num};

use super::apply::Update;
use super::census::Census;
use super::changes::Changes;
use super::deletions::Deletions;
use super::installed::Installed;
use super::job::Job;
use super::metadata::Privilege;
use super::needed::Needed;
use super::plan::Selection;
use super::recheck::{Checker, Recheck};
use super::recorded_stats::Kept;
use super::standing::Recorded;
use super::stats::UnpackStats;
use crate::Error;
use crate::directory::target::Target;
use crate::fs::stat_cache::FileTime;
use crate::xattrs::XattrFilter;

/// What the target has, and what to do.
pub(super) struct Compared<'s> {
    pub(super) installed: Installed,
    pub(super) update: Update<'s>,
    /// The comparison of the target with its record, if made.
    pub(super) recheck: Option<Recheck>,
    /// A time before any of it was examined.
    pub(super) begun: FileTime,
}

impl<'s> Compared<'s> {
    /// Compares the target with the selection; `kept` is its record, and `begun` a time before any of it was examined.
    ///
    /// # Errors
    /// Returns an error if the target cannot be read, changes meanwhile, or has something in the way.
    pub(super) fn of(
        job: &'s Job<'_>,
        selection: &'s Selection,
        privilege: &'s Privilege,
        kept: Option<Installed>,
        begun: FileTime,
    ) -> Result<Self, Error> {
        let recorded = Arc::new(match kept.as_ref().and_then(|kept| kept.recorded(&job.bundle.index, selection)) {
            Some(recorded) => recorded,
            None => Recorded::of(job.site, &job.bundle.index, selection)?,
        });
        if let Some(installed) = kept {
            let recheck = rechecked(job, &installed, privilege, begun)?;
            if let Some(update) = changes(job, selection, privilege, &installed, &recorded, recheck.as_ref())? {
                tracing::info!("using the install record");
                return Ok(Self { installed, update, recheck, begun });
            }
        }
        tracing::info!("no usable install record: comparing the files of the target");
        let index = &job.bundle.index;
        let (options, keeps) = (job.options, privilege.keeps());
        let installed = Installed::by_looking(job.site, index, selection, options, keeps, job.progress)?;
        match changes(job, selection, privilege, &installed, &recorded, None)? {
            Some(update) => Ok(Self { installed, update, recheck: None, begun }),
            None => Err(Error::Changing { target: job.site.path().to_owned() }),
        }
    }

    /// Returns whether there is nothing to do.
    pub(super) fn is_done(&self, job: &Job<'_>, privilege: &Privilege) -> bool {
        let Self { installed, update, .. } = self;
        update.changes.is_empty()
            && update.extras.is_empty()
            && job.sealing.is_done(&job.bundle.head)
            && installed.is_of(&job.bundle.head, job.reference)
            && installed.keeps_the_same(privilege)
    }

    /// Returns the part of the selection that is rebuilt.
    pub(super) fn to_build(&self, job: &Job<'_>, selection: &Selection) -> Selection {
        let mut pending = selection.clone();
        let update = &self.update;
        pending.retain(job.bundle, |entry| update.changes.build.contains(&entry), |directory| update.is_new(directory));
        pending
    }

    /// Returns the expected stats of the update, of which `pending` is built.
    ///
    /// # Errors
    /// Returns an error if what is deleted cannot be listed.
    pub(super) fn stats(&self, job: &Job<'_>, pending: &Selection, list_deletions: bool) -> Result<UnpackStats, Error> {
        let Self { installed, update, recheck, .. } = self;
        let deletions = Deletions::of(update, list_deletions)?;
        let checked = recheck.as_ref();
        let was_read = checked.is_some() && installed.stats().is_none();
        let mounts = mounts(self);
        Ok(UnpackStats {
            under_mounts: under(&mounts, update),
            mounts: mounts.iter().map(|path| crate::error::path_of(path).to_owned()).collect(),
            is_update: job.site.is_nonempty_dir()?,
            directories: num::wide(update.changes.new_directories.len()),
            kept_files: update.changes.kept,
            metadata_files: num::wide(update.changes.metadata.len()),
            deleted: deletions.census,
            deletions: deletions.paths.iter().map(|path| crate::error::path_of(path).to_owned()).collect(),
            replaced: update.present,
            checked_files: checked.map_or(installed.hashed_files, |recheck| recheck.checked),
            changed_files: checked.map_or(0, Recheck::changed),
            hashed_files: checked.map_or(installed.hashed_files, |recheck| recheck.hashed),
            was_hashed: installed.was_hashed() || was_read,
            ..job.expected(pending)
        })
    }

    /// Returns what is known of the files that stay.
    pub(super) fn kept(&self) -> Kept<'_> {
        match &self.recheck {
            Some(recheck) => Kept::Rechecked(recheck, self.installed.index()),
            None if self.installed.was_hashed() => Kept::Read(self.begun),
            None => Kept::Believed(self.installed.stats()),
        }
    }
}

/// Compares the target with its record.
fn rechecked(
    job: &Job<'_>,
    installed: &Installed,
    privilege: &Privilege,
    begun: FileTime,
) -> Result<Option<Recheck>, Error> {
    // If more or less is kept than before, the record does not tell which files are as they should be.
    let is_the_same = installed.keeps_the_same(privilege);
    let is_trusted = job.options.no_check && is_the_same;
    let Some((index, tree)) = installed.tree().filter(|_| !is_trusted) else { return Ok(None) };
    let target = Target::open(job.site, index)?;
    let selection = Selection::list(index, tree, &job.options.tree.prefix);
    let stats = installed.stats().filter(|_| is_the_same);
    let by = Checker::new(&target, &selection, stats, privilege, job.progress);
    Recheck::of(&by.sealed(installed.is_sealed()), &selection, begun, job.options.jobs).map(Some)
}

/// Returns `None` if the target does not match `installed`.
fn changes<'s>(
    job: &'s Job<'_>,
    selection: &'s Selection,
    privilege: &'s Privilege,
    installed: &Installed,
    recorded: &Arc<Recorded>,
    recheck: Option<&Recheck>,
) -> Result<Option<Update<'s>>, Error> {
    let Some((old, tree)) = installed.tree() else { return Ok(None) };
    let index = &job.bundle.index;
    let (nothing, mut strangers) = (Recheck::default(), HashSet::new());
    let recheck_or = recheck.unwrap_or(&nothing);
    loop {
        let mut update = Update {
            target: Target::open(job.site, index)?,
            selection,
            changes: Changes::between(old, tree, index, selection, privilege, recheck_or, &strangers),
            extras: Vec::new(),
            may_delete: job.options.tree.delete,
            privilege,
            progress: job.progress,
            jobs: job.options.jobs,
            present: Census::default(),
            displaced: Vec::new(),
            mounted: Vec::new(),
            made: Vec::new(),
            recorded: Arc::clone(recorded),
            xattrs: XattrFilter::of(index),
            needed: Needed::within(job.site, &job.needed)?,
            finishes: false,
            of: job.bundle.head.root().contents.index_digest,
            finished: Mutex::default(),
            unlike: Mutex::default(),
        };
        if !update.look(&job.options.tree.prefix, recheck.is_some())? {
            return Ok(None);
        }
        let found = update.strangers(recheck_or)?;
        if found.is_empty() {
            if let Some(stranger) = update.settle()? {
                return Err(stranger);
            }
            update.fits()?;
            return Ok(Some(update));
        }
        strangers.extend(found);
    }
}

/// Returns the paths at which something is mounted, without those below others.
fn mounts(Compared { installed, update, recheck, .. }: &Compared<'_>) -> BTreeSet<Vec<u8>> {
    let in_record = recheck.iter().flat_map(|recheck| &recheck.mounted);
    let in_record = in_record.map(|(directory, entry)| installed.index().path(*directory, *entry));
    let all: BTreeSet<Vec<u8>> = in_record.chain(update.mounted.iter().cloned()).collect();
    let lies_below = |path: &&Vec<u8>| path.iter().rposition(is_slash).is_some_and(|end| lies_at(&path[..end], &all));
    all.iter().filter(|path| !lies_below(path)).cloned().collect()
}

fn is_slash(byte: &u8) -> bool {
    *byte == b'/'
}

/// Returns whether a path is one of these, or lies below one.
fn lies_at(path: &[u8], mounts: &BTreeSet<Vec<u8>>) -> bool {
    let mut above = std::iter::successors(Some(path), |path| Some(&path[..path.iter().rposition(is_slash)?]));
    above.any(|path| mounts.contains(path))
}

/// Returns how many names of the wanted tree lie below these paths.
fn under(mounts: &BTreeSet<Vec<u8>>, update: &Update<'_>) -> u64 {
    if mounts.is_empty() {
        return 0;
    }
    let index = update.target.index;
    let is_under = |directory: &&Row<Directory>| lies_at(&index.directory_path(**directory), mounts);
    let directories = update.selection.directories.iter().filter(is_under);
    directories.map(|directory| num::wide(index.directory(*directory).entries().count())).sum()
}
