//! The file of an archive whose contents have been written, when only its end is missing.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use sealift_format::num::{up_to, wide};
use sealift_format::{Bundle, Ref};

use super::layout::Layout;
use crate::Error;
use crate::address::object_at;
use crate::delivery::write_all_at;
use crate::error::{ImageFault, shown};

/// The longest file that is read, in bytes.
const READ_MAX: u64 = 16 << 20;

/// A file with all contents of a tree.
pub(super) struct Written<'a> {
    pub(super) bundle: &'a Bundle,
    pub(super) tree: &'a Ref,
    pub(super) layout: &'a Layout,
    pub(super) file: &'a File,
    /// Its name in messages.
    pub(super) target: &'a Path,
}

impl Written<'_> {
    /// Writes what follows the members, and returns the archive's length.
    pub(super) fn end(&self, bytes: &[u8]) -> Result<u64, Error> {
        let len = self.layout.members_len + wide(bytes.len());
        let failed = |error| Error::io("write", self.target, error);
        write_all_at(self.file, bytes, self.layout.members_len).map_err(|error| failed(error.into()))?;
        self.file.set_len(len).map_err(failed)?;
        Ok(len)
    }

    /// Returns the error for a fault of the image in the tree.
    pub(super) fn error(&self, fault: ImageFault) -> Error {
        Error::Image { path: self.tree.name.clone().into(), fault: Box::new(fault) }
    }

    /// Returns whether the tree has a regular file.
    pub(super) fn has(&self, path: &str) -> bool {
        object_at(&self.bundle.index, self.tree, path.as_bytes()).is_some()
    }

    /// Reads a short file of the tree.
    pub(super) fn read(&self, path: &str) -> Result<Vec<u8>, Error> {
        let name = || shown(path.as_bytes());
        let object = object_at(&self.bundle.index, self.tree, path.as_bytes());
        let object = object.ok_or_else(|| self.error(ImageFault::Missing { path: name() }))?;
        let len = self.bundle.index.object(object).size;
        if len > READ_MAX {
            return Err(self.error(ImageFault::TooLong { path: name(), len, max: READ_MAX }));
        }
        let mut bytes = vec![0; up_to(len, usize::MAX)];
        // A file without content has no place.
        if let Some(offset) = self.layout.offsets(object).next() {
            let read = self.file.read_exact_at(&mut bytes, offset);
            read.map_err(|error| Error::io("read", self.target, error))?;
        }
        Ok(bytes)
    }
}
