//! Writes files of a bundle to slots, one image to each.
//!
//! Until its image is complete, a slot begins with zeros: nothing mounts or boots it. The first bytes of all slots are written last, one after the
//! other, once everything else is durable and the device remembers the bundle. A run that was killed is repeated: what is there already is hashed,
//! and kept.

mod compare;
mod give_up;
mod job;
mod stats;

use std::fs::File;
use std::path::Path;

use sealift_format::{Bundle, Index, Object, Opened, Ref, Row};

use crate::address::{choose_ref, object_at, reading};
use crate::base::{Bases, GivenBases};
use crate::install::options::{ExpectedPartition, InstallOptions};
use crate::slot::{Slot, SlotAddress, SlotFolder};
use crate::trust::{Admission, DeviceState, Survey, TargetId, TargetKind, Trusted};
use crate::{Error, Input, Progress, SlotFault, Unopened};
pub use give_up::{GivenUp, give_up};
use job::{Job, Planned};
pub use stats::{SlotStats, SlotsStats};

/// A slot to write to, opened.
struct Target {
    address: SlotAddress,
    slot: Slot,
    /// Name and version of what a run was writing there, if that was this bundle.
    resumes: bool,
    /// The digest of the index of what the slot holds.
    holds: Option<[u8; 32]>,
    /// Why nothing can be written to it, if that is allowed as long as nothing has to be.
    in_use: Option<SlotFault>,
}

/// Writes an image of the bundle to each slot. They become bootable together: no slot gets its first bytes before the content of all is durable.
///
/// A slot that holds the same image, or a part of it since a run was killed, is compared first, and only what differs is written; with
/// [`TreeOptions::update`](crate::install::TreeOptions::update), so is any other slot.
///
/// # Errors
/// Returns an error if the bundle is refused or damaged, or if a slot is in use, is too small, is not the expected one, or holds something that this
/// program did not write: then nothing was written. If writing fails or is cancelled, the slots are not mountable, and another run completes them.
pub fn install(
    bundle: Trusted,
    slots: &[SlotAddress],
    options: &InstallOptions,
    progress: &Progress,
) -> Result<SlotsStats, Error> {
    let state = bundle.state().clone();
    let mut targets: Vec<Target> = Vec::new();
    for address in slots {
        let slot = Slot::look(address)?;
        if targets.iter().any(|other| other.slot.overlaps(&slot)) {
            return Err(Error::slot(slot.shown(), SlotFault::Twice));
        }
        targets.push(open(address, &bundle, options)?);
    }
    check_apart(&targets, &bundle, options)?;
    let surveys = targets.iter().map(|target| Survey::of_slot(&target.slot, &state));
    let surveys = surveys.collect::<Result<Vec<_>, Error>>()?;
    let (unopened, admission) = bundle.install(options.dry_run)?;
    for (target, survey) in targets.iter().zip(&surveys) {
        admission.check_bound(survey, target.slot.shown())?;
        survey.claim(options.adopt)?;
    }
    let (mut input, bundle, bases) = complete(unopened, &targets, &admission, options, progress)?;
    let tree = choose_ref(&bundle.index, options.refs.first().map(String::as_str))?;
    let mut planned = Vec::new();
    for target in targets {
        let (path, object) = image_of(&bundle, tree, &target)?;
        target.slot.check_room(bundle.index.object(object).size)?;
        planned.push(Planned::new(target, path, object));
    }
    let gone_back_from = surveys.iter().find_map(Survey::gone_back_from);
    let job = Job { admission: &admission, bundle: &bundle, bases: &bases, tree, options, progress };
    let mut stats = job.run(&mut input, planned)?;
    stats.install.gone_back_from = gone_back_from;
    Ok(stats)
}

