//! What the next run can resume after an error.

use std::path::Path;

use super::journal;
use crate::directory::TreeStage;
use crate::install::resume::may_get_further;
use crate::{Class, Error, LeftRun, Site};

/// Keeps the stage after an error if a new run may resume from it.
pub(super) fn abandon(stage: TreeStage, site: &Site, error: Error) -> Error {
    let is_full = error.class() == Class::DiskFull;
    let error = match error {
        // The files of the stage are named by their places in the target, where they do not exist yet.
        Error::Io { path, source, .. } | Error::Xattr { path, source, .. }
            if is_full && path.starts_with(site.path()) =>
        {
            Error::io("write to", stage.own().path(), source)
        }
        error => error,
    };
    let keeps = journal::is_set(&stage)
        || match &error {
            // Nothing was added.
            Error::NoSpace { .. } | Error::NoInodes { .. } => stage.is_resumed(),
            error => may_get_further(error),
        };
    if !keeps {
        // What cannot be removed is named as a leftover, and the next run removes it.
        let _ = stage.remove(site);
    }
    error
}

/// Returns whether a run that ended with `error` left something beside `target` that the next one can resume.
#[must_use]
pub fn may_go_on(target: &Path, error: &Error) -> bool {
    match error {
        // What is there belongs to that run.
        Error::Busy { .. } => false,
        error => is_half_updated(target) || is_unfinished(target) && may_get_further(error),
    }
}

/// Returns whether a run left something beside `target` that the next one can resume.
#[must_use]
pub fn is_unfinished(target: &Path) -> bool {
    Site::resolve(target).is_ok_and(|site| site.has_stage().unwrap_or(true))
}

/// Returns whether an update began to change `target` and did not end: some of its files are old, and some new.
#[must_use]
pub fn is_half_updated(target: &Path) -> bool {
    Site::resolve(target).is_ok_and(|site| site.run().is_ok_and(|run| run == Some(LeftRun::HalfUpdated)))
}
