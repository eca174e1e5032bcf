//! Temporary files, unnamed or with a name that nobody else can know.

use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, openat, unlinkat};
use rustix::io::{Errno, retry_on_intr};
use rustix::rand::{GetRandomFlags, getrandom};
use sealift_format::hex;

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
    let create = |name: &str| open_name(directory, name.as_bytes(), flags | OFlags::CREATE | OFlags::EXCL, mode);
    let (file, name) = with_new_name(create)?;
    unlinkat(directory, &*name, AtFlags::empty())?;
    Ok(file.into())
}

/// Has `make` make something under a name that nothing had, and returns that name. `make` fails if something has it, and follows no link: the
/// directory may be one in which others can write.
pub(crate) fn with_new_name<T>(make: impl Fn(&str) -> Result<T, Errno>) -> Result<(T, String), Errno> {
    for _ in 0..100 {
        let mut random = [0; 8];
        getrandom(&mut random, GetRandomFlags::empty())?;
        let name = format!(".sealift-{}.temporary", hex(&random));
        match make(&name) {
            Err(Errno::EXIST) => {}
            made => return made.map(|made| (made, name)),
        }
    }
    Err(Errno::EXIST)
}
