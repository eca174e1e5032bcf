//! Makes a tree cold: pages of its large files that are in the page cache later were read after this.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Advice, CWD, Mode, OFlags, fadvise, openat, syncfs};

use super::large::QUIETLY;
use crate::Error;
use crate::order::profile::LARGE;

/// Drops the large files below `root`, on its file system, from the page cache. Pages that a program has mapped, or is writing, stay cached.
/// So do files that cannot be opened, which is not an error: it only means that more counts as read.
///
/// # Errors
/// Returns an error if `root` cannot be opened, or if `stop` is set.
pub(super) fn make_cold(root: &Path, stop: &AtomicBool) -> Result<(), Error> {
    let failed = |error| Error::io("open", root, error);
    let opened = openat(CWD, root, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    // Only pages that have been written to the medium can be dropped. Programs that write will learn of a failing medium themselves.
    let _ = syncfs(opened.map_err(|error| failed(error.into()))?);
    let device = fs::metadata(root).map_err(failed)?.dev();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        // It may be gone by now.
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() && metadata.dev() == device {
                folders.push(entry.path());
            } else if metadata.is_file()
                && metadata.len() > LARGE
                && let Ok(file) = openat(CWD, entry.path(), QUIETLY, Mode::empty())
            {
                let _ = fadvise(file, 0, None, Advice::DontNeed);
            }
        }
    }
    Ok(())
}
