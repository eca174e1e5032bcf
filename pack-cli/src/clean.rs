//! Removing what runs left that did not end.

use std::path::Path;

use crate::pack::remove_stale;
use crate::unpack::{Found, Stage, complete, state};
use crate::{Error, Progress};

/// What was found beside a target or an output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cleaned {
    /// What an unpacking or an update had made so far was removed; the target is as it was before.
    pub was_removed: bool,
    /// An update had begun to change the target, and was finished.
    pub was_finished: bool,
    /// Spools of a bundle that was being packed, which were removed.
    pub spools: u64,
}

/// Removes what is left beside `target`, a tree or a bundle, of runs that did not end. An update that had begun to change the target
/// is finished first, from what is staged.
///
/// # Errors
/// Another run is at work on the target, something cannot be removed, or what is staged is damaged: then the target holds files of
/// both bundles, and an update makes it whole.
pub fn clean(target: &Path, jobs: usize, progress: &Progress) -> Result<Cleaned, Error> {
    let mut cleaned = Cleaned { spools: remove_stale(target)?, ..Cleaned::default() };
    let Some(stage) = Stage::find(target)? else { return Ok(cleaned) };
    let found = complete(&stage, jobs, progress)?;
    stage.remove()?;
    if target.symlink_metadata().is_err() {
        // A new tree has its state before it has its name.
        state::remove(target)?;
    }
    match found {
        Found::Nothing => cleaned.was_removed = true,
        Found::Finished => cleaned.was_finished = true,
        Found::Damaged => return Err(Error::HalfUpdated { target: target.to_owned() }),
    }
    Ok(cleaned)
}
