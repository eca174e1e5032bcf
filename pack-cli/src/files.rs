//! Reads files of a bundle at any offset. Every chunk is compared with its digest, and every object or piece with index or layout.

use std::collections::HashMap;
#[cfg(feature = "pack")]
use std::io;
use std::ops::Range;

#[cfg(feature = "pack")]
use parking_lot::Mutex;
use rustix::fs::Advice;
#[cfg(feature = "pack")]
use sealift_container::ReadAt;
use sealift_format::num::size;
#[cfg(feature = "pack")]
use sealift_format::num::wide;
use sealift_format::{BaseObject, Bundle, Chunk, Object, Row};
use sealift_store::Medium;
use sealift_store::base::{BaseReader, Bases, number_of};
use sealift_verify::content::{ChunkDecoder, Portion, overlap};

use crate::{Error, Input};

/// A bundle in a file, with its bases.
pub(crate) struct Files<'a> {
    pub(crate) bundle: &'a Bundle,
    homes: Vec<Option<Row<Chunk>>>,
    medium: Medium,
    bases: &'a Bases,
    of_base: HashMap<[u8; 32], Row<BaseObject>>,
}

/// What a thread needs to read. The last portion stays in memory.
pub(crate) struct FileReader<'a> {
    files: &'a Files<'a>,
    bases: BaseReader<'a>,
    decoder: ChunkDecoder,
    stored: Vec<u8>,
    prefix: Vec<u8>,
    held: Option<Portion>,
    content: Vec<u8>,
}

/// The content of a file, for what reads containers.
#[cfg(feature = "pack")]
pub(crate) struct FileBytes<'a> {
    reader: Mutex<FileReader<'a>>,
    object: Row<Object>,
    len: u64,
}

#[cfg(feature = "pack")]
impl ReadAt for FileBytes<'_> {
    fn byte_len(&self) -> io::Result<u64> {
        Ok(self.len)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let end = offset.checked_add(wide(buffer.len())).filter(|end| *end <= self.len);
        let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
        let read = self.reader.lock().read(self.object, offset..end).map_err(io::Error::other)?;
        if read.len() != buffer.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        buffer.copy_from_slice(&read);
        Ok(())
    }
}

impl<'a> Files<'a> {
    /// # Errors
    /// Returns an error if the bundle comes through a pipe.
    pub(crate) fn new(input: &Input, bundle: &'a Bundle, bases: &'a Bases) -> Result<Self, Error> {
        let medium = Medium::new(input, &bundle.head, Advice::Normal)?;
        Ok(Self { bundle, homes: bundle.homes(), medium, of_base: bases.by_id(), bases })
    }

    /// Returns the content of a file.
    #[cfg(feature = "pack")]
    pub(crate) fn bytes(&self, object: Row<Object>) -> FileBytes<'_> {
        let len = self.bundle.index.object(object).size;
        FileBytes { reader: Mutex::new(self.reader()), object, len }
    }

    pub(crate) fn reader(&self) -> FileReader<'_> {
        FileReader {
            files: self,
            bases: BaseReader::new(self.bases),
            decoder: ChunkDecoder::default(),
            stored: Vec::new(),
            prefix: Vec::new(),
            held: None,
            content: Vec::new(),
        }
    }
}

impl FileReader<'_> {
    /// Reads a range within an object.
    ///
    /// # Errors
    /// Returns an error if the bundle is damaged, or if it or a base cannot be read.
    pub(crate) fn read(&mut self, object: Row<Object>, range: Range<u64>) -> Result<Vec<u8>, Error> {
        let Files { bundle, homes, of_base, .. } = self.files;
        let mut read = Vec::new();
        if !bundle.layout.is_stored(object) {
            let of_base = number_of(of_base, bundle.index.object(object))?;
            self.bases.read(of_base, range, &mut read)?;
            return Ok(read);
        }
        let piece_len = bundle.head.root().maxima.piece_len();
        if bundle.index.object(object).size <= piece_len {
            self.hold(Portion { object, piece: None }, homes[object.at()])?;
            read.extend(overlap(&self.content, 0, &range));
            return Ok(read);
        }
        let pieces = bundle.layout.pieces_of(object);
        for piece in range.start / piece_len..range.end.div_ceil(piece_len) {
            let Some(row) = pieces.get(size(piece)) else { break };
            self.hold(Portion { object, piece: Some(piece) }, row.chunk)?;
            read.extend(overlap(&self.content, piece * piece_len, &range));
        }
        Ok(read)
    }

    fn hold(&mut self, portion: Portion, chunk: Option<Row<Chunk>>) -> Result<(), Error> {
        if self.held == Some(portion) {
            return Ok(());
        }
        let Self { files: Files { bundle, medium, .. }, bases, decoder, stored, prefix, content, .. } = self;
        self.held = None;
        if let Some(chunk) = chunk {
            let chunk = &bundle.layout.chunks[chunk.at()];
            medium.read_chunk(chunk, stored)?;
            bases.prefix(bundle.layout.prefix_of(chunk), prefix)?;
        }
        content.clear();
        decoder.portion(bundle, portion, chunk, stored, prefix)?.for_each_part(&mut |part| content.extend(part));
        self.held = Some(portion);
        Ok(())
    }
}
