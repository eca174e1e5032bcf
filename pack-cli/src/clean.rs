//! Removes what interrupted runs left.

use std::io;
use std::path::{Path, PathBuf};

use crate::trust::{DeviceState, Survey, TargetId, TargetKind, sign_partial};
use crate::{Class, Error, Progress, RecordFault};
use rustix::fs::FileType;
use rustix::io::Errno;
use sealift_store::directory::{TreeStage, state};
use sealift_store::fs::partial::remove_stale;
use sealift_store::install::directory::{Interrupted, complete, give_up, is_of_another};
use sealift_store::install::discard_imports;
use sealift_store::install::slot::{GivenUp, give_up as give_up_slot};
use sealift_store::slot::{Slot, SlotAddress, SlotFolder};
use sealift_store::{Place, Site};
use serde::Serialize;

/// What was cleaned at a target or an output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CleanStats {
    /// The partial result of an unpacking, update or import was removed. The target is as it was before.
    pub was_removed: bool,
    /// An update had begun to change the target, and was completed.
    pub was_finished: bool,
    /// The install record of a tree that is gone was removed.
    pub was_record_removed: bool,
    /// Unfinished files of interrupted `pack` and `sign` runs that were removed.
    pub spools: u64,
    /// The state listed a target there that is missing or has no record of its bundle; it no longer lists it.
    pub was_forgotten: bool,
}

/// Removes the remains of interrupted runs beside `target`, a tree or a bundle. An update that had begun to change the target is first completed from
/// its stage. If the bundle that `state` lists is then not installed there, its entry is removed.
///
/// # Errors
/// Returns an error if another run is working on the target, if something cannot be removed, or if the update cannot be completed, such as from a
/// damaged stage: then the target holds files of both bundles, nothing is in the way of the next update, and that repairs it.
pub fn clean(
    target: &Path,
    state: Option<&DeviceState>,
    jobs: usize,
    progress: &Progress,
) -> Result<CleanStats, Error> {
    let place = match Place::resolve(target) {
        // The folder that contained it is gone as well.
        Err(Error::Io { doing, path, source }) if source.kind() == io::ErrorKind::NotFound => {
            let place = TargetId::of_missing(TargetKind::Directory, target)?;
            let was_forgotten = state.map_or(Ok(false), |state| state.forget_target(&place))?;
            let error = Error::Io { doing, path, source };
            return if was_forgotten { Ok(CleanStats { was_forgotten, ..CleanStats::default() }) } else { Err(error) };
        }
        place => place?,
    };
    let target = place.path();
    let packed = remove_stale(target)?;
    if let Some(path) = packed.in_use {
        return Err(Error::Busy { path });
    }
    let spools = packed.removed + u64::from(sign_partial::remove_stale(target)?);
    let mut cleaned = CleanStats { spools, ..CleanStats::default() };
    if place.stat()?.is_some_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile) {
        return Ok(cleaned); // the target is a bundle
    }
    let site = Site::of(place)?;
    clean_site(&site, state, jobs, progress, &mut cleaned)?;
    if let Some(state) = state
        && holds_another(&site, state)?
    {
        cleaned.was_forgotten = state.forget_target(&TargetId::of_directory(&site)?)?;
    }
    Ok(cleaned)
}

/// Returns whether the listed bundle is no longer installed there: the directory or its record is gone, or the record is of another name.
fn holds_another(site: &Site, state: &DeviceState) -> Result<bool, Error> {
    // A record that is not ours is not examined further: nothing in it is needed here.
    if site.record().is_err() {
        return Ok(false);
    }
    let survey = Survey::of_directory(site, Some(state))?;
    let is_missing = matches!(survey.fault, Some(RecordFault::Missing { .. }));
    let names = survey.head.as_ref().zip(survey.listed.as_ref());
    Ok(is_missing || names.is_some_and(|(head, listed)| head.root().identity.name != listed.name))
}

