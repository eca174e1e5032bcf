//! What a device keeps between bundles: the floor of each name, and the newest `created` that it accepted.
//!
//! ```text
//! DIR/lock           taken by whoever writes
//! DIR/floors/NAME    "sealift floor 1", then VERSION KEY...
//! DIR/accepted       "sealift accepted 1", then SECONDS KEY...
//! ```
//!
//! A file that cannot be read or is not of its form is an error: whoever could make it disappear so could go back to an old version.

use std::collections::BTreeSet;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use sealift_format::name::is_bundle_name;
use sealift_verify::trust::{Claims, FloorRecord, Floors, RevocationList, Verdict};

use super::records::{self, Record};
use super::{Places, TrustOptions, durable};
use crate::Error;

const FLOOR: &str = "sealift floor 1";
const ACCEPTED: &str = "sealift accepted 1";

/// The folder of the state. One that does not exist is the empty state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    dir: PathBuf,
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
    /// The file cannot be read or is not of its form.
    pub fn floors(&self, name: &str) -> Result<Floors, Error> {
        let path = self.floor_path(name)?;
        let records = read::<u64>(&path, FLOOR)?;
        let floor = |record: Record<u64>| FloorRecord { version: record.number, keys: record.keys };
        Ok(Floors::new(records.into_iter().map(floor).collect()))
    }

    /// Returns the names that have a floor, in order.
    ///
    /// # Errors
    /// The folder cannot be read, or holds something else.
    pub fn names(&self) -> Result<Vec<String>, Error> {
        let folder = self.dir.join("floors");
        let failed = |error| Error::io("read", &folder, error);
        let entries = match std::fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(failed)?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(failed)?;
            match entry.file_name().into_string() {
                // No name begins with a dot: such a file is what a killed run left.
                Ok(name) if name.starts_with('.') => {}
                Ok(name) if is_bundle_name(&name) => names.push(name),
                _ => return Err(Error::State { path: entry.path(), problem: "it is no bundle's name".to_owned() }),
            }
        }
        names.sort();
        Ok(names)
    }

    /// Returns the newest `created` that was accepted under a key that is not revoked since: a thief's date must not expire
    /// everything for ever.
    ///
    /// # Errors
    /// The file cannot be read or is not of its form.
    pub fn newest_created(&self, revoked: &RevocationList) -> Result<Option<i64>, Error> {
        let records = read::<i64>(&self.dir.join("accepted"), ACCEPTED)?;
        let stands = |record: &Record<i64>| !record.keys.iter().all(|key| revoked.contains_id(*key));
        Ok(records.iter().filter(|record| stands(record)).map(|record| record.number).max())
    }

    /// Raises the floor of the name and the newest `created`. An unsigned bundle raises nothing.
    ///
    /// # Errors
    /// The present state cannot be read, or the new one written.
    pub fn commit(&self, claims: &Claims, verdict: &Verdict) -> Result<(), Error> {
        let keys: BTreeSet<_> = verdict.signers.iter().map(|signer| signer.key).collect();
        if verdict.unsigned || keys.is_empty() {
            return Ok(());
        }
        self.create()?;
        let _lock = self.lock()?;
        // Read again under the lock: another run may have raised it since this one judged.
        let before = self.floors(&claims.name)?;
        let after = before.after(claims, verdict);
        if after != before {
            let record = |floor: &FloorRecord| Record { number: floor.version, keys: floor.keys.clone() };
            let records: Vec<_> = after.records().iter().map(record).collect();
            let partial = self.dir.join("floors/.partial");
            durable::replace(&self.floor_path(&claims.name)?, &partial, records::encode(FLOOR, &records).as_bytes())?;
        }
        self.accept(claims.created, keys)
    }

    fn accept(&self, created: i64, keys: BTreeSet<sealift_verify::trust::KeyId>) -> Result<(), Error> {
        let path = self.dir.join("accepted");
        let mut records = read::<i64>(&path, ACCEPTED)?;
        match records.iter_mut().find(|record| record.keys == keys) {
            Some(record) if record.number >= created => return Ok(()),
            Some(record) => record.number = created,
            None => records.push(Record { number: created, keys }),
        }
        durable::replace(&path, &self.dir.join(".accepted"), records::encode(ACCEPTED, &records).as_bytes())
    }

    /// Forgets the floor of `name`, and returns what it was.
    ///
    /// # Errors
    /// The folder cannot be written. A file that is not of its form is forgotten too: this is the way out.
    pub fn reset_floor(&self, name: &str) -> Result<Option<Floors>, Error> {
        let path = self.floor_path(name)?;
        if !path.exists() {
            return Ok(None);
        }
        let _lock = self.lock()?;
        let before = match self.floors(name) {
            Err(Error::State { .. }) => Floors::default(),
            other => other?,
        };
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(|error| Error::io("remove", &path, error))?,
        }
        durable::sync_parent(&path)?;
        Ok(Some(before))
    }

    fn floor_path(&self, name: &str) -> Result<PathBuf, Error> {
        // The parser saw to it; a caller's own word may have a slash in it.
        if is_bundle_name(name) {
            Ok(self.dir.join("floors").join(name))
        } else {
            Err(Error::Usage(format!("{name:?} is not a bundle's name")))
        }
    }

    /// Makes the folders, for nobody else's eyes.
    fn create(&self) -> Result<(), Error> {
        let floors = self.dir.join("floors");
        if floors.is_dir() {
            return Ok(());
        }
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&floors);
        made.map_err(|error| Error::io("create", &floors, error))?;
        durable::sync_parent(&floors)?;
        durable::sync_parent(&self.dir)
    }

    /// Waits for other runs; the lock ends with the file that is returned.
    fn lock(&self) -> Result<File, Error> {
        let path = self.dir.join("lock");
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let file = file.map_err(|error| Error::io("create", &path, error))?;
        rustix::io::retry_on_intr(|| flock(&file, FlockOperation::LockExclusive))
            .map_err(|error| Error::io("lock", &path, error))?;
        Ok(file)
    }
}

fn read<T: std::fmt::Display + std::str::FromStr>(path: &Path, title: &str) -> Result<Vec<Record<T>>, Error> {
    match std::fs::read(path) {
        Ok(bytes) => records::parse(title, &bytes).map_err(|problem| Error::State { path: path.to_owned(), problem }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Error::io("read", path, error)),
    }
}

/// Forgets the floor of `name` (`trust reset NAME`), and returns what it was; `None` where there was none.
///
/// # Errors
/// Nothing says where the state is, or it cannot be written.
pub fn reset_floor(options: &TrustOptions, name: &str) -> Result<Option<Floors>, Error> {
    Store::at(Places::of_this_process().state(options)?).reset_floor(name)
}
