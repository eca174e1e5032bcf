//! Makes names durable.

use std::fs::File;
use std::path::Path;

use crate::Error;

/// Waits until the name of `path` is durable.
pub(super) fn sync_parent(path: &Path) -> Result<(), Error> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let synced = File::open(parent).and_then(|parent| parent.sync_all());
    synced.map_err(|error| Error::io("sync", parent, error))
}
