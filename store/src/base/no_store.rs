//! Without the feature `composefs`: no store holds base objects.

use std::path::Path;

use super::Base;
use crate::Error;
use crate::install_record::InstallRecord;

/// Returns no bases.
pub(super) fn of_store(_: &Path) -> Result<Vec<Base>, Error> {
    Err(Error::NoComposefs)
}

/// Returns no records.
pub(super) fn records_of_store(_: &Path) -> Result<Vec<InstallRecord>, Error> {
    Err(Error::NoComposefs)
}
