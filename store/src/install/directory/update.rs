//! Updates an installed tree: only what it lacks is read and built, and then moved into it.

use parking_lot::Mutex;
use std::collections::{BTreeSet, HashSet};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use super::apply::Update;
use super::census::Census;
use super::changes::Changes;
use super::deletions::Deletions;
use super::delta;
use super::hot_files::HotFiles;
use super::installed::{Installed, check_ours};
use super::job::Job;
use super::journal::{self, Interrupted};
use super::local::{copy_local, local_entries};
use super::metadata::Privilege;
use super::needed::Needed;
use super::plan::{PlannedName, Selection};
use super::recheck::{Checker, Recheck};
use super::recorded_stats::{Kept, recorded_stats};
use super::resume::abandon;
use super::standing::Recorded;
use super::stats::UnpackStats;
use super::trial::Findings;
use crate::directory::stage::{StageKind, TreeStage};
use crate::directory::state;
use crate::directory::target::Target;
use crate::fs::stat_cache::{FileTime, now};
use crate::input::Input;
use crate::install::options::Durability;
use crate::progress::Phase;
use crate::xattrs::XattrFilter;
use crate::{Error, Record};
use sealift_format::{Directory, Row, num};

impl Job<'_> {
    /// Makes a new target where it is, as an update of an empty directory: no directory can be renamed to its name.
    pub(super) fn make_in_place(self, input: &mut Input, selection: Selection) -> Result<UnpackStats, Error> {
        let site = self.site.with_directory()?;
        let filled = Job { site: &site, ..self }.update(input, selection, None);
        if filled.is_err() {
            site.remove_empty();
        }
        filled
    }

    /// Brings the target, a non-empty directory or an empty mount point, to the selection.
    pub(super) fn update(
        &self,
        input: &mut Input,
        selection: Selection,
        kept: Option<Installed>,
    ) -> Result<UnpackStats, Error> {
        if self.options.dry_run {
            self.site.check_writable()?;
            let adopted = check_ours(self.site, self.admission.state(), self.options, kept.as_ref())?;
            let Findings { keeps, not_kept } = self.keeping_beside(&selection, false)?;
            let privilege = Privilege::new(keeps);
            let kept = kept.map_or_else(|| Installed::kept(self.site, self.options), |kept| Ok(Some(kept)))?;
            let compared = self.compare(&selection, &privilege, kept, FileTime::default())?;
            let (mut pending, stats) = self.foresee(&selection, &compared, self.options.tree.list_deletions)?;
            let was_complete = self.is_done(&compared, &privilege);
            let stats = UnpackStats { was_adopted: adopted.is_some(), adopted, was_complete, not_kept, ..stats };
            self.progress.keep(stats.kept_files);
            delta::check_bases(self, self.site.path(), &pending)?;
            if let Some((index, tree)) = compared.installed.tree() {
                let local = local_entries(&self.bundle.index, &pending, index, tree);
                pending.take_away(self.bundle, |entry| local.contains(&entry), Default::default());
            }
            delta::check_brought(self, self.site.path(), &pending)?;
            return Ok(stats);
        }
        // Consent is asked for before there is a stage.
        let findings = self.consent.map(|_| self.keeping_beside(&selection, true)).transpose()?;
        let privilege = findings.as_ref().map(|findings| Privilege::new(findings.keeps));
        let asked = privilege.as_ref().map_or(Ok(None), |privilege| self.ask(&selection, privilege))?;
        self.admission.hold()?;
        let stage = TreeStage::open(self.site, StageKind::Files)?;
        let found = match journal::complete(&stage, self.site, &self.needed, self.options.jobs, self.progress) {
            Err(error) => return Err(abandon(stage, self.site, error)),
            Ok(found) => found,
        };
        match self.update_in(input, &stage, &selection, found, (kept, asked, findings)) {
            Err(error) => Err(abandon(stage, self.site, error)),
            Ok((stats, unlike)) => {
                stage.remove(self.site)?;
                self.admission.settle()?;
                // The target holds the bundle, but for what another process changed since it was examined.
                unlike.map_or(Ok(stats), Err)
            }
        }
    }

    /// Compares a directory that would be adopted, and asks for consent. Nothing is written, and no other run can interfere.
    fn ask<'s>(&'s self, selection: &'s Selection, privilege: &'s Privilege) -> Result<Option<Asked<'s>>, Error> {
        let Some(consent) = self.consent else { return Ok(None) };
        let adopted = check_ours(self.site, self.admission.state(), self.options, None)?;
        if adopted.is_none() {
            return Ok(None);
        }
        self.site.lock()?;
        let (ground, path) = (self.site.ground(), self.site.ground_path());
        let begun = now(ground).map_err(|error| Error::io("create a file in", path, error))?;
        let kept = Installed::kept(self.site, self.options)?;
        let compared = self.compare(selection, privilege, kept, begun)?;
        let (_, stats) = self.foresee(selection, &compared, true)?;
        consent(&UnpackStats { was_adopted: true, adopted, ..stats })?;
        Ok(Some(Asked { compared, begun }))
    }

    /// Determines what to build after a comparison, and its expected stats.
    fn foresee(
        &self,
        selection: &Selection,
        compared: &Compared<'_>,
        list_deletions: bool,
    ) -> Result<(Selection, UnpackStats), Error> {
        self.check_beside(&compared.update.target, self.site.ground())?;
        let pending = self.to_build(selection, &compared.update);
        let stats = self.stats_of(compared, &pending, list_deletions)?;
        let free_bytes = self.expect_room(&pending, 0)?;
        Ok((pending, UnpackStats { free_bytes, ..stats }))
    }

    /// Updates the target from the stage. Also returns the error of the first file that was changed meanwhile, and left so.
    fn update_in(
        &self,
        input: &mut Input,
        stage: &TreeStage,
        selection: &Selection,
        found: Interrupted,
        (kept, asked, findings): (Option<Installed>, Option<Asked<'_>>, Option<Findings>),
    ) -> Result<(UnpackStats, Option<Error>), Error> {
        let (target, record) = (self.site.path(), self.site.record()?);
        let adopted = check_ours(self.site, self.admission.state(), self.options, kept.as_ref())?;
        let was_adopted = adopted.is_some();
        if was_adopted && self.consent.is_some() && asked.is_none() {
            // It became foreign since it was examined, and consent was not asked for.
            return Err(Error::Changing { target: target.to_owned() });
        }
        let asked = asked.filter(|_| was_adopted && matches!(found, Interrupted::Nothing));
        let begun = now(stage.own().fd()).map_err(|error| Error::io("create a file in", stage.own().path(), error))?;
        let is_current = kept.as_ref().map_or(Ok(false), |kept| kept.is_current(self.site, self.options))?;
        let kept = match found {
            Interrupted::Damaged => None,
            // Another update may have run in between.
            Interrupted::Nothing if is_current => kept,
            Interrupted::Nothing | Interrupted::Finished => Installed::kept(self.site, self.options)?,
        };
        let findings = findings.map_or_else(|| self.keeping(stage.own().fd(), selection, true), Ok)?;
        let privilege = Privilege::new(findings.keeps).within(stage.root());
        let privilege = privilege.map_err(|error| Error::io("look at", target, error))?;
        let Asked { mut compared, begun } = match asked {
            Some(asked) => asked,
            None => Asked { compared: self.compare(selection, &privilege, kept, begun)?, begun },
        };
        self.check_beside(&compared.update.target, stage.root())?;
        let mut pending = self.to_build(selection, &compared.update);
        let free_bytes = self.check_room(stage, &pending, 0)?;
        delta::check_bases(self, target, &pending)?;
        let mut stats = UnpackStats {
            was_adopted,
            adopted,
            ..self.stats_of(&compared, &pending, self.options.tree.list_deletions)?
        };
        let is_done = self.is_done(&compared, &privilege);
        if !is_done && stage.folds_names() {
            let problem = "is on a file system that ignores case, so an update could replace the wrong file";
            return Err(Error::Unusable { path: target.to_owned(), problem });
        }
        let reached = record.as_ref().and_then(state::kept_seeks);
        let gathered = match is_done {
            true => HotFiles::default(),
            false => {
                let spare = free_bytes.saturating_sub(self.disk(&pending));
                self.gather_hot_set(stage, &compared.update, (spare, reached))?
            }
        };
        let built = pending.regulars.clone();
        self.progress.keep(compared.update.changes.kept);
        (stats.free_bytes, stats.not_kept) = (free_bytes, findings.not_kept);
        if stage.is_resumed() {
            self.reuse_staged(stage, &mut pending, &privilege, &mut stats)?;
        }
        if !pending.regulars.is_empty()
            && let Some((index, tree)) = compared.installed.tree()
        {
            let builder = self.builder(&pending, stage, &privilege);
            let copied = copy_local(&builder, &Target::open(self.site, index)?, tree)?;
            pending.take_away(self.bundle, |entry| copied.contains(&entry), Default::default());
            stats.copied_files = num::wide(copied.len());
        }
        delta::check_brought(self, target, &pending)?;
        stats.install.stored_bytes = pending.reads.stored_bytes();
        let durable = self.options.tree.durability != Durability::None;
        // If files are built, the stage is synced as a whole.
        let sync_stage = durable && !(compared.update.changes.build.is_empty() && compared.update.made.is_empty());
        if !is_done {
            self.try_signature(stage)?;
        }
        let moved = self.build(input, stage, pending, (&built, &gathered), (&privilege, &mut stats))?;
        for file in moved.iter().flatten() {
            compared.update.changes.build_anew(file.place, &file.links);
        }
        stats.gathered_files = moved.as_ref().map_or(0, |moved| num::wide(moved.len()));
        if is_done {
            self.commit()?;
            self.refresh(&compared, begun)?;
            stats.was_complete = true;
            return Ok((stats, None));
        }
        let Compared { installed, update, .. } = &compared;
        self.seal_kept(update, installed)?;
        update.stage_directories(&stage.new_directories()?)?;
        stats.sealed_files = self.sealing.files();
        stats.install.kernel_signature = {
            let about = (self.site.inode_id()?.1, findings.keeps, installed.has_linked_duplicates());
            self.write_state(stage, about, durable && !sync_stage)?
        };
        if sync_stage {
            self.progress.enter(Phase::Syncing, 0, 0);
            stage.sync()?;
        }
        let reached = match moved {
            None => reached,
            Some(_) => Some(gathered.seeks_left(stage, &self.bundle.index)),
        };
        if let (Some(seeks), Some(state)) = (reached, stage.state()?) {
            state::write_seeks(&state, seeks);
        }
        stage.check(self.site)?;
        self.site.check_record(record.as_ref())?;
        // All new content is complete and checked. From here on the device remembers this version.
        self.commit()?;
        let unlike = self.progress.while_changing(|| {
            journal::write(stage, self.site, update.may_delete, durable)?;
            journal::commit_update(stage, self.site, update, Some(&compared.kept(begun)), durable)
        })?;
        Ok((stats, unlike))
    }

    /// Checks that files can be renamed from `directory` into the target.
    fn check_beside(&self, target: &Target<'_>, directory: BorrowedFd<'_>) -> Result<(), Error> {
        let path = self.site.path();
        match target.is_beside(directory).map_err(|error| Error::io("look at", path, error))? {
            true => Ok(()),
            false => Err(Error::Unusable {
                path: path.to_owned(),
                problem: "is a mount point, and cannot be updated as a whole",
            }),
        }
    }

    /// Returns whether there is nothing to do.
    fn is_done(&self, compared: &Compared<'_>, privilege: &Privilege) -> bool {
        let Compared { installed, update, .. } = compared;
        update.changes.is_empty()
            && update.extras.is_empty()
            && self.sealing.is_done(&self.bundle.head)
            && installed.is_of(&self.bundle.head, self.reference)
            && installed.keeps_the_same(privilege)
    }

    /// Records the new stats of files that were merely touched, and that all of them are of one bundle.
    fn refresh(&self, compared: &Compared<'_>, begun: FileTime) -> Result<(), Error> {
        let (Some(recheck), Some(record)) = (&compared.recheck, self.site.record()?) else { return Ok(()) };
        record.remove(Record::MIXED)?;
        if recheck.is_refreshed {
            state::write_stats(&record, &recorded_stats(&compared.update, &compared.kept(begun), begun)?)?;
        }
        Ok(())
    }

    /// Seals what stays. Recorded seals are adopted with their digests; files that were examined are sealed now.
    fn seal_kept(&self, update: &Update<'_>, installed: &Installed) -> Result<(), Error> {
        if !self.sealing.is_on {
            return Ok(());
        }
        if !installed.was_hashed() {
            self.sealing.take_known(installed.sealed(), update.target.index);
            return Ok(());
        }
        let stays = |place: &&PlannedName| !update.changes.build.contains(&place.entry);
        let kept: Vec<PlannedName> = update.selection.regulars.iter().filter(stays).copied().collect();
        self.sealing.seal_kept(&update.target, &kept, self.options.jobs, self.progress)
    }

    /// Determines what the target has, and what to do. `begun` is a time before any of it was examined.
    fn compare<'s>(
        &'s self,
        selection: &'s Selection,
        privilege: &'s Privilege,
        kept: Option<Installed>,
        begun: FileTime,
    ) -> Result<Compared<'s>, Error> {
        let recorded = Arc::new(match kept.as_ref().and_then(|kept| kept.recorded(&self.bundle.index, selection)) {
            Some(recorded) => recorded,
            None => Recorded::of(self.site, &self.bundle.index, selection)?,
        });
        if let Some(installed) = kept {
            let recheck = self.recheck(&installed, privilege, begun)?;
            if let Some(update) = self.changes(selection, privilege, (&installed, &recorded), recheck.as_ref())? {
                tracing::info!("using the install record");
                return Ok(Compared { installed, update, recheck });
            }
        }
        tracing::info!("no usable install record: comparing the files of the target");
        let index = &self.bundle.index;
        let how = (self.options, privilege.keeps());
        let installed = Installed::by_looking(self.site, index, selection, how, self.progress)?;
        match self.changes(selection, privilege, (&installed, &recorded), None)? {
            Some(update) => Ok(Compared { installed, update, recheck: None }),
            None => Err(Error::Changing { target: self.site.path().to_owned() }),
        }
    }

    /// Compares the target with its record.
    fn recheck(&self, installed: &Installed, privilege: &Privilege, begun: FileTime) -> Result<Option<Recheck>, Error> {
        // If more or less is kept than before, the record does not tell which files are as they should be.
        let is_the_same = installed.keeps_the_same(privilege);
        let is_trusted = self.options.trust_record && is_the_same;
        let Some((index, tree)) = installed.tree().filter(|_| !is_trusted) else { return Ok(None) };
        let target = Target::open(self.site, index)?;
        let selection = Selection::list(index, tree, &self.options.tree.prefix);
        let stats = installed.stats().filter(|_| is_the_same);
        let by = Checker::new(&target, &selection, stats, privilege, self.progress);
        Recheck::of(&by.sealed(installed.is_sealed()), &selection, begun, self.options.jobs).map(Some)
    }

    /// Returns `None` if the target does not match `installed`.
    fn changes<'s>(
        &'s self,
        selection: &'s Selection,
        privilege: &'s Privilege,
        (installed, recorded): (&Installed, &Arc<Recorded>),
        recheck: Option<&Recheck>,
    ) -> Result<Option<Update<'s>>, Error> {
        let Some(tree) = installed.tree() else { return Ok(None) };
        let index = &self.bundle.index;
        let (nothing, mut strangers) = (Recheck::default(), HashSet::new());
        let recheck_or = recheck.unwrap_or(&nothing);
        loop {
            let mut update = Update {
                target: Target::open(self.site, index)?,
                selection,
                changes: Changes::between(tree, index, selection, privilege, (recheck_or, &strangers)),
                extras: Vec::new(),
                may_delete: self.options.tree.delete,
                privilege,
                progress: self.progress,
                jobs: self.options.jobs,
                present: Census::default(),
                displaced: Vec::new(),
                mounted: Vec::new(),
                made: Vec::new(),
                recorded: Arc::clone(recorded),
                xattrs: XattrFilter::of(index),
                needed: Needed::within(self.site, &self.needed)?,
                finishes: false,
                of: self.bundle.head.root().contents.index_digest,
                finished: Mutex::default(),
                unlike: Mutex::default(),
            };
            if !update.look(&self.options.tree.prefix, recheck.is_some())? {
                return Ok(None);
            }
            let found = update.strangers()?;
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

    /// Returns the part of the selection that is rebuilt.
    pub(super) fn to_build(&self, selection: &Selection, update: &Update<'_>) -> Selection {
        let mut pending = selection.clone();
        let changes = &update.changes;
        pending.retain(self.bundle, |entry| changes.build.contains(&entry), |directory| update.is_new(directory));
        pending
    }

    fn stats_of(
        &self,
        compared: &Compared<'_>,
        pending: &Selection,
        list_deletions: bool,
    ) -> Result<UnpackStats, Error> {
        let Compared { installed, update, recheck } = compared;
        let deletions = Deletions::of(update, list_deletions)?;
        let checked = recheck.as_ref();
        let was_read = checked.is_some() && installed.stats().is_none();
        let mounts = mounts(compared);
        Ok(UnpackStats {
            under_mounts: under(&mounts, update),
            mounts: mounts.iter().map(|path| crate::error::path_of(path).to_owned()).collect(),
            is_update: self.site.is_nonempty_dir()?,
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
            ..self.expected(pending)
        })
    }
}

/// Returns the paths at which something is mounted, without those below others.
fn mounts(Compared { installed, update, recheck }: &Compared<'_>) -> BTreeSet<Vec<u8>> {
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

/// What the target has, and what to do.
struct Compared<'s> {
    installed: Installed,
    update: Update<'s>,
    /// The comparison of the target with its record, if made.
    recheck: Option<Recheck>,
}

/// A comparison, and a time before anything was examined for it.
struct Asked<'s> {
    compared: Compared<'s>,
    begun: FileTime,
}

impl Compared<'_> {
    /// Returns what is known of the files that stay.
    fn kept(&self, begun: FileTime) -> Kept<'_> {
        match &self.recheck {
            Some(recheck) => Kept::Rechecked(recheck, self.installed.index()),
            None if self.installed.was_hashed() => Kept::Read(begun),
            None => Kept::Believed(self.installed.stats()),
        }
    }
}
