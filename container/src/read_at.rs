//! Bytes that can be read at any offset: a file, a device, bytes in memory, or a member of another container.

#[cfg(unix)]
use std::fs::File;
use std::io::{self, Read};

use sealift_format::num::{self, wide};

/// Bytes with random access, whose number does not change.
pub trait ReadAt: Sync {
    /// Returns the number of bytes.
    ///
    /// # Errors
    /// Returns an error if the file or device does not tell.
    fn byte_len(&self) -> io::Result<u64>;

    /// Fills `buffer` with the bytes from `offset` on.
    ///
    /// # Errors
    /// Returns an error if they cannot be read, or if they extend beyond the end.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
}

#[cfg(unix)]
impl ReadAt for File {
    fn byte_len(&self) -> io::Result<u64> {
        // A block device has no length in its inode.
        let mut file = self;
        io::Seek::seek(&mut file, io::SeekFrom::End(0))
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, buffer, offset)
    }
}

impl ReadAt for &[u8] {
    fn byte_len(&self) -> io::Result<u64> {
        Ok(wide(self.len()))
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let part = usize::try_from(offset).ok().and_then(|start| self.get(start..)?.get(..buffer.len()));
        buffer.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// A range of other bytes, such as the partition in which a file system lies.
pub struct Window<'a> {
    bytes: &'a dyn ReadAt,
    start: u64,
    len: u64,
}

impl<'a> Window<'a> {
    /// Returns the `len` bytes from `start` on; fewer if there are not as many.
    ///
    /// # Errors
    /// Returns an error if the number of all bytes is not known.
    pub fn new(bytes: &'a dyn ReadAt, start: u64, len: u64) -> io::Result<Self> {
        let rest = bytes.byte_len()?.saturating_sub(start);
        Ok(Self { bytes, start, len: len.min(rest) })
    }
}

impl ReadAt for Window<'_> {
    fn byte_len(&self) -> io::Result<u64> {
        Ok(self.len)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let end = offset.checked_add(wide(buffer.len())).filter(|end| *end <= self.len);
        end.ok_or(io::ErrorKind::UnexpectedEof)?;
        self.bytes.read_exact_at(buffer, self.start + offset)
    }
}

/// Reads a range of bytes from its start to its end.
pub(super) struct Stream<'a> {
    bytes: &'a dyn ReadAt,
    at: u64,
    end: u64,
}

impl<'a> Stream<'a> {
    pub(super) fn new(bytes: &'a dyn ReadAt, at: u64, len: u64) -> Self {
        Self { bytes, at, end: at.saturating_add(len) }
    }
}

impl Read for Stream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = num::up_to(self.end - self.at, buffer.len());
        let Some(part) = buffer.get_mut(..len) else { return Ok(0) };
        self.bytes.read_exact_at(part, self.at)?;
        self.at += wide(len);
        Ok(len)
    }
}
