//! What a bundle is read from, if it can be read at any offset.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt as _;

use rustix::fs::Advice;
use sealift_format::num;

/// The bytes of a bundle, which several threads read at any offset.
#[derive(Debug)]
pub struct Origin {
    file: File,
    len: u64,
}

impl Origin {
    /// A file of `len` bytes.
    pub(crate) fn file(file: File, len: u64) -> Self {
        Self { file, len }
    }

    /// Returns the number of bytes.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "nobody asks whether a bundle is empty")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Reads some bytes from `offset` on, none at the end.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    /// Fills the buffer with the bytes from `offset` on.
    ///
    /// # Errors
    /// Returns the system's error, or [`ErrorKind::UnexpectedEof`] if there are fewer.
    pub fn read_exact_at(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            match self.read_at(buffer, offset) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(len) => {
                    buffer = &mut buffer[len..];
                    offset += num::wide(len);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Returns how many bytes can be read now: fewer than [`Self::len`] if the file was truncated since it was opened.
    pub(crate) fn len_now(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Tells the system how the bytes will be read: a hint, which some file systems ignore.
    pub(crate) fn advise(&self, advice: Advice) {
        let _ = rustix::fs::fadvise(&self.file, 0, None, advice);
    }
}
