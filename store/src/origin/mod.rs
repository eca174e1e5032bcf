//! What a bundle is read from, if it can be read at any offset.

mod address;
pub(crate) mod copies;
#[cfg(feature = "http")]
mod http;
mod media;
#[cfg(not(feature = "http"))]
mod no_http;
mod volume;
mod volumes;

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rustix::fs::Advice;
use sealift_format::{Chunk, num};

use crate::{Error, Progress};
use copies::{Copies, CopyStats};
pub(crate) use http::Patience;
use http::{Found, Http};
#[cfg(not(feature = "http"))]
use no_http as http;

pub use address::{address_beside, is_address, without_secrets};
pub use media::{ChangeMedium, Media, WantedVolume};
pub use volume::OpenVolume;
pub use volumes::{VolumeSet, by_set, has_only_volumes, named_recovery, named_volumes};

/// The bytes of a bundle, which several threads read at any offset.
#[derive(Debug)]
pub struct Origin(Bytes);

/// Where the bytes are.
#[derive(Debug)]
enum Bytes {
    /// In a file of a length.
    File(File, u64),
    /// In several copies of one file.
    Copies(Box<Copies>),
    /// In the volumes that it was split into.
    Volumes(VolumeSet),
    /// On a server.
    Http(Http),
}

/// What is at an address.
pub(crate) enum At {
    /// A file that is read at any offset.
    Origin(Origin),
    /// A file that the server sends only as a whole.
    Pipe(Box<dyn Read + Send>),
}

impl Origin {
    /// A file of `len` bytes.
    pub(crate) fn file(file: File, len: u64) -> Self {
        Self(Bytes::File(file, len))
    }

    /// Opens an address.
    pub(crate) fn at(address: &Path, patience: Patience) -> io::Result<At> {
        match Http::open(&address.to_string_lossy(), patience)? {
            Found::Ranges(http) => Ok(At::Origin(Self(Bytes::Http(http)))),
            Found::Whole(pipe) => Ok(At::Pipe(pipe)),
        }
    }

    /// Several copies of one bundle.
    fn of_copies(copies: Copies) -> Self {
        Self(Bytes::Copies(Box::new(copies)))
    }

    /// The volumes of a bundle.
    pub(crate) fn volumes(volumes: VolumeSet) -> Self {
        Self(Bytes::Volumes(volumes))
    }

