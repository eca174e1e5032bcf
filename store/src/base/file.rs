//! A bundle in a file, with random access to its chunks.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use sealift_format::num;
use sealift_format::{Bundle, Error as FormatError};
use sealift_verify::content::check_stored;

use crate::{Error, Input};

/// A bundle in a file.
#[derive(Debug)]
pub struct BundleFile {
    file: File,
    path: PathBuf,
    /// The opened bundle.
    pub bundle: Bundle,
}

impl BundleFile {
    /// Wraps the bundle that was opened from `input`, which must be a file.
    pub fn new(input: &Input, bundle: Bundle) -> Result<Self, Error> {
        let path = input.path().to_owned();
        let Some(file) = input.file() else {
            return Err(Error::Usage(format!("{}: it is read at many places, and this is a pipe", path.display())));
        };
        let file = file.try_clone().map_err(|error| Error::io("read", &path, error))?;
        Ok(Self { file, path, bundle })
    }

    /// Reads a chunk's stored bytes and compares them with its digest.
    pub fn read_checked(&self, number: u32, stored: &mut Vec<u8>) -> Result<(), Error> {
        self.read_stored(number, stored)?;
        let chunk = &self.bundle.layout.chunks[num::at(number)];
        check_stored(number, chunk, stored).map_err(|error| Error::from(error).of_bundle(&self.path))
    }

    /// Reads a chunk's stored bytes without checking them.
    pub fn read_stored(&self, number: u32, stored: &mut Vec<u8>) -> Result<(), Error> {
        let chunk = &self.bundle.layout.chunks[usize::try_from(number).unwrap_or(usize::MAX)];
        stored.resize(usize::try_from(chunk.stored_len).unwrap_or(usize::MAX), 0);
        let start = self.bundle.head.chunks_at() + chunk.offset;
        self.file.read_exact_at(stored, start).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                let cut = FormatError::Truncated { len: start, expected: self.bundle.head.file_len() };
                Error::from(cut).of_bundle(&self.path)
            }
            _ => Error::io("read", &self.path, error),
        })
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}
