//! A folder for the demo, which goes with it.

use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use sealift::Error;

/// A folder that is removed when it is dropped.
#[derive(Debug)]
pub(super) struct Scratch {
    path: PathBuf,
    /// Bytes that were free when it was made.
    pub(super) free: u64,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

impl Scratch {
    /// Makes a folder with `needed` bytes of room below `wish`, or else below the first of the usual places that has them.
    ///
    /// # Errors
    /// None has the room, or the folder cannot be made.
    pub(super) fn create(wish: Option<&Path>, needed: u64) -> Result<Self, Error> {
        let places = wish.map_or_else(usual, |wish| vec![wish.to_owned()]);
        let mut roomiest: Option<(PathBuf, u64)> = None;
        for place in places {
            let free = free_bytes(&place)?;
            if free >= needed {
                return Self::below(&place, free);
            }
            if roomiest.as_ref().is_none_or(|(_, most)| free > *most) {
                roomiest = Some((place, free));
            }
        }
        match roomiest {
            Some((path, free)) => Err(Error::NoSpace { path, needed, free }),
            None => Err(Error::Usage("no directory to work in: give --scratch DIR".into())),
        }
    }

    fn below(place: &Path, free: u64) -> Result<Self, Error> {
        let path = place.join(format!("sealift-demo-{}", std::process::id()));
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|source| Error::Io { doing: "create", path: path.clone(), source })?;
        Ok(Self { path, free })
    }

    /// The folder.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A file or folder in it.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Waits until the medium has everything, so that nobody pays for what another wrote.
    pub(super) fn settle(&self) -> Result<(), Error> {
        let failed = |source| Error::Io { doing: "sync", path: self.path.clone(), source };
        let folder = std::fs::File::open(&self.path).map_err(failed)?;
        rustix::fs::syncfs(folder).map_err(|error| failed(error.into()))
    }
}

fn usual() -> Vec<PathBuf> {
    let mut places = vec![std::env::temp_dir(), "/tmp".into(), "/var/tmp".into()];
    places.extend(std::env::current_dir());
    places.retain(|place| place.is_dir());
    places
}

fn free_bytes(place: &Path) -> Result<u64, Error> {
    let room = rustix::fs::statvfs(place);
    let room = room.map_err(|error| Error::Io { doing: "look at", path: place.to_owned(), source: error.into() })?;
    Ok(room.f_bavail.saturating_mul(room.f_frsize))
}

/// Removes a folder, in which the demo's own copy of a tree may have directories that even their owner may not write to.
pub(super) fn remove(path: &Path) {
    if std::fs::remove_dir_all(path).is_ok() {
        return;
    }
    let mut pending = vec![path.to_owned()];
    while let Some(directory) = pending.pop() {
        // What cannot be opened cannot be removed either: the next attempt leaves it.
        let _ = std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o700));
        let Ok(entries) = std::fs::read_dir(&directory) else { continue };
        for entry in entries.flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                pending.push(entry.path());
            }
        }
    }
    let _ = std::fs::remove_dir_all(path);
}
