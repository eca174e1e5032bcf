//! The admission of a bundle to this device: recorded before any of its files becomes reachable.

use std::path::Path;
use std::sync::OnceLock;

use crate::Site;
use sealift_format::Head;

use super::store::Held;
use super::{Guard, Judged, TargetPlace, bound};
use crate::Error;

/// The right to install a bundle that was judged. Before the first byte of it can be reached under its name, it is used to remember the
/// version on this device.
pub(crate) struct Admission {
    guard: Guard,
    head: Head,
    /// Whether the device remembers the bundle: not one that only passed unsigned.
    is_remembered: bool,
    /// The state, once it is open.
    held: OnceLock<Held>,
}

impl Admission {
    /// For a bundle that only passed unsigned, which is not remembered, the state is left alone.
    pub(super) fn new(guard: Guard, Judged { head, verdict }: Judged) -> Self {
        Self { guard, head, is_remembered: !verdict.unsigned, held: OnceLock::new() }
    }

    /// Sees to it that the state can be written, as far as that can be known without writing.
    ///
    /// # Errors
    /// As [`Admission::hold`].
    pub(super) fn check_may_hold(&self) -> Result<(), Error> {
        if self.is_remembered { self.guard.store().check_may_hold() } else { Ok(()) }
    }

    /// Opens the state, which is known to be writable from now on. Nothing of a target is changed before.
    ///
    /// # Errors
    /// The state cannot be opened, locked or written to, or another user could change it.
    pub(crate) fn hold(&self) -> Result<(), Error> {
        self.held().map(drop)
    }

    fn held(&self) -> Result<Option<&Held>, Error> {
        if self.is_remembered && self.held.get().is_none() {
            // Another thread may have been first; its own is as good.
            let _ = self.held.set(self.guard.store().hold()?);
        }
        Ok(self.held.get())
    }

    /// Says whether the bundle may take the place of what the target at `site` has.
    ///
    /// # Errors
    /// As [`Admission::check_kept`]; else the kept head cannot be read.
    pub(crate) fn check_bound(&self, site: &Site) -> Result<(), Error> {
        bound::kept(site)?.map_or(Ok(()), |kept| self.check_kept(site.path(), &kept))
    }

    /// Refuses a bundle of another name than `kept`, the head that the target keeps of what it took. Refuses a lower version than that, as
    /// [`Guard::judge`] does of one that the device took: its state may have been lost since.
    ///
    /// # Errors
    /// [`Error::OtherName`] where it is another name, and [`Error::Trust`] where it is a lower version.
    pub(crate) fn check_kept(&self, target: &Path, kept: &Head) -> Result<(), Error> {
        bound::check_name(target, kept, &self.head)?;
        self.guard.policy(bound::floor_of(&self.guard, kept)).judge_head(&self.head)?;
        Ok(())
    }

    /// Remembers the bundle durably. An operation calls it when all of the bundle's content that it takes is there and checked, right
    /// before the first of it gets its name. `target` is listed as what has the bundle, where it stays on this device.
    ///
    /// The bundle is judged again, under the lock of the state: another run may have taken a newer one since.
    ///
    /// # Errors
    /// The bundle must not be used any more, or the state cannot be written: then the operation ends, and its target is as it was.
    pub(crate) fn commit(&self, target: Option<&TargetPlace>) -> Result<(), Error> {
        match self.held()? {
            Some(held) => self.guard.remember(held, &self.head, target),
            None => self.guard.judge(&self.head).map(drop),
        }
    }
}
