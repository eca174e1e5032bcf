//! Without the feature `composefs`: no store is a target.

use std::path::Path;

use super::InstallOptions;
use crate::audit::{StoreAudit, StoreAuditOptions};
use crate::trust::{Guard, Judged, Trusted};
use crate::{Error, Input, Limits, Progress};

#[path = "composefs/stats.rs"]
mod stats;

pub use stats::{ComposefsStats, ImageChecked, MountStats};

/// Imports nothing.
///
/// # Errors
/// Returns [`Error::NoComposefs`].
pub fn import(_: Trusted, _: &Path, _: &InstallOptions, _: &Progress) -> Result<ComposefsStats, Error> {
    Err(Error::NoComposefs)
}

/// Mounts nothing.
///
/// # Errors
/// Returns [`Error::NoComposefs`].
pub fn mount(_: &Path, _: &str, _: &Path, _: usize, _: &Guard, _: &Progress) -> Result<(MountStats, Judged), Error> {
    Err(Error::NoComposefs)
}

/// Audits nothing.
///
/// # Errors
/// Returns [`Error::NoComposefs`].
pub fn audit(
    _: &Path,
    _: Option<Input>,
    _: &StoreAuditOptions,
    _: Limits,
    _: &Guard,
    _: &Progress,
) -> Result<(StoreAudit, Vec<Judged>), Error> {
    Err(Error::NoComposefs)
}
