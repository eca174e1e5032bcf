//! Without the feature `composefs`: no store holds base objects.

use std::path::Path;

use super::Base;
use crate::Error;
use crate::install_record::InstallRecord;

/// Returns [`Error::NoComposefs`].
pub(super) fn of_store(_: &Path) -> Result<Vec<Base>, Error> {
    Err(Error::NoComposefs)
}

/// Returns [`Error::NoComposefs`].
pub(super) fn records_of_store(_: &Path) -> Result<Vec<InstallRecord>, Error> {
    Err(Error::NoComposefs)
}
