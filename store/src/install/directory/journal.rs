//! The commit point of an update: a mark in the stage, beside everything needed to finish it. From then on the update is never aborted.
//!
//! If the run is killed before that, the target is unchanged. If it is killed afterwards, each file of the target is either old or new, and the next
//! run moves what the stage still holds.

use parking_lot::Mutex;
use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, fchmod, fstat, syncfs};
use sealift_format::{Entry, Index, InodeKind, Limits, Object, Row};

use super::apply::Update;
use super::census::Census;
use super::changes::Changes;
use super::metadata::Privilege;
use super::needed::Needed;
use super::plan::Selection;
use super::recorded_stats::{Kept, recorded_stats};
use super::release::Release;
use super::standing::Recorded;
use crate::directory::stage::{StagedFile, TreeStage};
use crate::directory::state::{self, TreeRecord};
use crate::directory::target::Target;
use crate::fs::confined::{open_name, open_own};
use crate::fs::stat_cache::next_moment;
use crate::install_record::is_damage;
use crate::progress::Phase;
use crate::xattrs::XattrFilter;
use crate::{Error, Progress};
use crate::{OwnDir, Site, Stage};

/// The result of handling a stage that an earlier run left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupted {
    /// It held no journal.
    Nothing,
    /// Its update is now finished; the stage is empty.
    Finished,
    /// Its contents are not what was written. The target has to be hashed.
    Damaged,
}

/// The mark in the stage.
const JOURNAL: &str = Stage::MARK;
/// The content of a journal: whether the update removes what the bundle does not have, and the inode of the target.
const DELETE: &str = "delete";
const KEEP: &str = "keep";

fn text(may_delete: bool, inode: u64) -> String {
    format!("{} {inode}\n", if may_delete { DELETE } else { KEEP })
}

/// Parses what [`text`] wrote.
fn parse(bytes: &[u8]) -> Option<(bool, u64)> {
    let found = str::from_utf8(bytes).ok()?.trim_end();
    let (word, inode) = found.split_once(' ')?;
    let (may_delete, inode) = (word == DELETE, inode.parse().ok()?);
    (text(may_delete, inode).as_bytes() == bytes).then_some((may_delete, inode))
}

/// Returns whether a staged update has passed its commit point.
pub(super) fn is_set(stage: &TreeStage) -> bool {
    stage.own().has(JOURNAL).unwrap_or(true)
}

/// Returns whether the stage left of the target at `site` has the mark.
pub(super) fn is_left(site: &Site) -> Result<bool, Error> {
    let Some(place) = site.stage_place()? else { return Ok(false) };
    OwnDir::open(&place)?.map_or(Ok(false), |stage| stage.has(JOURNAL))
}

/// Sets the mark.
pub(super) fn write(stage: &TreeStage, site: &Site, may_delete: bool, durable: bool) -> Result<(), Error> {
    site.check()?;
    stage.own().replace(JOURNAL, text(may_delete, site.inode_id()?.1).as_bytes(), durable)
}

/// Moves the stage's contents into the target, and then the new record, with the stats of the files as far as `kept` knows them. Returns the error
/// of a file in the target that was not as expected, if any: the next update then reads all of them.
pub(super) fn commit_update(
    stage: &TreeStage,
    site: &Site,
    update: &Update<'_>,
    kept: Option<&Kept<'_>>,
    durable: bool,
) -> Result<Option<Error>, Error> {
    let unlike = Release::during(|release| {
        update.progress.enter(Phase::Moving, 0, update.moves());
        let unlike = update.apply(stage, release)?;
        if let (None, Some(kept), Some(state)) = (&unlike, kept, stage.state()?) {
            let since = next_moment(stage.own().fd());
            let since = since.map_err(|error| Error::io("create a file in", stage.own().path(), error))?;
            state::write_stats(&state, &recorded_stats(update, kept, since)?)?;
        }
        update.progress.enter(Phase::Syncing, 0, 0);
        let synced = if durable { syncfs(update.target.root()) } else { Ok(()) };
        synced.map_err(|error| Error::io("sync", update.target.path, error))?;
        Ok::<_, Error>(unlike)
    })?;
    site.check()?;
    state::replace(stage, site)?;
    if durable {
        site.sync_names()?;
    }
    Ok(unlike)
}

