//! Unnamed temporary files.

use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags, openat, unlinkat};
use rustix::io::{Errno, retry_on_intr};

use crate::fs::confined::{open_name, open_user_dir};

/// Creates a file that vanishes with its descriptor, even if the run is killed.
pub fn unnamed_file(directory: &Path) -> Result<File, Errno> {
    unnamed_in(open_user_dir(directory)?.as_fd())
}

/// As [`unnamed_file`], in an open directory.
pub fn unnamed_in(directory: BorrowedFd<'_>) -> Result<File, Errno> {
    let (flags, mode) = (OFlags::RDWR | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR);
    match retry_on_intr(|| openat(directory, ".", flags | OFlags::TMPFILE, mode)) {
        // Network and old file systems do not support this.
        Err(Errno::NOTSUP | Errno::ISDIR | Errno::INVAL) => {}
        other => return other.map(File::from),
    }
    for attempt in 0..100 {
        let name = format!(".sealift-{}-{attempt}.spool", std::process::id());
        match open_name(directory, name.as_bytes(), flags | OFlags::CREATE | OFlags::EXCL, mode) {
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
            Ok(file) => {
                unlinkat(directory, &*name, rustix::fs::AtFlags::empty())?;
                return Ok(file.into());
            }
        }
    }
    Err(Errno::EXIST)
}
