//! The volumes of a bundle on several media in turn, each of which is read once, as a pipe (volumes 4).

use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sealift_format::{Head, Volume, num};

use super::volume::OpenVolume;
use super::volumes::named_volumes;
use crate::Error;
use crate::error::VolumeFault;
use crate::fs::found::is_directory;

/// The volume that is wanted next.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WantedVolume {
    /// Its number.
    pub number: u16,
    /// How many volumes there are; `None` before the first one was read.
    pub count: Option<u16>,
    /// Name and version of the bundle; `None` before the first one was read.
    pub identity: Option<(String, u64)>,
}

impl WantedVolume {
    /// Returns what it is, for people: `os version 7, volume 2 of 5`.
    #[must_use]
    pub fn label(&self) -> String {
        match (&self.identity, self.count) {
            (Some((name, version)), Some(count)) => {
                format!("{name} version {version}, volume {} of {count}", self.number)
            }
            _ => format!("volume {} of the bundle", self.number),
        }
    }
}

/// Has the next medium put in place. It gets what is wanted, and after a first attempt what is wrong with what is there.
pub type ChangeMedium = Box<dyn FnMut(&WantedVolume, Option<&Error>) -> Result<(), Error> + Send>;

/// Reads the volumes in order from one path: a directory, such as where a drive is mounted, or a file.
pub struct Media {
    path: PathBuf,
    change: ChangeMedium,
    /// The volume that is read. Its file is closed while the medium is changed: an open file keeps a medium mounted.
    current: Option<OpenVolume>,
    /// What was read before it.
    done: Option<Done>,
    /// Where reading goes on, in bytes from the bundle's start.
    at: u64,
}

/// A volume that was read.
struct Done {
    header: Volume,
    head: Arc<Head>,
}

impl std::fmt::Debug for Media {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Media").field("path", &self.path).field("at", &self.at).finish_non_exhaustive()
    }
}

impl Media {
    /// Reads from `path`, and has `change` put the next medium there for each volume that is not.
    #[must_use]
    pub fn new(path: &Path, change: ChangeMedium) -> Self {
        Self { path: path.to_owned(), change, current: None, done: None, at: 0 }
    }

    fn wanted(&self) -> WantedVolume {
        match &self.done {
            None => WantedVolume { number: 1, count: None, identity: None },
            Some(Done { header, head }) => {
                let identity = &head.root().identity;
                WantedVolume {
                    number: header.number.saturating_add(1),
                    count: Some(header.count),
                    identity: Some((identity.name.clone(), identity.version)),
                }
            }
        }
    }

    /// Opens the next volume, after the medium was changed as often as that takes.
    fn open_next(&mut self) -> Result<(), Error> {
        if let Some(current) = self.current.take() {
            self.done = Some(Done { header: current.header().clone(), head: current.shared_head() });
        }
        let wanted = self.wanted();
        let mut was_changed = false;
        loop {
            match self.find(&wanted) {
                Ok(volume) => {
                    self.current = Some(volume);
                    return Ok(());
                }
                Err(error) => {
                    (self.change)(&wanted, Some(&error).filter(|_| was_changed))?;
                    was_changed = true;
                }
            }
        }
    }

    /// Returns the wanted volume, if it is there.
    fn find(&self, wanted: &WantedVolume) -> Result<OpenVolume, Error> {
        let paths = match is_directory(&self.path)? {
            true => named_volumes(&self.path)?,
            false => vec![self.path.clone()],
        };
        let mut found = None;
        for path in paths {
            let Some(volume) = OpenVolume::open(&path)? else { continue };
            let is_of_set = self
                .done
                .as_ref()
                .is_none_or(|done| done.header.count == volume.header().count && *done.head == *volume.head());
            if !is_of_set || volume.header().number != wanted.number {
                continue;
            }
            if let Some(other) = found.replace(volume) {
                return Err(self.several(&other, &path));
            }
        }
        let Some(volume) = found else {
            return Err(Error::unexpected(&self.path, format!("does not have {}", wanted.label())));
        };
        volume.check_len()?;
        let begins = self.done.as_ref().is_none_or(|done| done.header.end() == volume.header().offset);
        match begins {
            true => Ok(volume),
            false => Err(Error::volumes(volume.path(), VolumeFault::Gap { label: volume.label() })),
        }
    }

    fn several(&self, one: &OpenVolume, path: &Path) -> Error {
        let problem =
            format!("has two volumes {}: {} and {}", one.header().number, one.path().display(), path.display());
        Error::unexpected(&self.path, problem)
    }
}

impl Read for Media {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(volume) = &self.current {
                let end = volume.header().end();
                if self.at < end {
                    let len = num::up_to(end - self.at, buffer.len());
                    let part = buffer.get_mut(..len).unwrap_or_default();
                    let got = volume.file.read_at(part, volume.place(self.at))?;
                    self.at += num::wide(got);
                    return Ok(got);
                }
                if end == volume.header().file_len {
                    return Ok(0);
                }
            }
            self.open_next().map_err(io::Error::other)?;
        }
    }
}