    /// What was opened at `path`: a bundle's file, a volume with the others beside it, or a directory with the volumes of one bundle. `None` for
    /// anything else, which is read as a pipe.
    ///
    /// # Errors
    /// Returns an error if it cannot be read, or if the volumes are not those of one bundle.
    pub(crate) fn of(path: &Path, file: &File) -> Result<Option<Self>, Error> {
        let failed = |error| Error::io("read", path, error);
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            return VolumeSet::in_directory(path).map(Self::volumes).map(Some);
        }
        if !metadata.is_file() {
            return Ok(None);
        }
        let file = file.try_clone().map_err(failed)?;
        let copy = file.try_clone().map_err(failed)?;
        Ok(Some(match OpenVolume::of(path, copy)? {
            Some(volume) => Self::volumes(VolumeSet::of(volume)?),
            None => Self::file(file, metadata.len()),
        }))
    }

    /// Returns the volumes, if it was split.
    #[must_use]
    pub fn volume_set(&self) -> Option<&VolumeSet> {
        match &self.0 {
            Bytes::Volumes(volumes) => Some(volumes),
            Bytes::File(..) | Bytes::Copies(_) | Bytes::Http(_) => None,
        }
    }

    /// Returns the number of bytes.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "nobody asks whether a bundle is empty")]
    pub fn len(&self) -> u64 {
        match &self.0 {
            Bytes::File(_, len) => *len,
            Bytes::Copies(copies) => copies.len(),
            Bytes::Volumes(volumes) => volumes.len(),
            Bytes::Http(http) => http.len(),
        }
    }

    /// Reads some bytes from `offset` on, none at the end.
    ///
    /// # Errors
    /// Returns the system's error, or what is wrong with a server.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        match &self.0 {
            Bytes::File(file, _) => file.read_at(buffer, offset),
            Bytes::Copies(copies) => copies.read_at(buffer, offset),
            Bytes::Volumes(volumes) => volumes.read_at(buffer, offset),
            Bytes::Http(http) => http.read_at(buffer, offset),
        }
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

    /// Reads the stored bytes of a chunk. The copy's number that is returned is for [`Self::read_again`].
    pub(crate) fn read_chunk(&self, stored: &mut [u8], offset: u64) -> (usize, io::Result<()>) {
        match &self.0 {
            Bytes::File(..) | Bytes::Volumes(_) | Bytes::Http(_) => (0, self.read_exact_at(stored, offset)),
            Bytes::Copies(copies) => copies.read_chunk(stored, offset),
        }
    }

    /// Reads the stored bytes of a chunk that a copy did not give as they should be, from another copy that has them. Returns whether there is one;
    /// not if the bytes that were read match their digest, so that the fault is elsewhere. `read` is how reading them ended.
    pub(crate) fn read_again(
        &self,
        stored: &mut [u8],
        offset: u64,
        digest: &[u8; 32],
        (failed, read): (usize, &io::Result<()>),
    ) -> bool {
        let Bytes::Copies(copies) = &self.0 else { return false };
        if read.is_ok() && blake3::hash(stored).as_bytes() == digest {
            return false;
        }
        copies.note(failed, offset..offset.saturating_add(num::wide(stored.len())), read);
        copies.read_again(stored, offset, digest, failed)
    }

    /// Reads the stored bytes of a chunk. Only if there are several copies, these are compared with the digest, so that the chunk is read from one that
    /// has it whole; whoever uses the bytes has to check them.
    ///
    /// # Errors
    /// Returns the system's error, or [`ErrorKind::UnexpectedEof`] if there are fewer.
    pub(crate) fn read_best(&self, stored: &mut [u8], offset: u64, digest: &[u8; 32]) -> io::Result<()> {
        let (copy, read) = self.read_chunk(stored, offset);
        match self.read_again(stored, offset, digest, (copy, &read)) {
            true => Ok(()),
            false => read,
        }
    }

    /// Returns whether it is several copies of one bundle.
    pub(crate) fn has_copies(&self) -> bool {
        matches!(self.0, Bytes::Copies(_))
    }

    /// Returns what each copy gave, and where it is damaged; nothing if there is one file.
    #[must_use]
    pub fn copies(&self) -> Vec<CopyStats> {
        match &self.0 {
            Bytes::File(..) | Bytes::Volumes(_) | Bytes::Http(_) => Vec::new(),
            Bytes::Copies(copies) => copies.stats(),
        }
    }

    /// Reads what no one has read of the copies yet, so that [`Self::copies`] tells of all damage. `chunks` are those of the layout, all of which have
    /// been read.
    ///
    /// # Errors
    /// Returns [`Error::Cancelled`].
    pub fn examine_copies(&self, chunks: &[Chunk], jobs: usize, progress: &Progress) -> Result<(), Error> {
        match &self.0 {
            Bytes::File(..) | Bytes::Volumes(_) | Bytes::Http(_) => Ok(()),
            Bytes::Copies(copies) => copies.examine(chunks, jobs, progress),
        }
    }

    /// Says which ranges will be read, so that a server is asked for several at once.
    pub(crate) fn expect(&self, ranges: impl Iterator<Item = Range<u64>>) {
        match &self.0 {
            Bytes::Http(http) => http.expect(ranges),
            Bytes::Copies(copies) => copies.expect(ranges),
            Bytes::File(..) | Bytes::Volumes(_) => {}
        }
    }

    /// Returns how many requests of servers it takes to read what is expected, with those that were sent already; `None` if there is no server.
    pub(crate) fn requests(&self) -> Option<u64> {
        match &self.0 {
            Bytes::Http(http) => Some(http.requests()),
            Bytes::Copies(copies) => copies.requests(),
            Bytes::File(..) | Bytes::Volumes(_) => None,
        }
    }

    /// Returns how many bytes can be read now: fewer than [`Self::len`] if a file was truncated since it was opened.
    pub(crate) fn len_now(&self) -> io::Result<u64> {
        match &self.0 {
            Bytes::File(file, _) => Ok(file.metadata()?.len()),
            Bytes::Copies(copies) => copies.len_now(),
            Bytes::Volumes(volumes) => volumes.len_now(),
            Bytes::Http(http) => Ok(http.len()),
        }
    }

    /// Tells the system how the bytes will be read: a hint, which some file systems ignore.
    pub(crate) fn advise(&self, advice: Advice) {
        match &self.0 {
            Bytes::File(file, _) => {
                let _ = rustix::fs::fadvise(file, 0, None, advice);
            }
            Bytes::Copies(copies) => copies.advise(advice),
            Bytes::Volumes(volumes) => volumes.advise(advice),
            Bytes::Http(_) => {}
        }
    }
}

/// Reads at most `limit` bytes of the file at an address; `None` if there is no such file.
///
/// # Errors
/// Returns what is wrong with the server.
pub fn read_at_address(address: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    match Origin::at(address, Patience::Long) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
        Ok(At::Pipe(pipe)) => {
            pipe.take(limit).read_to_end(&mut bytes)?;
        }
        Ok(At::Origin(origin)) => {
            bytes.resize(num::size(origin.len().min(limit)), 0);
            origin.read_exact_at(&mut bytes, 0)?;
        }
    }
    Ok(Some(bytes))
}
