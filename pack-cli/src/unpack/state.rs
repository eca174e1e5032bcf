//! What a target keeps of the bundle that it took: the head and the index, beside it.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use sealift_format::Bundle;

use super::sibling;
use crate::Error;

/// State that is written and does not have its name yet.
#[derive(Debug)]
pub(super) struct NewState {
    partial: PathBuf,
    path: PathBuf,
}

/// Writes the state of `target` beside its present one.
pub(super) fn write(target: &Path, bundle: &Bundle) -> Result<NewState, Error> {
    let partial = sibling(target, ".sealift-state-partial")?;
    if partial.exists() {
        std::fs::remove_dir_all(&partial).map_err(|error| Error::io("remove", &partial, error))?;
    }
    std::fs::create_dir(&partial).map_err(|error| Error::io("create", &partial, error))?;
    write_file(&partial.join("head"), &bundle.head.encode())?;
    write_file(&partial.join("index"), bundle.index.bytes())?;
    Ok(NewState { partial, path: sibling(target, ".sealift-state")? })
}

impl NewState {
    /// Gives the state its name.
    pub(super) fn finish(self) -> Result<(), Error> {
        if self.path.exists() {
            std::fs::remove_dir_all(&self.path).map_err(|error| Error::io("remove", &self.path, error))?;
        }
        std::fs::rename(&self.partial, &self.path).map_err(|error| Error::io("rename to", &self.path, error))
    }
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    File::create_new(path).and_then(|mut file| file.write_all(bytes)).map_err(|error| Error::io("write", path, error))
}
