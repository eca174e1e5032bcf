//! A partition whose device has another name now.

use std::path::{Path, PathBuf};

use sealift::Error;
use sealift::trust::DeviceState;

use super::show::Show;

/// Returns a target as it can be opened, and tells the user if that is a partition whose device is called otherwise now.
///
/// # Errors
/// Returns an error if the device's state cannot be read.
pub(super) fn found_again(target: &Path, state: &DeviceState, show: Show) -> Result<PathBuf, Error> {
    let now = state.slot_now(target)?;
    if now != target {
        show.warn(&words(target, &now));
    }
    Ok(now)
}

/// Says how a partition's device was called, and how it is now.
pub(super) fn words(before: &Path, now: &Path) -> String {
    format!("{} is called {} now: its partition has the same UUID", before.display(), now.display())
}
