//! The point from which on an update is finished and not given up: a mark in the stage, beside all that is needed for it.
//!
//! Killed before it, the target is as it was. Killed after it, each of its files is as it was or as it is to be, and what the stage
//! still holds is moved by the next run.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Mutex;

use rustix::fs::{Mode, OFlags, fchmod, fstat, syncfs};
use rustix::io::Errno;
use sealift_format::{Index, InodeKind, Limits};

use super::apply::Update;
use super::changes::Changes;
use super::metadata::Privilege;
use super::plan::Selection;
use super::release::Release;
use super::stage::{Stage, StagedFile, is_taken, sync_parent};
use super::state::{self, State};
use super::target::Target;
use crate::beneath::{open_name, open_own, open_own_file};
use crate::progress::Phase;
use crate::{Error, Progress};

/// What became of a stage that was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It held no journal.
    Nothing,
    /// Its update is finished now; the stage is empty.
    Finished,
    /// What it held is not what was written. The target has to be hashed.
    Damaged,
}

/// What a journal says: whether the update removes what the bundle does not have.
const DELETE: &[u8] = b"delete\n";
const KEEP: &[u8] = b"keep\n";

/// Sets the mark.
pub(super) fn write(stage: &Stage, may_delete: bool, durable: bool) -> Result<(), Error> {
    let path = stage.journal();
    let new = path.with_extension("new");
    let written = File::create(&new).and_then(|mut file| {
        io::Write::write_all(&mut file, if may_delete { DELETE } else { KEEP })?;
        if durable { file.sync_all() } else { Ok(()) }
    });
    // It is there as a whole, or not at all.
    let written = written.and_then(|()| std::fs::rename(&new, &path));
    let written = written.and_then(|()| if durable { sync_directory(&path) } else { Ok(()) });
    written.map_err(|error| Error::io("write", path, error))
}

fn sync_directory(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
}

/// Moves what the stage holds into the target, and makes the state that goes with it the target's. Returns what came of a file of the
/// target that is not what it was to be: then no state describes the target, and the next update looks at it.
pub(super) fn carry_out(stage: &Stage, update: &Update<'_>, durable: bool) -> Result<Option<Error>, Error> {
    let unlike = Release::during(|release| {
        update.progress.enter(Phase::Moving, 0, update.moves());
        let unlike = update.apply(stage, release)?;
        update.progress.enter(Phase::Syncing, 0, 0);
        let synced = if durable { syncfs(update.target.root()) } else { Ok(()) };
        synced.map_err(|error| Error::io("sync", update.target.path, error))?;
        Ok::<_, Error>(unlike)
    })?;
    match unlike {
        Some(_) => give_up_states(stage)?,
        None => state::replace(stage)?,
    }
    if durable {
        sync_parent(update.target.path)?;
    }
    Ok(unlike)
}

/// Removes what the target kept, and what was to take its place, and with them the mark.
fn give_up_states(stage: &Stage) -> Result<(), Error> {
    state::remove(stage.target())?;
    remove_all(&stage.state())?;
    remove_mark(stage)
}

fn remove_mark(stage: &Stage) -> Result<(), Error> {
    let path = stage.journal();
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", &path, error)),
        _ => Ok(()),
    }
}

/// Finishes the update whose journal the stage has.
///
/// # Errors
/// The target cannot be changed. Another run goes on from there.
pub(crate) fn complete(stage: &Stage, jobs: usize, progress: &Progress) -> Result<Found, Error> {
    let path = stage.journal();
    let mut text = Vec::new();
    match open_own_file(&path).and_then(|file| file.take(16).read_to_end(&mut text)) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(Error::io("read", path, error)),
    }
    if text != DELETE && text != KEEP {
        return Ok(Found::Nothing);
    }
    let is_whole = match State::read(&stage.state(), Limits::default(), |_| Ok(())) {
        // All was done but to remove the stage.
        Ok(None) => true,
        Ok(Some(state)) => finish(stage, &state, text == DELETE, jobs, progress)?,
        Err(Error::State { .. } | Error::Format(_)) => false,
        Err(error) => return Err(error),
    };
    match is_whole {
        true => remove_mark(stage)?,
        // Some files may be new: what was kept of the target does not describe it any more.
        false => give_up_states(stage)?,
    }
    tracing::info!(
        is_whole,
        "an interrupted update had begun to change the target, and was finished as far as it was whole"
    );
    Ok(if is_whole { Found::Finished } else { Found::Damaged })
}

fn remove_all(path: &Path) -> Result<(), Error> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", path, error)),
        _ => Ok(()),
    }
}

/// Returns whether the stage held what it is to hold, and the target what was to stay.
fn finish(stage: &Stage, state: &State, may_delete: bool, jobs: usize, progress: &Progress) -> Result<bool, Error> {
    let Some(tree) = state.tree() else { return Ok(false) };
    if !is_taken(stage.target())? {
        return Ok(false);
    }
    let index = &state.index;
    let selection = Selection::list(index, tree, &state.prefix);
    progress.enter(Phase::Hashing, 0, 0);
    let target = Target::open(stage.target(), index)?;
    let failed = |error| Error::io("look at", stage.target(), error);
    let privilege = Privilege::of_process(target.root()).map_err(failed)?;
    let Some(staged) = staged(stage, index, &selection, &privilege, progress)? else { return Ok(false) };
    let changes = Changes::all(&selection, target.missing(&selection.directories), staged);
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
    };
    if may_delete {
        // What the bundle lacks goes in any case; that something is missing shows when the target is looked at again.
        update.look(&state.prefix)?;
    }
    let unlike = carry_out(stage, &update, true)?;
    if let Some(error) = &unlike {
        tracing::warn!(%error, "something in the target is not what it was to be: the next update looks at all of it");
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
