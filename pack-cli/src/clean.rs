//! Removes what interrupted runs left.

use std::io;
use std::path::Path;

use crate::trust::{DeviceState, TargetKind, TargetPlace, sign};
use crate::{Error, Progress};
use rustix::fs::FileType;
use sealift_store::directory::{TreeStage, state};
use sealift_store::fs::partial::remove_stale;
use sealift_store::target::directory::{Interrupted, complete, give_up};
use sealift_store::{Place, Site};
use serde::Serialize;

/// What was cleaned at a target or an output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CleanStats {
    /// The partial result of an unpacking or update was removed. The target is as it was before.
    pub was_removed: bool,
    /// An update had begun to change the target, and was completed.
    pub was_finished: bool,
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
            let place = TargetPlace::of_missing(TargetKind::Directory, target)?;
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
    let spools = packed.removed + u64::from(sign::remove_stale(target)?);
    let mut cleaned = CleanStats { spools, ..CleanStats::default() };
    if place.stat()?.is_some_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile) {
        return Ok(cleaned); // the target is a bundle
    }
    let site = Site::of(place)?;
    clean_site(&site, jobs, progress, &mut cleaned)?;
    if let Some(state) = state
        && holds_another(&site, state)?
    {
        cleaned.was_forgotten = state.forget_target(&TargetPlace::of_directory(&site)?)?;
    }
    Ok(cleaned)
}

/// Returns whether the listed bundle is no longer installed there: the directory or its record is gone, or the record is of another name.
fn holds_another(site: &Site, state: &DeviceState) -> Result<bool, Error> {
    // A record that is not ours is not examined further: nothing in it is needed here.
    if site.root().is_none() || site.record().is_ok_and(|record| record.is_none()) {
        return Ok(true);
    }
    let held = state::kept_head(site).ok().flatten();
    let known = state.taken_at(site)?;
    Ok(held.zip(known).is_some_and(|(head, known)| head.root().identity.name != known.name))
}

/// Does the same for a repository or store, which cleans itself on each write: if it no longer exists, its entry in `state` is removed.
///
/// # Errors
/// Returns an error if the list cannot be read or written.
pub fn clean_store(kind: TargetKind, path: &Path, state: Option<&DeviceState>) -> Result<CleanStats, Error> {
    let mut cleaned = CleanStats::default();
    if let Some(state) = state.filter(|_| !path.exists()) {
        cleaned.was_forgotten = state.forget_target(&TargetPlace::of_missing(kind, path)?)?;
    }
    Ok(cleaned)
}

fn clean_site(site: &Site, jobs: usize, progress: &Progress, cleaned: &mut CleanStats) -> Result<(), Error> {
    let target = site.path();
    let Some(stage) = TreeStage::find(site)? else {
        // The tree was removed, but not the record beside it.
        cleaned.was_removed = site.root().is_none() && state::remove(site)?;
        return Ok(());
    };
    let found = match complete(&stage, site, jobs, progress) {
        // Whatever is in the way: this verb must not be stuck as well.
        Err(why @ (Error::Io { .. } | Error::Unexpected { .. })) => {
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
        Interrupted::Finished => cleaned.was_finished = true,
        Interrupted::Damaged if is_taken => return Err(Error::HalfUpdated { target: target.to_owned() }),
        Interrupted::Nothing | Interrupted::Damaged => cleaned.was_removed = true,
    }
    Ok(())
}
