//! Objects that the recipes of a base make, kept in a file without a name.

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use sealift_format::num::size;
use sealift_format::{Object, Row};

use crate::Error;
use crate::fs::unnamed::unnamed_file;

/// Objects that were made once and are read again and again, since to make one takes much longer than to read it.
#[derive(Debug)]
pub(crate) struct MadeSpool {
    file: File,
    /// Where the file is, for messages.
    folder: PathBuf,
    /// Threads that make an object.
    pub(crate) jobs: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Where each object lies.
    places: HashMap<Row<Object>, Range<u64>>,
    end: u64,
}

impl MadeSpool {
    /// Makes the file in `folder`; objects are made on `jobs` threads.
    ///
    /// # Errors
    /// Returns an error if no file can be made there.
    pub(crate) fn new(folder: &Path, jobs: usize) -> Result<Self, Error> {
        let file = unnamed_file(folder).map_err(|error| Error::io("create a file in", folder, error))?;
        Ok(Self { file, folder: folder.to_owned(), jobs, state: Mutex::default() })
    }

    /// Returns where an object lies, if it was kept.
    pub(crate) fn place(&self, object: Row<Object>) -> Option<Range<u64>> {
        self.state.lock().places.get(&object).cloned()
    }

    /// Returns a place for so many bytes.
    pub(crate) fn reserve(&self, len: u64) -> Range<u64> {
        let end = &mut self.state.lock().end;
        let start = *end;
        *end += len;
        start..*end
    }

    /// Writes bytes at a place that was reserved.
    ///
    /// # Errors
    /// Returns an error if they cannot be written, for example because the disk is full.
    pub(crate) fn write(&self, bytes: &[u8], place: u64) -> Result<(), Error> {
        let written = self.file.write_all_at(bytes, place);
        written.map_err(|error| Error::io("write to a file in", &self.folder, error))
    }

    /// Makes an object known, all of whose bytes were written.
    pub(crate) fn keep(&self, object: Row<Object>, place: Range<u64>) {
        self.state.lock().places.entry(object).or_insert(place);
    }

    /// Appends the bytes of a range of what lies at a place to `out`.
    ///
    /// # Errors
    /// Returns an error if they cannot be read.
    pub(crate) fn read(&self, place: &Range<u64>, range: &Range<u64>, out: &mut Vec<u8>) -> Result<(), Error> {
        let from = place.start.saturating_add(range.start).min(place.end);
        let to = place.start.saturating_add(range.end).clamp(from, place.end);
        let start = out.len();
        out.resize(start.saturating_add(size(to - from)), 0);
        let read = self.file.read_exact_at(out.get_mut(start..).unwrap_or_default(), from);
        read.map_err(|error| Error::io("read a file in", &self.folder, error))
    }
}
