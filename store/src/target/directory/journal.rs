//! The point from which on an update is finished and not given up: a mark in the stage, beside all that is needed for it.
//!
//! Killed before it, the target is as it was. Killed after it, each of its files is as it was or as it is to be, and what the stage
//! still holds is moved by the next run.

use std::collections::HashSet;
use std::os::fd::BorrowedFd;
use std::sync::Mutex;

use rustix::fs::{Mode, OFlags, fchmod, fstat, syncfs};
use rustix::io::Errno;
use sealift_format::{Index, InodeKind, Limits};

use super::apply::Update;
use super::census::Census;
use super::changes::Changes;
use super::gather::{Kept, gather};
use super::metadata::Privilege;
use super::plan::Selection;
use super::release::Release;
use crate::directory::stage::{Stage, StagedFile};
use crate::directory::state::{self, InstallRecord};
use crate::directory::target::Target;
use crate::fs::confined::{open_name, open_own};
use crate::fs::stat_cache::next_moment;
use crate::progress::Phase;
use crate::{Error, Progress};
use crate::{OwnDir, Place, Site};

/// What became of a stage that was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupted {
    /// It held no journal.
    Nothing,
    /// Its update is finished now; the stage is empty.
    Finished,
    /// What it held is not what was written. The target has to be hashed.
    Damaged,
}

/// The mark in the stage.
const JOURNAL: &str = "journal";
/// What a journal says: whether the update removes what the bundle does not have, and of which directory it is.
const DELETE: &str = "delete";
const KEEP: &str = "keep";

fn text(may_delete: bool, inode: u64) -> String {
    format!("{} {inode}\n", if may_delete { DELETE } else { KEEP })
}

/// Reads what [`text`] wrote.
fn parse(bytes: &[u8]) -> Option<(bool, u64)> {
    let found = str::from_utf8(bytes).ok()?.trim_end();
    let (word, inode) = found.split_once(' ')?;
    let (may_delete, inode) = (word == DELETE, inode.parse().ok()?);
    (text(may_delete, inode).as_bytes() == bytes).then_some((may_delete, inode))
}

/// Whether an update that is staged is not given up any more.
pub(super) fn is_set(stage: &Stage) -> bool {
    stage.own().has(JOURNAL).unwrap_or(true)
}

/// Whether the stage that a run left of the target at `place` has the mark.
pub(super) fn is_left(place: &Place) -> Result<bool, Error> {
    match OwnDir::open(&place.sibling(crate::Stage::SUFFIX)?)? {
        Some(stage) => Ok(stage.has(JOURNAL)?),
        None => Ok(false),
    }
}

/// Sets the mark.
pub(super) fn write(stage: &Stage, site: &Site, may_delete: bool, durable: bool) -> Result<(), Error> {
    site.check()?;
    stage.own().replace(JOURNAL, text(may_delete, site.identity()?.1).as_bytes(), durable)
}

/// Moves what the stage holds into the target, and makes the state that goes with it the target's, with what tells its files where `kept` says
/// what was known of them. Returns what came of a file of the target that is not what it was to be: the next update reads all of them then.
pub(super) fn commit_update(
    stage: &Stage,
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
            state::write_stats(&state, &gather(update, kept, since)?)?;
        }
        update.progress.enter(Phase::Syncing, 0, 0);
        let synced = if durable { syncfs(update.target.root()) } else { Ok(()) };
        synced.map_err(|error| Error::io("sync", update.target.path, error))?;
        Ok::<_, Error>(unlike)
    })?;
    site.check()?;
    state::replace(stage, site)?;
    if durable {
        site.place().sync_parent()?;
    }
    Ok(unlike)
}

/// Removes what was to take the place of the target's record, and the mark. Whose the target is stays known; its files are read next time.
fn give_up_state(stage: &Stage, site: &Site) -> Result<(), Error> {
    state::forget_stats(site)?;
    stage.own().remove(Stage::STATE)?;
    remove_mark(stage)
}

fn remove_mark(stage: &Stage) -> Result<(), Error> {
    stage.own().remove(JOURNAL)
}