/// Removes the target's new record and the mark, and notes in the old one that files are of two bundles. The target stays bound to its name; the next
/// run reads its files.
pub(super) fn give_up_state(stage: &TreeStage, site: &Site) -> Result<(), Error> {
    // If the new record is in its place, all has moved, and only what was changed meanwhile differs.
    if !matches!(stage.state(), Ok(None)) {
        state::note_mixed(site)?;
    }
    stage.own().remove(TreeStage::STATE)?;
    remove_mark(stage)
}

/// Removes the mark.
pub(super) fn remove_mark(stage: &TreeStage) -> Result<(), Error> {
    stage.own().remove(JOURNAL)
}

/// Returns whether the update whose journal is in the stage was begun on another directory, which has been moved away or removed: it cannot be
/// finished.
///
/// # Errors
/// Returns an error if the journal cannot be read.
pub fn is_of_another(stage: &TreeStage, site: &Site) -> Result<bool, Error> {
    let journal = stage.own().read(JOURNAL, 64)?;
    journal.and_then(|bytes| parse(&bytes)).map_or(Ok(false), |(_, inode)| is_another(site, inode))
}

fn is_another(site: &Site, inode: u64) -> Result<bool, Error> {
    Ok(site.root().is_some() && site.inode_id()?.1 != inode)
}

/// Finishes the update whose journal is in the stage. It deletes none of the files and folders at the paths that are `needed`.
///
/// # Errors
/// Returns an error if the target cannot be changed. Another run resumes from there.
pub fn complete(
    stage: &TreeStage,
    site: &Site,
    needed: &[PathBuf],
    jobs: usize,
    progress: &Progress,
) -> Result<Interrupted, Error> {
    let Some(bytes) = stage.own().read(JOURNAL, 64)? else { return Ok(Interrupted::Nothing) };
    let Some((may_delete, inode)) = parse(&bytes) else { return Ok(Interrupted::Nothing) };
    if is_another(site, inode)? {
        let problem = "is another directory than the one whose update was interrupted";
        return Err(Error::unexpected(site.path(), problem));
    }
    let state = match stage.state() {
        Ok(dir) => dir.map(|dir| TreeRecord::read(&dir, Limits::NONE)).transpose(),
        Err(error) => Err(error),
    };
    let is_whole = match state {
        // All was done except removing the stage.
        Ok(None) => true,
        Ok(Some(state)) => finish(stage, site, &state, may_delete, needed, jobs, progress)?,
        Err(error) if is_damage(&error) => false,
        Err(error) => return Err(error),
    };
    match is_whole {
        true => remove_mark(stage)?,
        // Some files may be new: the old record no longer describes the target.
        false => give_up_state(stage, site)?,
    }
    tracing::info!(is_whole, "finished an interrupted update, as far as it was undamaged");
    Ok(if is_whole { Interrupted::Finished } else { Interrupted::Damaged })
}

