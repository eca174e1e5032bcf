//! Without the feature `composefs`: no store is audited or mounted.

use std::path::Path;

use super::{StoreAudit, StoreAuditOptions};
use crate::trust::{Guard, Judged};
use crate::{Error, Input, Limits, Progress};

pub use super::mount_stats::{ImageChecked, MountStats};

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
