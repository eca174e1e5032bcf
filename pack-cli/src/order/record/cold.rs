//! Makes a tree cold, so that what is in the page cache of it afterwards was read afterwards.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Advice, CWD, Mode, OFlags, fadvise, openat, syncfs};

use super::large::QUIETLY;
use crate::Error;
use crate::order::profile::LARGE;

/// Drops the large files below `root`, on its file system, from the page cache. What a program has mapped or writes meanwhile stays. Files that
/// cannot be opened stay too, which is no error: the more stays, the more counts as read.
///
/// # Errors
/// Returns an error if `root` cannot be opened, or if `stop` is set meanwhile.
pub(super) fn make_cold(root: &Path, stop: &AtomicBool) -> Result<(), Error> {
    let failed = |error| Error::io("open", root, error);
    let opened = openat(CWD, root, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    // Only what is on the medium can be dropped. A medium that fails now will tell others.
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
