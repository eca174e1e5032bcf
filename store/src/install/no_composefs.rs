//! Without the feature `composefs`: no store is a target.

use std::path::Path;

use super::InstallOptions;
use crate::trust::Trusted;
use crate::{Error, Progress};

#[path = "composefs/stats.rs"]
mod stats;

pub use stats::ComposefsStats;

/// Imports nothing.
///
/// # Errors
/// Returns [`Error::NoComposefs`].
pub fn import(_: Trusted, _: &Path, _: &InstallOptions, _: &Progress) -> Result<ComposefsStats, Error> {
    Err(Error::NoComposefs)
}