fn open(address: &SlotAddress, bundle: &Trusted, options: &InstallOptions) -> Result<Target, Error> {
    let (slot, in_use) = match Slot::open_to_write(address, options.dry_run) {
        // The slot that the device runs from can be recorded, if it has the image already.
        Err(Error::Slot { fault, .. }) if is_in_use(&fault) && options.tree.update => {
            (Slot::open(address)?, Some(*fault))
        }
        slot => (slot?, None),
    };
    let is_own =
        |expected: &&ExpectedPartition| expected.target.as_ref().is_none_or(|target| *target == address.target);
    options
        .slot
        .expected
        .iter()
        .filter(is_own)
        .try_for_each(|expected| slot.check_expected(expected.label.as_deref(), expected.uuid.as_deref()))?;
    let folder = SlotFolder::open(bundle.state().dir(), &slot)?;
    let resumes = folder.as_ref().map_or(Ok(false), |folder| folder.is_writing(&bundle.judged().head))?;
    // A damaged record is reported when the slot is examined.
    let held = folder.and_then(|folder| folder.held().ok().flatten());
    // A record of something else that has its name says nothing.
    let held = held.filter(|record| record.image.device == slot.identity() && record.image.size <= slot.size());
    let holds = held.map(|record| record.installed.digest());
    Ok(Target { address: address.clone(), slot, resumes, holds, in_use })
}

fn is_in_use(fault: &SlotFault) -> bool {
    matches!(fault, SlotFault::InUse(_) | SlotFault::ReadOnly)
}

/// Refuses a slot by which the bundle or a base would be overwritten.
fn check_apart(targets: &[Target], bundle: &Trusted, options: &InstallOptions) -> Result<(), Error> {
    for place in options.bases.places.iter().map(Path::new) {
        match SlotAddress::of(place) {
            Some(base) => {
                let target = bundle.state().slot_now(&base.target)?;
                check_apart_from(targets, &Slot::open(&SlotAddress { target, ..base })?)?;
            }
            None => check_apart_from_file(targets, TargetKind::of(place).1)?,
        }
    }
    check_apart_from_file(targets, bundle.path())
}

fn check_apart_from(targets: &[Target], base: &Slot) -> Result<(), Error> {
    match targets.iter().find(|target| target.slot.overlaps(base)) {
        Some(target) => Err(Error::slot(target.slot.shown(), SlotFault::IsBase)),
        None => Ok(()),
    }
}

fn check_apart_from_file(targets: &[Target], path: &Path) -> Result<(), Error> {
    // A pipe has no file that could be overwritten, and what is not there is reported when it is read.
    let Ok(file) = File::open(path) else { return Ok(()) };
    match targets.iter().find(|target| target.slot.overlaps_file(&file)) {
        Some(target) => Err(Error::slot(target.slot.shown(), SlotFault::IsBase)),
        None => Ok(()),
    }
}

/// Opens the bundle. A delta is completed with the bases that were given, or else with the other slots that hold them.
fn complete(
    unopened: Unopened,
    targets: &[Target],
    admission: &Admission,
    options: &InstallOptions,
    progress: &Progress,
) -> Result<(Input, Bundle, Bases), Error> {
    let (mut input, mut opened) = unopened.open_any()?;
    let mut given = GivenBases { state: Some(admission.state().clone()), ..options.bases.clone() };
    if given.places.is_empty() {
        let delta = match opened {
            Opened::Whole(bundle) => {
                let bases = Bases::default().making(&bundle, &mut input, options.jobs)?;
                return Ok((input, bundle, bases));
            }
            Opened::Delta(delta) => delta,
        };
        let is_target = |place: &TargetId| {
            let base = SlotAddress::of(&place.argument()).and_then(|base| Slot::open(&base).ok());
            base.is_none_or(|base| check_apart_from(targets, &base).is_err())
        };
        let mut has_all = true;
        for base in delta.bases() {
            let mut holders = holders(admission.state(), &base.index_digest)?;
            holders.retain(|place| !is_target(place));
            has_all &= !holders.is_empty();
            given.places.extend(holders.into_iter().map(|place| place.argument().into_os_string()));
        }
        let wanted = delta.head.root().contents.index_digest;
        if let (false, Some(index)) = (has_all, held_by_all(targets, &wanted, admission.state())?) {
            return Ok((input, delta.complete_with(index)?, Bases::default()));
        }
        opened = Opened::Delta(delta);
    }
    match given.complete(opened, input.path(), progress)? {
        (Opened::Whole(bundle), bases) => {
            let bases = bases.making(&bundle, &mut input, options.jobs)?;
            Ok((input, bundle, bases))
        }
        (Opened::Delta(delta), _) => Err(Error::is_delta(input.path(), &delta)),
    }
}