/// Finishes the update whose journal the stage has.
///
/// # Errors
/// The target cannot be changed. Another run goes on from there.
pub fn complete(stage: &Stage, site: &Site, jobs: usize, progress: &Progress) -> Result<Interrupted, Error> {
    let Some(bytes) = stage.own().read(JOURNAL, 64)? else { return Ok(Interrupted::Nothing) };
    let Some((may_delete, inode)) = parse(&bytes) else { return Ok(Interrupted::Nothing) };
    // It was begun on another directory, which somebody moved away: this one is not touched.
    if site.root().is_some() && site.identity()?.1 != inode {
        return Err(Error::Exchanged { path: site.path().to_owned() });
    }
    let state = match stage.state() {
        Ok(dir) => dir.map(|dir| InstallRecord::read(&dir, Limits::NONE)).transpose(),
        Err(error) => Err(error),
    };
    let is_whole = match state {
        // All was done but to remove the stage.
        Ok(None) => true,
        Ok(Some(state)) => finish(stage, site, &state, may_delete, jobs, progress)?,
        Err(Error::State { .. } | Error::Format(_)) => false,
        Err(error) => return Err(error),
    };
    match is_whole {
        true => remove_mark(stage)?,
        // Some files may be new: what was kept of the target does not describe it any more.
        false => give_up_state(stage, site)?,
    }
    tracing::info!(is_whole, "finished an interrupted update, except for what was damaged of it");
    Ok(if is_whole { Interrupted::Finished } else { Interrupted::Damaged })
}

/// Returns whether the stage held what it is to hold, and the target what was to stay.
fn finish(
    stage: &Stage,
    site: &Site,
    state: &InstallRecord,
    may_delete: bool,
    jobs: usize,
    progress: &Progress,
) -> Result<bool, Error> {
    let Some(tree) = state.tree() else { return Ok(false) };
    if !site.is_nonempty_dir()? {
        return Ok(false);
    }
    let index = &state.index;
    let selection = Selection::list(index, tree, &state.prefix);
    progress.enter(Phase::Hashing, 0, 0);
    let target = Target::open(site, index)?;
    let failed = |error| Error::io("look at", site.path(), error);
    if !target.is_beside(stage.root()).map_err(failed)? {
        return Err(Error::Exchanged { path: site.path().to_owned() });
    }
    let privilege = Privilege::of_process(target.root()).map_err(failed)?;
    let Some(staged) = staged(stage, index, &selection, &privilege, progress)? else { return Ok(false) };
    let changes = Changes::all(&selection, target.missing(&selection.directories), staged, &privilege);
    let mut update = Update {
        target,
        selection: &selection,
        changes,
        extras: Vec::new(),
        may_delete,
        privilege: &privilege,
        progress,
        jobs,
        unlike: Mutex::default(),
        present: Census::default(),
        displaced: Vec::new(),
        of: state.head.root().contents.index_digest,
    };
    if may_delete {
        // What the bundle lacks goes in any case; that something is missing shows when the target is looked at again.
        update.look(&state.prefix, false)?;
    }
    let unlike = commit_update(stage, site, &update, None, true)?;
    if let Some(error) = &unlike {
        tracing::warn!(%error, "the target has unexpected changes: the next update compares all of it");
    }
    Ok(unlike.is_none())
}

/// The entries that the stage still has, or nothing if one of them is not what the index says.
fn staged(
    stage: &Stage,
    index: &Index,
    selection: &Selection,
    privilege: &Privilege,
    progress: &Progress,
) -> Result<Option<HashSet<u32>>, Error> {
    let (mut staged, mut buffer) = (HashSet::new(), vec![0; 1 << 20]);
    let selected: HashSet<u32> = selection.entries().collect();
    for StagedFile { entry, name, .. } in stage.files()? {
        progress.check()?;
        let Some(entry) = entry.filter(|entry| selected.contains(entry)) else { return Ok(None) };
        let inode = index.inode(index.entry(entry).inode);
        if let InodeKind::Regular(object) = inode.kind {
            let (object, mode) = (index.object(object), privilege.mode(index.attributes(inode)));
            let is_whole = holds(stage.root(), &name, (&object.id, object.size), mode, &mut buffer);
            if !is_whole.map_err(|error| Error::io("read", stage.path_of(&name), error))? {
                return Ok(None);
            }
        }
        staged.insert(entry);
    }
    Ok(Some(staged))
}

/// Whether a file of this name has an object's content. Afterwards it has the mode.
fn holds(
    directory: BorrowedFd<'_>,
    name: &[u8],
    (id, size): (&[u8; 32], u64),
    mode: Mode,
    buffer: &mut [u8],
) -> Result<bool, Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    let file = open_own(flags, |flags| open_name(directory, name, flags, Mode::empty()))?;
    let stat = fstat(&file)?;
    if u64::try_from(stat.st_size) != Ok(size) {
        return Ok(false);
    }
    if Mode::from_raw_mode(stat.st_mode) != mode {
        fchmod(&file, mode)?;
    }
    let mut hasher = blake3::Hasher::new();
    loop {
        match rustix::io::read(&file, &mut *buffer) {
            Ok(0) => return Ok(hasher.finalize().as_bytes() == id),
            Ok(len) => {
                hasher.update(&buffer[..len]);
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}
