//! Updating an installed tree: only what it lacks is read and built, and then moved into it.

use std::path::Path;
use std::sync::Mutex;

use super::apply::Update;
use super::changes::Changes;
use super::delta;
use super::files::Builder;
use super::installed::Installed;
use super::journal::{self, Found};
use super::local::copy_local;
use super::metadata::Privilege;
use super::plan::{Place, Selection};
use super::stage::{Layout, Stage};
use super::state;
use super::target::Target;
use super::{Durability, Job, UnpackStats, as_u64, give_up, room};
use crate::Error;
use crate::input::Input;
use crate::progress::Phase;

impl Job<'_> {
    /// Brings `target`, which is a directory with something in it, to what is selected.
    pub(super) fn update(
        &self,
        input: &mut Input,
        target: &Path,
        selection: Selection,
        kept: Option<Installed>,
    ) -> Result<UnpackStats, Error> {
        if self.options.dry_run {
            let privilege = Privilege::of_this_process();
            let kept = kept.map_or_else(|| Installed::kept(target, self.options), |kept| Ok(Some(kept)))?;
            let (installed, update) = self.compare(target, &selection, &privilege, kept)?;
            let pending = self.to_build(&selection, &update);
            let mut stats = self.stats_of(&installed, &update, &pending);
            self.progress.keep(stats.kept_files);
            stats.free_bytes = room(target)?.bytes;
            return Ok(stats);
        }
        let stage = Stage::open(target, Layout::Files)?;
        let found = match journal::complete(&stage, self.options.jobs, self.progress) {
            Err(error) => return Err(give_up(stage, error)),
            Ok(found) => found,
        };
        match self.update_in(input, &stage, selection, found, kept) {
            Err(error) => Err(give_up(stage, error)),
            Ok(stats) => stage.remove().map(|()| stats),
        }
    }

    fn update_in(
        &self,
        input: &mut Input,
        stage: &Stage,
        selection: Selection,
        found: Found,
        kept: Option<Installed>,
    ) -> Result<UnpackStats, Error> {
        let target = stage.target();
        let kept = match found {
            Found::Damaged => None,
            // Another update may have come between.
            Found::Nothing if kept.as_ref().is_some_and(|kept| kept.is_current(target, self.options)) => kept,
            Found::Nothing | Found::Finished => Installed::kept(target, self.options)?,
        };
        if stage.folds_names() {
            return Err(Error::Usage(format!(
                "{} lies on a file system that takes names for the same which differ in case: it cannot be told what an update \
                 would replace there; unpack to a new directory",
                target.display()
            )));
        }
        let privilege = Privilege::of_process(stage.root()).map_err(|error| Error::io("look at", target, error))?;
        let (installed, update) = self.compare(target, &selection, &privilege, kept)?;
        if !update.target.is_beside(stage.root()).map_err(|error| Error::io("look at", target, error))? {
            return Err(Error::Usage(format!(
                "{} is a mount point: what is new cannot be moved into it; update a directory within",
                target.display()
            )));
        }
        let mut pending = self.to_build(&selection, &update);
        let built = pending.regulars.clone();
        let mut stats = self.stats_of(&installed, &update, &pending);
        self.progress.keep(stats.kept_files);
        stats.free_bytes = self.check_room(stage, &pending)?;
        delta::check_bases(self, target, &pending)?;
        if stage.is_resumed() {
            self.adopt(stage, &mut pending, &privilege, &mut stats)?;
        }
        if !pending.regulars.is_empty()
            && let Some((index, tree)) = installed.tree()
        {
            let builder = Builder::new(self.bundle, &pending, stage, &privilege, self.progress, self.options);
            let copied = copy_local(&builder, &Target::open(target, index)?, tree)?;
            stats.copied_files = as_u64(copied.len());
            pending.take_away(self.bundle, |entry| copied.contains(&entry), Default::default());
        }
        delta::check_brought(self, target, &pending)?;
        stats.stored_bytes = pending.stored;
        let durable = self.options.durability != Durability::None;
        // Where files are built, the stage is synced as a whole.
        let sync_stage = durable && !update.changes.build.is_empty();
        let is_done = update.changes.is_empty()
            && update.extras.is_empty()
            && self.sealing.is_done(&self.bundle.head)
            && installed.is_of(&self.bundle.head, self.reference);
        if !is_done {
            self.try_signature(stage)?;
        }
        self.build(input, stage, pending, &built, &mut stats)?;
        if is_done {
            return Ok(stats);
        }
        self.seal_kept(&update, &installed)?;
        stats.sealed_files = self.sealing.files();
        stats.kernel_signature = state::write(&stage.state(), &self.took()?, durable && !sync_stage)?;
        if sync_stage {
            self.progress.enter(Phase::Syncing, 0, 0);
            stage.sync()?;
        }
        journal::write(stage, update.may_delete, durable)?;
        match journal::carry_out(stage, &update, durable)? {
            None => Ok(stats),
            // Somebody changed it since it was looked at.
            Some(unlike) => Err(unlike),
        }
    }

    /// Sees to it that what stays is sealed. What was kept says that it is, and of what digest; what was looked at is sealed now.
    fn seal_kept(&self, update: &Update<'_>, installed: &Installed) -> Result<(), Error> {
        if !self.sealing.is_on {
            return Ok(());
        }
        if !installed.was_hashed() {
            self.sealing.take_known(installed.sealed(), update.target.index);
            return Ok(());
        }
        let stays = |place: &&Place| !update.changes.build.contains(&place.entry);
        let kept: Vec<Place> = update.selection.regulars.iter().filter(stays).copied().collect();
        self.sealing.seal_kept(&update.target, &kept, self.options.jobs, self.progress)
    }

    /// Finds out what the target has, and what is to be done.
    fn compare<'s>(
        &'s self,
        target: &'s Path,
        selection: &'s Selection,
        privilege: &'s Privilege,
        kept: Option<Installed>,
    ) -> Result<(Installed, Update<'s>), Error> {
        if let Some(installed) = kept
            && let Some(update) = self.changes(target, selection, privilege, &installed)?
        {
            tracing::info!("what was kept beside the target describes it");
            return Ok((installed, update));
        }
        tracing::info!("nothing that was kept describes the target: it is looked at");
        let index = &self.bundle.index;
        let installed = Installed::by_looking(target, index, selection, self.options, self.progress)?;
        match self.changes(target, selection, privilege, &installed)? {
            Some(update) => Ok((installed, update)),
            None => Err(Error::Changing { target: target.to_owned() }),
        }
    }

    /// `None` if the target is not as `installed` has it.
    fn changes<'s>(
        &'s self,
        target: &'s Path,
        selection: &'s Selection,
        privilege: &'s Privilege,
        installed: &Installed,
    ) -> Result<Option<Update<'s>>, Error> {
        let Some(tree) = installed.tree() else { return Ok(None) };
        let index = &self.bundle.index;
        let mut update = Update {
            target: Target::open(target, index)?,
            selection,
            changes: Changes::between(tree, index, selection, privilege),
            extras: Vec::new(),
            may_delete: self.options.delete,
            privilege,
            progress: self.progress,
            jobs: self.options.jobs,
            unlike: Mutex::default(),
        };
        if !update.look(&self.options.prefix)? {
            return Ok(None);
        }
        update.fits()?;
        Ok(Some(update))
    }

    /// What of the selection is made anew.
    fn to_build(&self, selection: &Selection, update: &Update<'_>) -> Selection {
        let mut pending = selection.clone();
        let changes = &update.changes;
        pending.retain(self.bundle, |entry| changes.build.contains(&entry), |directory| update.is_new(directory));
        pending
    }

    fn stats_of(&self, installed: &Installed, update: &Update<'_>, pending: &Selection) -> UnpackStats {
        UnpackStats {
            is_update: true,
            directories: as_u64(update.changes.new_directories.len()),
            kept_files: update.changes.kept,
            metadata_files: as_u64(update.changes.metadata.len()),
            removed: as_u64(update.extras.len()),
            hashed_files: installed.hashed_files,
            was_hashed: installed.was_hashed(),
            ..self.expected(pending)
        }
    }
}