/// Returns the index of what the slots hold, if it is that of this digest for all of them: they need no base.
fn held_by_all(targets: &[Target], digest: &[u8; 32], state: &DeviceState) -> Result<Option<Index>, Error> {
    let holds_it = |target: &Target| target.holds.as_ref() == Some(digest) && !target.resumes;
    let Some(first) = targets.first().filter(|_| targets.iter().all(holds_it)) else { return Ok(None) };
    let held = SlotFolder::open(state.dir(), &first.slot)?.map_or(Ok(None), |folder| folder.held())?;
    Ok(held.map(|record| record.installed.index))
}

/// Returns the slots that hold a bundle with this index, according to the state.
fn holders(state: &DeviceState, index: &[u8; 32]) -> Result<Vec<TargetId>, Error> {
    let known = state.targets()?.into_iter().flatten();
    let mut holders = Vec::new();
    for known in known.filter(|known| known.place.kind() == TargetKind::Slot && !known.is_begun) {
        if held_digest(&known.place, state) == Some(*index) {
            holders.extend(known.place.now());
        }
    }
    Ok(holders)
}

/// Returns the digest of the index of what a slot holds; `None` if it cannot be told.
fn held_digest(place: &TargetId, state: &DeviceState) -> Option<[u8; 32]> {
    let slot = Slot::open(&SlotAddress::of(&place.now()?.argument())?).ok()?;
    let folder = SlotFolder::open(state.dir(), &slot).ok()??;
    let is_whole = folder.run().ok()?.is_none();
    folder.held().ok()?.filter(|_| is_whole).map(|record| record.installed.digest())
}

/// Returns the digests of the indexes of what the slots of this device hold, except these: the bases that a delta for these may have.
///
/// # Errors
/// Returns an error if the list of targets cannot be read.
pub fn held_by_others(slots: &[SlotAddress], state: &DeviceState) -> Result<Vec<[u8; 32]>, Error> {
    let own: Vec<TargetId> = slots.iter().filter_map(|slot| Some(TargetId::of_slot(&Slot::open(slot).ok()?))).collect();
    let known = state.targets()?.into_iter().flatten().map(|known| known.place);
    let others = known.filter_map(|place| place.now());
    let others = others.filter(|place| place.kind() == TargetKind::Slot && !own.contains(place));
    Ok(others.filter_map(|place| held_digest(&place, state)).collect())
}

/// Returns the path and object of the image that a slot gets.
fn image_of(bundle: &Bundle, tree: &Ref, target: &Target) -> Result<(Vec<u8>, Row<Object>), Error> {
    let index = &bundle.index;
    let Some(written) = &target.address.image else {
        let mut files = index.regulars(tree);
        return match (files.next(), files.next()) {
            (Some((directory, entry, object)), None) => Ok((index.path(directory, entry), object)),
            (first, _) => Err(Error::Usage(match first {
                Some((directory, entry, _)) => format!(
                    "the bundle has several files: say which one {} gets, as in {}={}",
                    target.slot.shown().display(),
                    String::from_utf8_lossy(&index.path(directory, entry)),
                    target.slot.shown().display()
                ),
                None => "the bundle has no file that could be an image".to_owned(),
            })),
        };
    };
    let found = |path: &[u8]| object_at(index, tree, path);
    match reading(written, |path| found(path).is_some())? {
        Some(path) => match found(&path) {
            Some(object) => Ok((path, object)),
            None => Err(Error::NoFile { path }),
        },
        None => Err(Error::NoFile { path: written.clone() }),
    }
}
