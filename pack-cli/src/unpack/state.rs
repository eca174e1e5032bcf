//! What a target keeps of the bundle that it took: the head and the index, beside it.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use sealift_format::{Bundle, Error as FormatError, Head, Index, Limits, Part, Preamble, verity};

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

/// The longest head.
const HEAD_LEN_MAX: u32 = Preamble::LEN + Preamble::ROOT_LEN_MAX + Preamble::AREA_LEN_MAX;

/// Where the state of `target` is, or would be. A target's other names, such as a link to it, have none of their own.
pub(crate) fn path_of(target: &Path) -> Result<PathBuf, Error> {
    let real = std::fs::canonicalize(target).map_err(|error| Error::io("read", target, error))?;
    sibling(&real, ".sealift-state")
}

/// Reads the index that `target` keeps, if `judge` takes the head beside it: verified, then parsed.
pub(crate) fn read(
    target: &Path,
    limits: Limits,
    judge: impl FnOnce(&Head) -> Result<(), Error>,
) -> Result<Index, Error> {
    let path = path_of(target)?;
    if !path.exists() {
        return Err(Error::Usage(format!(
            "{} keeps no record of a bundle ({} is missing): give the bundle that it is to be compared with",
            target.display(),
            path.display()
        )));
    }
    let head = Head::parse(&read_file(&path.join("head"), HEAD_LEN_MAX.into())?)?;
    limits.check(head.root())?;
    judge(&head)?;
    let contents = &head.root().contents;
    let index = read_file(&path.join("index"), contents.index_len)?;
    if verity::digest(&index) != contents.index_digest {
        return Err(FormatError::Digest { part: Part::Index }.into());
    }
    Ok(Index::parse(index)?)
}

/// Reads a file of `len` bytes at most, and one more if it is longer.
fn read_file(path: &Path, len: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(len.saturating_add(1)).read_to_end(&mut bytes));
    read.map_err(|error: io::Error| Error::io("read", path, error))?;
    Ok(bytes)
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    File::create_new(path).and_then(|mut file| file.write_all(bytes)).map_err(|error| Error::io("write", path, error))
}
