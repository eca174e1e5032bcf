//! The deletions of an update, by kind: counted with everything below, and listed by name on request.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::apply::Update;
use super::census::Census;
use crate::Error;
use crate::directory::target::TargetWalk;
use crate::fs::confined::{known_type, names_in, open_on_same_device};

/// The entries that are deleted.
#[derive(Debug, Default)]
pub(super) struct Deletions {
    pub(super) census: Census,
    /// The paths in the target; those of directories end with a slash.
    pub(super) paths: Vec<Vec<u8>>,
    is_listed: bool,
}

/// Levels examined below a deleted name, each with an open file: anything deeper counts as part of its directory.
const LEVELS: usize = 256;

impl Deletions {
    /// Examines all names that an update deletes, and what lies below them.
    pub(super) fn of(update: &Update<'_>, is_listed: bool) -> Result<Self, Error> {
        let mut deletions = Self { is_listed, ..Self::default() };
        let mut walk = TargetWalk::default();
        for (directory, name) in update.extras.iter().chain(&update.displaced) {
            update.progress.check()?;
            let target = &update.target;
            let here = walk.go(target, *directory).map_err(target.failed("read", *directory, name))?;
            let mut path = target.index.directory_path(*directory);
            join(&mut path, name);
            let found = match known_type(here, name, FileType::Unknown) {
                Err(Errno::ACCESS) => FileType::Unknown, // a non-root user may be denied
                found => found.map_err(target.failed("look at", *directory, name))?,
            };
            deletions.add(here, name, found, &path);
        }
        deletions.paths.sort_unstable();
        Ok(deletions)
    }

    fn add(&mut self, here: BorrowedFd<'_>, name: &[u8], kind: FileType, path: &[u8]) {
        self.count(kind, path);
        if kind != FileType::Directory {
            return;
        }
        let mut levels = Vec::new();
        levels.extend(list(here, name).map(|(below, names)| (below, names, path.len())));
        let mut path = path.to_vec();
        while let Some((at, names, len)) = levels.last_mut() {
            path.truncate(*len);
            let Some((name, listed)) = names.pop() else {
                levels.pop();
                continue;
            };
            join(&mut path, &name);
            // It is deleted in any case.
            let kind = known_type(at.as_fd(), &name, listed).unwrap_or(FileType::Unknown);
            self.count(kind, &path);
            if kind == FileType::Directory && levels.len() < LEVELS {
                let at = levels.last().and_then(|(at, ..)| list(at.as_fd(), &name));
                levels.extend(at.map(|(below, names)| (below, names, path.len())));
            }
        }
    }

    fn count(&mut self, kind: FileType, path: &[u8]) {
        self.census.add(kind);
        if self.is_listed {
            let mut path = path.to_vec();
            if kind == FileType::Directory {
                path.push(b'/');
            }
            self.paths.push(path);
        }
    }
}

type Names = Vec<(Vec<u8>, FileType)>;

/// Lists a directory. A non-root user may be denied; it is deleted in any case.
fn list(here: BorrowedFd<'_>, name: &[u8]) -> Option<(OwnedFd, Names)> {
    let below = open_on_same_device(here, name, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).ok()?;
    let names = names_in(below.as_fd()).ok()?;
    Some((below, names))
}

fn join(path: &mut Vec<u8>, name: &[u8]) {
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend(name);
}