/// Returns whether the stage and the target held what was expected.
fn finish(
    stage: &TreeStage,
    site: &Site,
    state: &TreeRecord,
    may_delete: bool,
    needed: &[PathBuf],
    jobs: usize,
    progress: &Progress,
) -> Result<bool, Error> {
    let Some(tree) = state.tree() else { return Ok(false) };
    // A mount point is filled where it is: nothing may have been moved yet.
    if !site.is_mount_point() && !site.is_nonempty_dir()? {
        return Ok(false);
    }
    let index = &state.installed.index;
    let selection = Selection::list(index, tree, &state.part.prefix);
    progress.enter(Phase::Hashing, 0, 0);
    let target = Target::open(site, index)?;
    let failed = |error| Error::io("look at", site.path(), error);
    if !target.is_beside(stage.root()).map_err(failed)? {
        return Err(Error::Exchanged { path: site.path().to_owned() });
    }
    let privilege = Privilege::new(state.part.keeps).within(target.root()).map_err(failed)?;
    let Some(staged) = staged(stage, index, &selection, &privilege, progress)? else { return Ok(false) };
    let mut new = stage.waiting_directories()?;
    new.extend(target.missing(&selection.directories));
    new.sort_unstable();
    new.dedup();
    new.retain(|number| selection.directories.binary_search(number).is_ok());
    let changes = Changes::all(&selection, new, staged);
    let mut update = Update {
        target,
        selection: &selection,
        changes,
        extras: Vec::new(),
        may_delete,
        privilege: &privilege,
        progress,
        jobs,
        finished: Mutex::default(),
        unlike: Mutex::default(),
        present: Census::default(),
        displaced: Vec::new(),
        mounted: Vec::new(),
        made: Vec::new(),
        recorded: Arc::new(Recorded::of(site, index, &selection)?.of_killed_run()),
        xattrs: XattrFilter::of(index),
        needed: Needed::within(site, needed)?,
        finishes: true,
        of: state.installed.head.root().contents.index_digest,
    };
    if may_delete {
        // This lists what the update deletes. Whether entries are missing does not matter here: that shows when the target is examined again.
        update.look(&state.part.prefix, false)?;
    }
    // What came into the place of a new directory since stays, and the next update compares it.
    *update.unlike.lock() = update.settle()?;
    let folder = stage.directories()?.map_or_else(|| stage.new_directories(), Ok)?;
    update.stage_directories(&folder)?;
    let unlike = progress.while_changing(|| commit_update(stage, site, &update, None, true))?;
    if let Some(error) = &unlike {
        tracing::warn!(%error, "the target has unexpected changes: the next update compares all of it");
    }
    Ok(unlike.is_none())
}

/// Returns the entries that the stage still has, or nothing if one of them does not match the index.
fn staged(
    stage: &TreeStage,
    index: &Index,
    selection: &Selection,
    privilege: &Privilege,
    progress: &Progress,
) -> Result<Option<HashSet<Row<Entry>>>, Error> {
    let mut staged = HashSet::new();
    let selected: HashSet<Row<Entry>> = selection.entries().collect();
    for StagedFile { entry, name, .. } in stage.files()? {
        progress.check()?;
        let Some(entry) = entry.filter(|entry| selected.contains(entry)) else { return Ok(None) };
        let inode = index.inode(index.entry(entry).inode);
        if let InodeKind::Regular(object) = inode.kind {
            let (object, mode) = (index.object(object), privilege.mode(index.attributes(inode)));
            let is_whole = holds(stage.root(), &name, object, mode);
            if !is_whole.map_err(|error| Error::io("read", stage.path_of(&name), error))? {
                return Ok(None);
            }
        }
        staged.insert(entry);
    }
    Ok(Some(staged))
}

/// Returns whether a file of this name has an object's content, and sets its mode.
fn holds(directory: BorrowedFd<'_>, name: &[u8], object: &Object, mode: Option<Mode>) -> io::Result<bool> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    let file = open_own(flags, |flags| open_name(directory, name, flags, Mode::empty()))?;
    let stat = fstat(&file)?;
    if u64::try_from(stat.st_size) != Ok(object.size) {
        return Ok(false);
    }
    if let Some(mode) = mode.filter(|mode| Mode::from_raw_mode(stat.st_mode) != *mode) {
        fchmod(&file, mode)?;
    }
    Ok(blake3::Hasher::new().update_reader(File::from(file))?.finalize().as_bytes() == &object.id)
}
