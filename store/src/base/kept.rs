//! The orders of access that the records of a target keep.

use std::path::Path;

use sealift_format::{Index, Limits};

use super::store::records_of_store;
use crate::Error;
use crate::directory::TreeRecord;
use crate::install_record::InstallRecord;
use crate::kept_order::KeptOrder;
use crate::ostree;
use crate::trust::TargetKind;

/// Returns the orders that the records of a target keep, each with the index of what was installed: at most one for a directory, one for each
/// bundle's name for `ostree:REPO` or `composefs:STORE`.
///
/// # Errors
/// Returns an error if there is no such target, or if a record cannot be read, is damaged, or belongs to another user.
pub fn kept_orders(target: &Path) -> Result<Vec<(Index, KeptOrder)>, Error> {
    let installed = match TargetKind::of(target) {
        (TargetKind::Directory, path) => {
            TreeRecord::load(path, Limits::NONE)?.map(|record| record.installed).into_iter().collect()
        }
        (TargetKind::Ostree, path) => ostree::records::records(&ostree::Repo::open(path)?).load_all()?,
        (TargetKind::Composefs, path) => records_of_store(path)?,
        // It holds one file, which is read from its start to its end.
        (TargetKind::Slot, _) => Vec::new(),
    };
    Ok(installed.into_iter().filter_map(|InstallRecord { index, order, .. }| Some((index, order?))).collect())
}
