//! Removing what runs left that did not end.

use std::path::Path;

use super::journal::{self, Found};
use super::stage::Stage;
use crate::{Error, Progress};

/// What was found beside a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a caller says each in its own words")]
pub enum Cleaned {
    /// Nothing was left.
    Nothing,
    /// What an unpacking had made so far was removed; the target is as it was before.
    Removed,
    /// An update had begun to change the target, and was finished.
    Finished,
}

/// Removes what is left beside `target` of unpackings and updates that did not end. An update that had begun to change the target is
/// finished first, from what is staged.
///
/// # Errors
/// Another run is at work on the target, something cannot be removed, or what is staged is damaged: then the target holds files of
/// both bundles, and an update makes it whole.
pub fn clean(target: &Path, jobs: usize, progress: &Progress) -> Result<Cleaned, Error> {
    let Some(stage) = Stage::find(target)? else { return Ok(Cleaned::Nothing) };
    let found = journal::complete(&stage, jobs, progress)?;
    stage.remove()?;
    match found {
        Found::Nothing => Ok(Cleaned::Removed),
        Found::Finished => Ok(Cleaned::Finished),
        Found::Damaged => Err(Error::HalfUpdated { target: target.to_owned() }),
    }
}
