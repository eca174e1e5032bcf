//! What a device keeps between bundles: for each name its floor, and the newest `created` that was borne out.
//!
//! ```text
//! DIR/lock           taken by whoever writes
//! DIR/floors/NAME    "sealift floor 2 NAME", then VERSION CREATED KEY..., then "check BLAKE3" of all before
//! ```
//!
//! A file that cannot be read or is not of its form is an error: whoever could make it disappear so could go back to an old version.

use std::path::{Path, PathBuf};

use sealift_format::name::is_bundle_name;
use sealift_store::{StateDir, StateLock, check_may_create};
use sealift_verify::trust::Floors;

use super::{Places, TrustOptions, records};
use crate::Error;

const FLOORS: &str = "floors";

/// The folder of the state. One that does not exist is the empty state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    dir: PathBuf,
}

/// The state, open and known to be writable.
#[derive(Debug)]
pub(super) struct Held {
    dir: StateDir,
    floors: StateDir,
}

impl Store {
    /// The state in `dir`.
    #[must_use]
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// The folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns what was committed for `name`.
    ///
    /// # Errors
    /// The file cannot be read or is not of its form, or another user could change it.
    pub fn floors(&self, name: &str) -> Result<Floors, Error> {
        check_name(name)?;
        match self.folder()? {
            Some(folder) => read(&folder, name),
            None => Ok(Floors::default()),
        }
    }

    /// Returns the names that have a floor, in order.
    ///
    /// # Errors
    /// The folder cannot be read, or holds something else.
    pub fn names(&self) -> Result<Vec<String>, Error> {
        let Some(folder) = self.folder()? else { return Ok(Vec::new()) };
        let name = |bytes: Vec<u8>| match String::from_utf8(bytes) {
            Ok(name) if is_bundle_name(&name) => Ok(name),
            other => {
                let name = other.unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
                let problem = "it is no bundle's name".to_owned();
                Err(Error::State { path: folder.path().join(name), problem })
            }
        };
        folder.names()?.into_iter().map(name).collect()
    }

    /// Forgets what was committed for `name`, and returns what it was.
    ///
    /// # Errors
    /// The folder cannot be written. A file that is not of its form is forgotten too: this is the way out.
    pub fn reset_floor(&self, name: &str) -> Result<Option<Floors>, Error> {
        check_name(name)?;
        let Some(dir) = StateDir::open(&self.dir)? else { return Ok(None) };
        let Some(folder) = dir.folder(FLOORS)? else { return Ok(None) };
        let _lock = dir.lock()?;
        let before = match read(&folder, name) {
            Err(Error::State { .. }) => Floors::default(),
            other => other?,
        };
        Ok(folder.remove(name)?.then_some(before))
    }

    /// Sees to it that nobody else could change the state.
    ///
    /// # Errors
    /// Another user could, or it cannot be opened.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.folder().map(|_| ())
    }

    /// Makes the state where there is none, and sees to it that it can be written.
    ///
    /// # Errors
    /// It cannot, or another user could change it.
    pub(super) fn hold(&self) -> Result<Held, Error> {
        let dir = StateDir::open_or_create(&self.dir)?;
        let floors = dir.folder_or_create(FLOORS)?;
        let _lock = dir.lock()?;
        floors.check_writable()?;
        Ok(Held { dir, floors })
    }

    /// The same as far as it can be known without writing.
    ///
    /// # Errors
    /// As [`Store::hold`].
    pub(super) fn check_may_hold(&self) -> Result<(), Error> {
        check_may_create(&self.dir)?;
        self.folder()?.map_or(Ok(()), |folder| Ok(folder.check_may_write()?))
    }

    fn folder(&self) -> Result<Option<StateDir>, Error> {
        StateDir::open(&self.dir)?.map_or(Ok(None), |dir| Ok(dir.folder(FLOORS)?))
    }
}

impl Held {
    /// Waits for other runs, which may raise floors until then.
    pub(super) fn lock(&self) -> Result<StateLock, Error> {
        let lock = self.dir.lock()?;
        self.dir.check_same()?;
        Ok(lock)
    }

    pub(super) fn floors(&self, name: &str) -> Result<Floors, Error> {
        read(&self.floors, name)
    }

    /// Puts `floors` in the place of what was committed for `name`, durably. Under the lock.
    pub(super) fn replace(&self, name: &str, floors: &Floors) -> Result<(), Error> {
        Ok(self.floors.replace(name, &records::encode(name, floors.records()))?)
    }
}

/// The parser saw to it; a caller's own word may have a slash in it.
fn check_name(name: &str) -> Result<(), Error> {
    if is_bundle_name(name) { Ok(()) } else { Err(Error::Usage(format!("{name:?} is not a bundle's name"))) }
}

fn read(folder: &StateDir, name: &str) -> Result<Floors, Error> {
    let damaged = |problem: String| Error::State {
        path: folder.path().join(name),
        problem: format!("{problem}; `sealift trust reset {name}` forgets it, and any version is taken then"),
    };
    match folder.read(name) {
        Ok(None) => Ok(Floors::default()),
        Ok(Some(text)) => records::parse(name, &text).map(Floors::new).map_err(damaged),
        Err(sealift_store::Error::Damaged { problem, .. }) => Err(damaged(problem)),
        Err(error) => Err(error.into()),
    }
}

/// Forgets the floor of `name` (`trust reset NAME`), and returns what it was; `None` where there was none.
///
/// # Errors
/// Nothing says where the state is, or it cannot be written.
pub fn reset_floor(options: &TrustOptions, name: &str) -> Result<Option<Floors>, Error> {
    Store::at(Places::of_this_process().state(options)?).reset_floor(name)
}
