//! One volume of a bundle, as a file.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sealift_format::volume::{front_len, stored_chunks};
use sealift_format::{Chunk, Error as FormatError, Head, Limits, Part, Volume, num};

use crate::Error;
use crate::error::VolumeFault;

/// An open volume whose header and head were read, and belong together.
#[derive(Debug)]
pub struct OpenVolume {
    path: PathBuf,
    pub(super) file: File,
    header: Volume,
    head: Arc<Head>,
}

impl OpenVolume {
    /// The ending of the names of volumes.
    pub const EXTENSION: &str = "sealift-volume";
    /// The ending of the names of recovery volumes, which lie beside them.
    pub const RECOVERY_EXTENSION: &str = "sealift-recovery";

    /// Opens a file. Returns `None` if it is no volume.
    ///
    /// # Errors
    /// Returns an error if it cannot be read, or if it begins like a volume and its header or head does not conform to the format.
    pub fn open(path: &Path) -> Result<Option<Self>, Error> {
        let file = File::open(path).map_err(|error| Error::io("read", path, error))?;
        Self::of(path, file)
    }

    /// The same for a file that is open.
    pub(super) fn of(path: &Path, file: File) -> Result<Option<Self>, Error> {
        let start = read_up_to(path, &file, 0, Volume::LEN.into())?;
        if !start.starts_with(&Volume::MAGIC) {
            return Ok(None);
        }
        let of_it = |error: FormatError| Error::from(error).of_bundle(path);
        let header = Volume::parse(&start).map_err(of_it)?;
        let len = u64::from(header.head_len.min(Head::LEN_MAX));
        let bytes = read_up_to(path, &file, Volume::LEN.into(), len)?;
        let head = header.parse_head(&bytes).map_err(of_it)?;
        Ok(Some(Self { path: path.to_owned(), file, header, head: Arc::new(head) }))
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the header.
    #[must_use]
    pub fn header(&self) -> &Volume {
        &self.header
    }

    /// Returns the bundle's head.
    #[must_use]
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Returns what the volume is, for people: `os version 7, volume 2 of 5`.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{}, volume {} of {}", self.bundle(), self.header.number, self.header.count)
    }

    /// Returns name and version of the bundle: `os version 7`.
    #[must_use]
    pub fn bundle(&self) -> String {
        bundle_label(&self.head)
    }

    /// Returns whether another volume is of the same set.
    #[must_use]
    pub fn is_of_set(&self, other: &Self) -> bool {
        self.header.count == other.header.count && self.head == other.head
    }

    /// Returns the bundle's head, to keep it when the volume is closed.
    pub(super) fn shared_head(&self) -> Arc<Head> {
        Arc::clone(&self.head)
    }

    /// Takes the head of another volume of the set in place of its own, which is equal.
    pub(super) fn share_head(&mut self, other: &Self) {
        self.head = Arc::clone(&other.head);
    }

    /// Checks that the file is as long as its header says.
    ///
    /// # Errors
    /// Returns an error if it is not, or if that cannot be determined.
    pub fn check_len(&self) -> Result<(), Error> {
        let len = self.file.metadata().map_err(|error| Error::io("read", &self.path, error))?.len();
        let (label, expected) = (self.label(), self.header.own_len(&self.head));
        match len {
            _ if len < expected => Err(Error::volumes(&self.path, VolumeFault::Truncated { label, len, expected })),
            _ if len > expected => Err(Error::volumes(&self.path, VolumeFault::Trailing { label, expected })),
            _ => Ok(()),
        }
    }

    /// Reads the chunks of the whole bundle from the layout.
    ///
    /// # Errors
    /// Returns an error if the layout is damaged or exceeds the limits, or if the volume's slice does not begin and end where chunks do.
    pub fn chunks(&self, limits: &Limits) -> Result<Vec<Chunk>, Error> {
        let of_it = |error: FormatError| Error::from(error).of_bundle(&self.path);
        limits.check(self.head.root()).map_err(of_it)?;
        let len = self.head.root().contents.layout_stored;
        let stored = read_up_to(&self.path, &self.file, self.place(self.head.head_len()), len)?;
        if num::wide(stored.len()) < len {
            self.check_len()?;
        }
        let chunks = stored_chunks(&self.head, &stored).map_err(of_it)?;
        self.header.chunks(&self.head, &chunks).map_err(of_it)?;
        Ok(chunks)
    }

    /// Checks the stored bytes of the index, if they are in this volume.
    ///
    /// # Errors
    /// Returns an error if they cannot be read or do not match their digest.
    pub fn check_index(&self) -> Result<(), Error> {
        if self.header.number != 1 {
            return Ok(());
        }
        let contents = &self.head.root().contents;
        let (mut at, end) = (self.place(front_len(&self.head)), self.place(self.head.chunks_at()));
        let mut hasher = blake3::Hasher::new();
        let mut buffer = vec![0; num::size((end - at).min(1 << 20))];
        while at < end {
            let len = num::up_to(end - at, buffer.len());
            let part = buffer.get_mut(..len).unwrap_or_default();
            self.read_exact_at(part, at)?;
            hasher.update(part);
            at += num::wide(len);
        }
        match *hasher.finalize().as_bytes() == contents.index_blake3 {
            true => Ok(()),
            false => Err(Error::from(FormatError::Digest { part: Part::Index }).of_bundle(&self.path)),
        }
    }

    /// Reads the stored bytes of a chunk in this volume's slice, without checking them.
    ///
    /// # Errors
    /// Returns an error if they cannot be read.
    pub fn read_chunk(&self, chunk: &Chunk, stored: &mut Vec<u8>) -> Result<(), Error> {
        stored.resize(num::at(chunk.stored_len), 0);
        let offset = self.head.chunks_at() + chunk.offset;
        self.read_exact_at(stored, self.place(offset))
    }

    /// Returns where a byte of the bundle that is in this volume lies in its file.
    pub(super) fn place(&self, offset: u64) -> u64 {
        match offset.checked_sub(self.header.offset) {
            Some(in_slice) => Volume::slice_at(&self.head) + in_slice,
            None => u64::from(Volume::LEN) + offset,
        }
    }

    fn read_exact_at(&self, buffer: &mut [u8], at: u64) -> Result<(), Error> {
        self.file.read_exact_at(buffer, at).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => {
                let expected = self.header.own_len(&self.head);
                Error::volumes(&self.path, VolumeFault::Truncated { label: self.label(), len: at, expected })
            }
            _ => Error::io("read", &self.path, error),
        })
    }
}

/// Returns name and version of a bundle for people.
pub(crate) fn bundle_label(head: &Head) -> String {
    let identity = &head.root().identity;
    format!("{} version {}", identity.name, identity.version)
}

/// Reads `len` bytes, or as many as there are.
fn read_up_to(path: &Path, file: &File, at: u64, len: u64) -> Result<Vec<u8>, Error> {
    let failed = |error| Error::io("read", path, error);
    let there = file.metadata().map_err(failed)?.len().saturating_sub(at);
    let mut bytes = vec![0; num::size(len.min(there))];
    file.read_exact_at(&mut bytes, at).map_err(failed)?;
    Ok(bytes)
}
