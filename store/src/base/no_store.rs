//! Without the feature `composefs`: no store holds base objects.

use std::path::Path;

use super::Base;
use crate::Error;

/// Returns no bases.
pub(super) fn of_store(_: &Path) -> Result<Vec<Base>, Error> {
    Err(Error::NoComposefs)
}