/// Does the same for a repository or store: removes the objects that interrupted imports left, and from the list what is no longer there.
///
/// # Errors
/// Returns an error if an import is running, if what one left cannot be removed, if the list cannot be read or written, or if a record cannot be read.
pub fn clean_store(kind: TargetKind, path: &Path, state: Option<&DeviceState>) -> Result<CleanStats, Error> {
    let mut cleaned = CleanStats::default();
    if path.is_dir() {
        cleaned.was_removed = discard_imports(kind, path)?;
    }
    let Some(state) = state else { return Ok(cleaned) };
    // The place may merely be out of reach, behind a mount that has died.
    if !path.try_exists().map_err(|error| Error::io("read", path, error))? {
        cleaned.was_forgotten = state.forget_target(&TargetId::of_missing(kind, path)?)?;
        return Ok(cleaned);
    }
    let place = TargetId::of_store(kind, path)?;
    for (name, survey) in Survey::of_store(kind, path, None, Some(state))?.unwrap_or_default() {
        if matches!(survey.fault, Some(RecordFault::Missing { .. })) && survey.run.is_none() {
            cleaned.was_forgotten |= state.forget(&place, &name)?;
        }
    }
    Ok(cleaned)
}

/// Does the same for a slot. What a run began to write is given up, and the slot begins with zeros until the next one; if only its record was not
/// complete, it is finished.
///
/// # Errors
/// Returns an error if another run is writing to the slot, if the state cannot be read or written, or if the run is cancelled.
pub fn clean_slot(
    address: &SlotAddress,
    state: Option<&DeviceState>,
    jobs: usize,
    progress: &Progress,
) -> Result<CleanStats, Error> {
    let mut cleaned = CleanStats::default();
    let Some(state) = state else { return Ok(cleaned) };
    let slot = Slot::look(address)?;
    let place = TargetId::of_slot(&slot);
    let Some(folder) = SlotFolder::open(state.dir(), &slot)? else {
        cleaned.was_forgotten = state.forget_target(&place)?;
        return Ok(cleaned);
    };
    let done = give_up_slot(address, &slot, &folder, jobs, progress)?;
    (cleaned.was_removed, cleaned.was_finished) = (done == GivenUp::Discarded, done == GivenUp::Finished);
    match folder.held()? {
        Some(record) if cleaned.was_finished => state.settle(&place, &record.installed.head)?,
        Some(_) => {}
        None => cleaned.was_forgotten = state.forget_target(&place)?,
    }
    Ok(cleaned)
}

fn clean_site(
    site: &Site,
    known: Option<&DeviceState>,
    jobs: usize,
    progress: &Progress,
    cleaned: &mut CleanStats,
) -> Result<(), Error> {
    let target = site.path();
    let Some(stage) = TreeStage::find(site)? else {
        // The tree was removed, but not the record beside it.
        cleaned.was_record_removed = site.root().is_none() && state::remove(site)?;
        return Ok(());
    };
    if is_of_another(&stage, site)? {
        // So was the record. What is in its place has nothing of the update.
        state::remove(site)?;
        cleaned.was_removed = true;
        return stage.remove(site);
    }
    let needed: Vec<PathBuf> = known.iter().map(|state| state.dir().to_owned()).collect();
    let found = match complete(&stage, site, &needed, jobs, progress) {
        // Whatever else is in the way: this verb must not be stuck as well.
        Err(why) if !may_be_repeated(&why) => {
            let is_unchanged = give_up(&stage, site, jobs, progress)?;
            stage.remove(site)?;
            cleaned.was_removed = is_unchanged;
            return match is_unchanged {
                true => Ok(()),
                false => Err(Error::GivenUp { target: target.to_owned(), why: Box::new(why) }),
            };
        }
        found => found?,
    };
    stage.remove(site)?;
    let is_taken = site.is_nonempty_dir()?;
    if !is_taken {
        // A new tree has its state before it is renamed into place.
        state::remove(site)?;
    }
    match found {
        Interrupted::Finished => {
            cleaned.was_finished = true;
            if let Some((known, head)) = known.zip(state::kept_head(site)?) {
                known.settle(&TargetId::of_directory(site)?, &head)?;
            }
        }
        Interrupted::Damaged if is_taken => return Err(Error::HalfUpdated { target: target.to_owned() }),
        Interrupted::Nothing | Interrupted::Damaged => cleaned.was_removed = true,
    }
    Ok(())
}

/// Returns whether the same may succeed later: the run was stopped, or something has run out, of which there may be more then.
fn may_be_repeated(error: &Error) -> bool {
    match error {
        _ if matches!(error.class(), Class::Cancelled | Class::Busy | Class::DiskFull) => true,
        Error::Io { source, .. } | Error::Xattr { source, .. } => {
            let lacks = [Errno::MFILE, Errno::NFILE, Errno::NOMEM];
            Errno::from_io_error(source).is_some_and(|errno| lacks.contains(&errno))
        }
        _ => false,
    }
}
