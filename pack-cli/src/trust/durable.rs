//! Files that are old or new after a crash, never between.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::Error;

/// Puts `bytes` under `path` by way of `partial` beside it, and waits until the medium has both the file and its name. One caller at a
/// time: what a killed one left under `partial` is written over.
pub(super) fn replace(path: &Path, partial: &Path, bytes: &[u8]) -> Result<(), Error> {
    let write = || {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(partial)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(|error| Error::io("write", partial, error))?;
    std::fs::rename(partial, path).map_err(|error| Error::io("rename to", path, error))?;
    sync_parent(path)
}

/// Waits until the medium has the name of `path`.
pub(super) fn sync_parent(path: &Path) -> Result<(), Error> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let synced = File::open(parent).and_then(|parent| parent.sync_all());
    synced.map_err(|error| Error::io("sync", parent, error))
}
