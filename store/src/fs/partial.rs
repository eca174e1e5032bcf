//! Files that appear in a single rename once they are complete, and what killed runs left of such files.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, rename};
use rustix::io::Errno;

use crate::Error;
use crate::fs::confined::open_own_file;
use crate::fs::found::named_at;
use crate::fs::parent::parent_of;
use crate::fs::rename::rename_new;

/// A file that appears under its name when it is complete, and is removed if it never is.
#[derive(Debug)]
pub struct PartialFile {
    file: File,
    /// `None` once it has its name.
    path: Option<PathBuf>,
    target: PathBuf,
    replaces: bool,
}

impl PartialFile {
    /// Creates a file that is to become `target`, and replaces what is there if `replaces` is set. What killed runs left of it is removed.
    ///
    /// # Errors
    /// Returns an error if `target` exists and is not replaced, or if the file cannot be made beside it.
    pub fn create(target: &Path, replaces: bool) -> Result<Self, Error> {
        if !replaces {
            refuse_existing(target)?;
        }
        remove_stale(target)?;
        let path = partial_path(target)?;
        let file = create_locked(&path).map_err(|error| match error {
            // Names the user's file, not this one.
            Error::Io { doing, source, .. } => Error::io(doing, target, source),
            error => error,
        })?;
        Ok(Self { file, path: Some(path), target: target.to_owned(), replaces })
    }

    /// Creates the private file at `path`, which is to replace `target`. Runs exclude each other by other means.
    ///
    /// # Errors
    /// Returns an error if the file exists, or cannot be made.
    pub fn create_at(path: PathBuf, target: &Path) -> Result<Self, Error> {
        let file = File::options().write(true).create_new(true).mode(0o600).open(&path);
        let file = file.map_err(|error| match error.kind() {
            ErrorKind::ReadOnlyFilesystem => Error::io("write to", parent_of(target), error),
            _ => Error::io("create", &path, error),
        })?;
        Ok(Self { file, path: Some(path), target: target.to_owned(), replaces: true })
    }

    /// Returns the file, to write to it.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.path.as_deref().unwrap_or(&self.target)
    }

    /// Begins again with an empty file. Returns the former one, which has no name any more.
    ///
    /// # Errors
    /// Returns an error if another file cannot be made.
    pub fn begin_again(&mut self) -> Result<File, Error> {
        let path = self.path().with_extension("assembled");
        let file = create_locked(&path)?;
        if let Some(old) = self.path.replace(path) {
            let _ = std::fs::remove_file(old); // the open file keeps its data
        }
        Ok(std::mem::replace(&mut self.file, file))
    }

    /// Makes its content durable.
    ///
    /// # Errors
    /// Returns an error if that fails.
    pub fn sync(&self) -> Result<(), Error> {
        self.file.sync_all().map_err(|error| Error::io("write", &self.target, error))
    }

    /// Makes it durable, and gives it its name.
    ///
    /// # Errors
    /// Returns an error if that fails, or if the name of a file that is not replaced was taken meanwhile.
    pub fn finish(mut self) -> Result<(), Error> {
        self.sync()?;
        if let Some(path) = &self.path {
            let renamed = match self.replaces {
                true => rename(path, &self.target),
                false => rename_new(CWD, path, CWD, &self.target),
            };
            renamed.map_err(|error| match error {
                Errno::EXIST if !self.replaces => Error::Exists { path: self.target.clone() },
                error => Error::io("rename to", &self.target, error),
            })?;
        }
        self.path = None;
        sync_parent(&self.target)
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // An error cannot be reported here; its name marks the file as a leftover.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Returns `.NAME.PID.sealift-partial` beside the output: two runs do not share it.
///
/// # Errors
/// Returns an error if the path does not name a file.
fn partial_path(target: &Path) -> Result<PathBuf, Error> {
    let Some(name) = target.file_name() else {
        return Err(Error::unexpected(target, "does not name a file"));
    };
    let mut partial = std::ffi::OsString::from(".");
    partial.push(name);
    partial.push(format!(".{}.sealift-partial", std::process::id()));
    Ok(target.with_file_name(partial))
}

/// Creates such a file. Its lock, which ends with the process, distinguishes it from the remains of a killed run.
///
/// # Errors
/// Returns an error if it exists, is in use, or cannot be made.
fn create_locked(path: &Path) -> Result<File, Error> {
    let failed = |error| Error::io("create", path, error);
    let file = File::options().read(true).write(true).create_new(true).open(path).map_err(failed)?;
    file.try_lock().map_err(|error| match error {
        // Another run, which searches for unlocked leftovers, locked it first.
        TryLockError::WouldBlock => Error::Busy { path: path.to_owned() },
        TryLockError::Error(error) => Error::io("lock", path, error),
    })?;
    Ok(file)
}

/// Refuses an existing file, including a dangling symbolic link.
///
/// # Errors
/// Returns an error if there is one, or if that cannot be determined.
fn refuse_existing(target: &Path) -> Result<(), Error> {
    match named_at(target)? {
        Some(_) => Err(Error::Exists { path: target.to_owned() }),
        None => Ok(()),
    }
}

/// The result of removing the partial files beside an output.
#[derive(Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "there is no more to tell")]
pub struct Partials {
    /// Partials of killed runs that were removed.
    pub removed: u64,
    /// A partial file that a run is writing.
    pub in_use: Option<PathBuf>,
}

/// Removes what killed runs left of `target`.
pub fn remove_stale(target: &Path) -> Result<Partials, Error> {
    let mut partials = Partials::default();
    let (Some(name), parent) = (target.file_name(), parent_of(target)) else { return Ok(partials) };
    let prefix = [b".", name.as_bytes(), b"."].concat();
    let Ok(entries) = std::fs::read_dir(parent) else { return Ok(partials) }; // creating the file reports this
    for entry in entries.flatten() {
        let name = entry.file_name();
        let rest = name.as_bytes().strip_prefix(&prefix[..]).unwrap_or_default();
        let number = rest.strip_suffix(b".sealift-partial").or_else(|| rest.strip_suffix(b".assembled"));
        if !number.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit)) {
            continue;
        }
        let path = target.with_file_name(&name);
        let Ok(file) = open_own_file(&path) else { continue };
        match file.try_lock() {
            Ok(()) => {
                std::fs::remove_file(&path).map_err(|error| Error::io("remove", &path, error))?;
                partials.removed += 1;
            }
            Err(TryLockError::WouldBlock) => partials.in_use = Some(path),
            Err(TryLockError::Error(_)) => {}
        }
    }
    Ok(partials)
}

/// Makes the name of `target` durable.
///
/// # Errors
/// Returns an error if its directory cannot be synced.
pub fn sync_parent(target: &Path) -> Result<(), Error> {
    let synced = File::open(parent_of(target)).and_then(|parent| parent.sync_all());
    synced.map_err(|error| Error::io("sync the directory of", target, error))
}
