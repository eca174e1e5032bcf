//! The file of a bundle, which stays open and is read at any offset.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use parking_lot::RwLock;
use rustix::fs::{Advice, Mode, OFlags};
use sealift_format::num;
use sealift_format::{Bundle, Chunk, Error as FormatError, Head, Row};

use crate::made_spool::MadeSpool;
use crate::origin::Origin;
use crate::{Error, Input};

/// The open file of a bundle, even if another file takes its name later. The path is opened again only if the medium fails, for example because it
/// was pulled out; the file there is used if it begins with the same head.
#[derive(Debug)]
pub struct Medium {
    path: PathBuf,
    origin: RwLock<Arc<Origin>>,
    advice: Advice,
    /// The bytes of the head.
    head: Vec<u8>,
    chunks_at: u64,
    len: u64,
}

/// An open bundle with its file, and the locations of its objects.
#[derive(Debug)]
#[non_exhaustive]
pub struct OpenBundle {
    /// The file.
    pub medium: Medium,
    /// The bundle.
    pub bundle: Bundle,
    /// For each object, the chunk of its group.
    pub homes: Vec<Option<Row<Chunk>>>,
    /// The objects that its recipes made, if they are kept.
    pub(crate) made: OnceLock<MadeSpool>,
    /// Threads that make an object, if they are not kept.
    pub(crate) jobs: usize,
}

impl OpenBundle {
    /// Keeps the file of a bundle open, with what was opened from it, as [`Medium::new`] does.
    ///
    /// # Errors
    /// Returns an error if the input is a pipe, or cannot be read.
    pub fn new(input: &Input, bundle: Bundle, advice: Advice) -> Result<Self, Error> {
        let medium = Medium::new(input, &bundle.head, advice)?;
        Ok(Self { medium, homes: bundle.homes(), bundle, made: OnceLock::new(), jobs: 1 })
    }
}

impl Medium {
    /// Keeps the file of a bundle open. `advice` says how it will be read.
    ///
    /// # Errors
    /// Returns an error if the input is a pipe, or cannot be read.
    pub fn new(input: &Input, head: &Head, advice: Advice) -> Result<Self, Error> {
        let path = input.path().to_owned();
        let Some(origin) = input.origin() else {
            return Err(Error::unexpected(&path, "is a pipe, but has to be read at any offset"));
        };
        origin.advise(advice);
        let head_bytes =
            start_of(origin, num::size(head.head_len())).map_err(|error| Error::io("read", &path, error))?;
        Ok(Self {
            origin: RwLock::new(Arc::clone(origin)),
            advice,
            head: head_bytes,
            chunks_at: head.chunks_at(),
            len: head.file_len(),
            path,
        })
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the offset of a chunk in the file.
    #[must_use]
    pub fn place(&self, chunk: &Chunk) -> u64 {
        self.chunks_at + chunk.offset
    }

    /// Reads a chunk's stored bytes without checking them.
    ///
    /// # Errors
    /// Returns an error if the medium fails or the file was truncated.
    pub fn read_chunk(&self, chunk: &Chunk, stored: &mut Vec<u8>) -> Result<(), Error> {
        stored.resize(num::at(chunk.stored_len), 0);
        let place = self.place(chunk);
        let origin = Arc::clone(&self.origin.read());
        let read = origin.read_best(stored, place, &chunk.digest);
        let read = match read {
            Err(error) if error.kind() != ErrorKind::UnexpectedEof && !origin.has_copies() => match self.open_again() {
                Some(origin) => origin.read_exact_at(stored, place),
                None => Err(error),
            },
            read => read,
        };
        read.map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => {
                let len = self.origin.read().len_now().unwrap_or(place);
                FormatError::Truncated { len, expected: Some(self.len) }.into()
            }
            _ => Error::io("read", &self.path, error),
        })
    }

    /// Opens the path again, if it leads to the same bundle.
    fn open_again(&self) -> Option<Arc<Origin>> {
        // Otherwise, opening a fifo of that name would block.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = File::from(rustix::fs::open(&self.path, flags, Mode::empty()).ok()?);
        let origin = Arc::new(Origin::of(&self.path, &file).ok()??);
        let is_same = start_of(&origin, self.head.len()).ok()? == self.head;
        origin.advise(self.advice);
        is_same.then(|| *self.origin.write() = Arc::clone(&origin))?;
        Some(origin)
    }
}

fn start_of(origin: &Origin, len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    origin.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use sealift_format::{Codec, Holds};

    use super::*;

    /// A medium whose file cannot be read any more: it is open only for writing.
    fn gone(path: &Path) -> Medium {
        let file = File::options().append(true).open(path).expect("it is there");
        let origin = RwLock::new(Arc::new(Origin::file(file, 8)));
        Medium { path: path.to_owned(), origin, advice: Advice::Random, head: b"head".to_vec(), chunks_at: 4, len: 8 }
    }

    #[test]
    fn a_medium_that_is_back_is_opened_again_if_it_is_the_same() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("bundle");
        let chunk = Chunk {
            codec: Codec::Raw,
            offset: 1,
            stored_len: 3,
            len: 3,
            digest: [0; 32],
            holds: Holds::Piece,
            prefix: 0..0,
        };
        let mut stored = Vec::new();
        std::fs::write(&path, "deadbeef").expect("a new file");
        let medium = gone(&path);
        assert!(matches!(medium.read_chunk(&chunk, &mut stored), Err(Error::Io { .. })));
        std::fs::remove_file(&path).expect("it is ours");
        assert!(matches!(medium.read_chunk(&chunk, &mut stored), Err(Error::Io { .. })));
        std::fs::write(&path, "headbeef").expect("a new file");
        medium.read_chunk(&chunk, &mut stored).expect("it is back");
        assert_eq!(stored, b"eef");
        std::fs::remove_file(&path).expect("it is ours");
        medium.read_chunk(&chunk, &mut stored).expect("it stays open");
    }
}
