//! Admits a bundle to this device: its version is remembered before any of its content can be reached.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use parking_lot::Mutex;
use sealift_format::Head;

use super::state::Held;
use super::{DeviceState, Guard, Judged, KnownTarget, Survey, TargetId, bound};
use crate::{Error, RecordFault};

/// The right to install a judged bundle. It must be used to remember the version on this device before the first byte of the bundle can be reached
/// under its name.
pub(crate) struct Admission {
    guard: Guard,
    head: Head,
    /// Whether the device remembers the bundle, as it does unless the bundle passed only as unsigned.
    is_remembered: bool,
    /// The state, once it is open.
    held: OnceLock<Held>,
    /// How to list the targets, once they hold the bundle.
    taken: Mutex<Vec<KnownTarget>>,
}

impl Admission {
    /// Leaves the state alone for a bundle that passed only as unsigned: it is not remembered.
    pub(super) fn new(guard: Guard, Judged { head, verdict }: Judged) -> Self {
        Self { guard, head, is_remembered: !verdict.unsigned, held: OnceLock::new(), taken: Mutex::default() }
    }

    /// Checks that the state can be written, as far as that can be told without writing.
    pub(super) fn check_may_hold(&self) -> Result<(), Error> {
        if self.is_remembered { self.guard.state().check_may_hold() } else { Ok(()) }
    }

    /// Returns the files and folders by which the bundle was judged.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.guard.paths()
    }

    /// Opens the state and proves that it can be written. Call it before anything of a target is changed.
    ///
    /// # Errors
    /// Returns an error if the state cannot be opened, locked or written to, or if another user could change it.
    pub(crate) fn hold(&self) -> Result<(), Error> {
        self.held().map(drop)
    }

    fn held(&self) -> Result<Option<&Held>, Error> {
        if self.is_remembered && self.held.get().is_none() {
            // Another thread may have been first; its state is as good.
            let _ = self.held.set(self.guard.state().hold()?);
        }
        Ok(self.held.get())
    }

    /// Returns the state that the bundle was judged by.
    pub(crate) fn state(&self) -> &DeviceState {
        self.guard.state()
    }

    /// Checks whether the bundle may replace what a target holds: what the target's record says or, if that is damaged, the list of targets.
    pub(crate) fn check_bound(&self, survey: &Survey, target: &Path) -> Result<(), Error> {
        match (&survey.head, &survey.listed, &survey.fault) {
            (Some(kept), ..) => self.check_kept(target, kept),
            (None, Some(listed), Some(RecordFault::Damaged { .. })) => {
                bound::check_name(target, &listed.name, &self.head)
            }
            _ => Ok(()),
        }
    }

    /// Refuses a bundle whose name differs from `kept`, the head in the target's record. Also refuses a lower version than that, as
    /// [`Guard::judge`] does for a bundle that the device installed: the device's state may have been lost since.
    ///
    /// # Errors
    /// Returns [`Error::OtherName`] for another name, and [`Error::Trust`] for a lower version.
    pub(crate) fn check_kept(&self, target: &Path, kept: &Head) -> Result<(), Error> {
        bound::check_name(target, &kept.root().identity.name, &self.head)?;
        self.guard.policy(bound::floor_of(&self.guard, kept)).judge_head(&self.head)?;
        Ok(())
    }

    /// Lists a target whose content the run is about to destroy, so that the device knows of it whatever happens. A bundle that is not remembered is
    /// not listed either.
    ///
    /// # Errors
    /// Returns an error if the bundle must no longer be used, or if the state cannot be written.
    pub(crate) fn announce(&self, target: &TargetId) -> Result<(), Error> {
        self.held()?.map_or(Ok(()), |held| self.guard.announce(held, &self.head, target))
    }

    /// Remembers the bundle durably. An operation calls this when all the content that it installs is present and checked, right before the first
    /// of it gets its name. `target` is listed as holding the bundle if it stays on this device; after a bundle that is not remembered, it is not listed
    /// as holding a newer one.
    ///
    /// The bundle is judged again under the state's lock: another run may have installed a newer one since.
    ///
    /// # Errors
    /// Returns an error if the bundle must no longer be used, or if the state cannot be written: the operation then ends and its target is unchanged.
    pub(crate) fn commit(&self, target: Option<&TargetId>) -> Result<(), Error> {
        match self.held()? {
            Some(held) => {
                let known = self.guard.remember(held, &self.head, target)?;
                let mut taken = self.taken.lock();
                // For each target only the first time counts: it is the same bundle.
                let is_new = |known: &KnownTarget| taken.iter().all(|taken| taken.place != known.place);
                if let Some(known) = known.filter(is_new) {
                    taken.push(known);
                }
                Ok(())
            }
            None => {
                self.guard.judge(&self.head)?;
                let identity = &self.head.root().identity;
                target.map_or(Ok(()), |place| self.state().forget_newer(place, &identity.name, identity.version))
            }
        }
    }

    /// Lists the targets as holding the bundle. An operation calls this when all of it is in its place, with its record: before that, the list would
    /// claim a version that the target, if the run were killed, never had.
    ///
    /// # Errors
    /// Returns an error if the list cannot be written. The target holds the bundle nevertheless.
    pub(crate) fn settle(&self) -> Result<(), Error> {
        let (Some(held), taken) = (self.held.get(), self.taken.lock()) else { return Ok(()) };
        let _lock = held.lock()?;
        taken.iter().try_for_each(|known| held.list(known))
    }
}
