//! Taking a bundle onto this device: judged before anything behind its head is read, and remembered before anything of it can be reached.

use std::cell::OnceCell;
use std::path::Path;

use sealift_format::Head;
use sealift_store::Site;
use sealift_verify::trust::Verdict;

use super::store::Held;
use super::{Guard, TargetPlace, bound};
use crate::Error;

/// What an operation that installs asks: whether it may take a bundle, and, before the first byte of it can be reached under its name,
/// that this device remembers the version.
pub struct Admission<'g> {
    judge: Judge<'g>,
    taken: OnceCell<(Head, Verdict)>,
}

type OwnJudge<'g> = Box<dyn Fn(&Head) -> Result<(), Error> + 'g>;

enum Judge<'g> {
    /// With the state, as soon as it is known to be writable.
    Guard(&'g Guard, Box<OnceCell<Held>>),
    /// Nothing is written, whatever comes of it.
    Trial(&'g Guard),
    /// A program's own, which remembers by itself.
    Own(OwnJudge<'g>),
}

impl<'g> Admission<'g> {
    /// Bundles are judged by `guard`, whose state is known to be writable from now on; where it lets unsigned bundles pass, which are not
    /// remembered, only as soon as one was judged that is.
    ///
    /// # Errors
    /// The state cannot be opened, locked or written to, or another user could change it.
    pub fn by(guard: &'g Guard) -> Result<Self, Error> {
        let held = Box::new(OnceCell::new());
        if !guard.allows_unsigned() {
            hold(guard, &held)?;
        }
        Ok(Self { judge: Judge::Guard(guard, held), taken: OnceCell::new() })
    }

    /// The same for a run that writes nothing, and ends as the run would.
    ///
    /// # Errors
    /// As [`Admission::by`], as far as that can be known without writing.
    pub fn trial(guard: &'g Guard) -> Result<Self, Error> {
        if !guard.allows_unsigned() {
            guard.store().check_may_hold()?;
        }
        Ok(Self { judge: Judge::Trial(guard), taken: OnceCell::new() })
    }

    /// Bundles are judged by the program itself, and nothing is remembered.
    #[must_use]
    pub fn judged_by(judge: impl Fn(&Head) -> Result<(), Error> + 'g) -> Self {
        Self { judge: Judge::Own(Box::new(judge)), taken: OnceCell::new() }
    }

    /// Anybody's bundle is taken, and nothing is remembered.
    #[must_use]
    pub fn of_anyone() -> Self {
        Self::judged_by(|_| Ok(()))
    }

    /// Judges a bundle by its head, once.
    ///
    /// # Errors
    /// As [`Guard::judge`]; or it is to be remembered and cannot be.
    pub fn judge(&self, head: &Head) -> Result<(), Error> {
        let verdict = match &self.judge {
            Judge::Own(judge) => return judge(head),
            Judge::Guard(guard, _) | Judge::Trial(guard) => guard.judge(head)?,
        };
        if !verdict.unsigned {
            match &self.judge {
                Judge::Guard(guard, held) => hold(guard, held).map(|_| ())?,
                Judge::Trial(guard) => guard.store().check_may_hold()?,
                Judge::Own(_) => {}
            }
        }
        let _ = self.taken.set((head.clone(), verdict)); // judged once
        Ok(())
    }

    /// Says whether a bundle that was judged may take the place of what the target at `site` has.
    ///
    /// # Errors
    /// As [`Guard::check_bound`].
    pub(crate) fn check_bound(&self, site: &Site, head: &Head) -> Result<(), Error> {
        let Some(kept) = bound::kept(site)? else { return Ok(()) };
        match &self.judge {
            Judge::Guard(guard, _) | Judge::Trial(guard) => guard.check_kept(site.path(), &kept, head),
            Judge::Own(_) => bound::check_name(site.path(), &kept, head),
        }
    }

    /// Refuses what was judged where it is of a lower version than `kept`, the head that the store at `path` keeps of its last bundle of the
    /// same name, unless older ones are allowed.
    ///
    /// # Errors
    /// As [`Guard::check_bound`].
    pub(crate) fn check_kept(&self, path: &Path, kept: &Head) -> Result<(), Error> {
        match (self.guard(), self.taken.get()) {
            (Some(guard), Some((head, _))) => guard.check_kept(path, kept, head),
            _ => Ok(()),
        }
    }

    /// Remembers durably what was judged. An operation calls it when all of the bundle's content that it takes is there and checked, right
    /// before the first of it gets its name. `target` is listed as what has the bundle, where it stays on this device.
    ///
    /// The bundle is judged again, under the lock of the state: another run may have taken a newer one since.
    ///
    /// # Errors
    /// The bundle must not be used any more, or the state cannot be written: then the operation ends, and its target is as it was.
    pub fn commit(&self, target: Option<&TargetPlace>) -> Result<(), Error> {
        let Some((head, verdict)) = self.taken.get() else { return Ok(()) };
        match &self.judge {
            Judge::Own(_) => Ok(()),
            Judge::Guard(guard, held) if !verdict.unsigned => guard.remember(hold(guard, held)?, head, target),
            Judge::Guard(guard, _) | Judge::Trial(guard) => guard.judge(head).map(|_| ()),
        }
    }

    /// The bundle that was judged, and the verdict.
    #[must_use]
    pub fn taken(&self) -> Option<(&Head, &Verdict)> {
        self.taken.get().map(|(head, verdict)| (head, verdict))
    }

    /// Who judges, if somebody does.
    #[must_use]
    pub fn guard(&self) -> Option<&'g Guard> {
        match self.judge {
            Judge::Guard(guard, _) | Judge::Trial(guard) => Some(guard),
            Judge::Own(_) => None,
        }
    }
}

/// The state, opened at first and kept open.
fn hold<'h>(guard: &Guard, held: &'h OnceCell<Held>) -> Result<&'h Held, Error> {
    if let Some(held) = held.get() {
        return Ok(held);
    }
    let open = guard.store().hold()?;
    Ok(held.get_or_init(|| open))
}
