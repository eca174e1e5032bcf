//! The files to seal.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, fstat};
use sealift_format::name::join;
use sealift_verify::fsverity;

use crate::error::path_of;
use crate::fs::confined::{known_type, names_in, open_beneath};
use crate::{Error, Progress};

/// What was found at and below the given paths.
pub(super) struct List<'a> {
    roots: Vec<Root<'a>>,
    others: u64,
}

/// A path that was given.
enum Root<'a> {
    File(&'a Path),
    Directory { path: &'a Path, opened: OwnedFd, files: Vec<Vec<u8>> },
}

/// A regular file, according to its directory's listing.
pub(super) enum ListedFile<'a> {
    Named(&'a Path),
    Below { root: &'a Path, opened: &'a OwnedFd, path: &'a [u8] },
}

/// Lists what to seal, on file systems that support it.
pub(super) fn list<'a>(paths: &'a [PathBuf], progress: &Progress) -> Result<List<'a>, Error> {
    let (mut known, mut others) = (HashSet::new(), 0);
    let mut roots = Vec::new();
    for path in paths {
        let failed = |error| Error::io("open", path, error);
        let opened = super::open_any(path).map_err(failed)?;
        check_file_system(&mut known, opened.as_fd(), path)?;
        match FileType::from_raw_mode(fstat(&opened).map_err(|error| failed(error.into()))?.st_mode) {
            FileType::RegularFile => roots.push(Root::File(path)),
            FileType::Directory => {
                let files = files_below(path, &opened, &mut known, &mut others, progress)?;
                roots.push(Root::Directory { path, opened, files });
            }
            _ => others += 1,
        }
    }
    Ok(List { roots, others })
}

/// Lists the paths of regular files below a directory.
fn files_below(
    root: &Path,
    opened: &OwnedFd,
    known: &mut HashSet<u64>,
    others: &mut u64,
    progress: &Progress,
) -> Result<Vec<Vec<u8>>, Error> {
    let (mut files, mut pending) = (Vec::new(), vec![Vec::new()]);
    while let Some(at) = pending.pop() {
        progress.check()?;
        let here = root.join(path_of(&at));
        let failed = |error| Error::io("read", &here, error);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let directory = open_beneath(opened.as_fd(), &at, flags, Mode::empty()).map_err(failed)?;
        check_file_system(known, directory.as_fd(), &here)?;
        for (name, listed) in names_in(directory.as_fd()).map_err(failed)? {
            let path = join(&at, &name);
            match known_type(directory.as_fd(), &name, listed).map_err(failed)? {
                FileType::RegularFile => files.push(path),
                FileType::Directory => pending.push(path),
                _ => *others += 1,
            }
        }
        progress.add(0, 1);
    }
    Ok(files)
}

/// Checks each file system once.
fn check_file_system(known: &mut HashSet<u64>, opened: impl AsFd, path: &Path) -> Result<(), Error> {
    let device = fstat(&opened).map_err(|error| Error::io("look at", path, error))?.st_dev;
    if !known.insert(device) {
        return Ok(());
    }
    match fsverity::is_supported(opened) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Error::kernel(path, fsverity::KernelError::Unsupported)),
        Err(error) => Err(Error::kernel(path, error)),
    }
}

impl List<'_> {
    pub(super) fn places(&self) -> Vec<ListedFile<'_>> {
        let of = |root| -> Vec<ListedFile<'_>> {
            match root {
                &Root::File(path) => vec![ListedFile::Named(path)],
                Root::Directory { path: root, opened, files } => {
                    files.iter().map(|path| ListedFile::Below { root, opened, path }).collect()
                }
            }
        };
        self.roots.iter().flat_map(of).collect()
    }

    /// Returns the number of entries that are neither directories nor regular files.
    pub(super) fn others(&self) -> u64 {
        self.others
    }
}

impl ListedFile<'_> {
    /// Returns its path, for messages.
    pub(super) fn path(&self) -> PathBuf {
        match self {
            Self::Named(path) => (*path).to_owned(),
            Self::Below { root, path, .. } => root.join(path_of(path)),
        }
    }

    /// Opens it for reading: the kernel does not seal a file that is open for writing. Does not block on a fifo that replaced it.
    pub(super) fn open(&self) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        match self {
            Self::Named(path) => super::open_any(path).map(File::from),
            Self::Below { opened, path, .. } => {
                Ok(open_beneath(opened.as_fd(), path, flags, Mode::empty()).map(File::from)?)
            }
        }
    }
}
