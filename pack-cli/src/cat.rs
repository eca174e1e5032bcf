//! Handing out the content of one file.
//!
//! Of a file one read behind the index is enough, and of a large object one for each piece; a pipe is read up to the content.
//!
//! ```
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/bundle.rs"));
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = signed_bundle()?;
//! # let folder = folder.path();
//! use sealift::cat::cat;
//! use sealift::trust::{Guard, TrustOptions};
//! use sealift::{Input, Limits, Progress};
//!
//! let guard = Guard::load(&TrustOptions {
//!     signers: Some(folder.join("allowed_signers")),
//!     state: Some(folder.join("state")),
//!     ..TrustOptions::default()
//! })?;
//! let bundle = guard.admit(Input::open(&folder.join("os.sealift"))?, Limits::default())?;
//! let mut content = Vec::new();
//! cat(bundle, b"etc/os-release", &mut content, &Progress::default())?;
//! assert_eq!(content, b"ID=example\n");
//! # Ok(())
//! # }
//! ```

use std::io::Write;

use sealift_format::{Bundle, Holds, InodeKind};
use sealift_verify::content::{ChunkDecoder, check_object, check_piece, fill_holes, group_objects, piece_range};

use crate::inspect::find;
use crate::trust::Trusted;
use crate::{Error, Input, Progress};

/// Writes the content of the file at `[REF:]PATH` to `out`: only bytes that have been checked.
///
/// # Errors
/// The bundle is refused or damaged, there is no such file or it is not a regular one, or `out` fails.
pub fn cat(bundle: Trusted, path: &[u8], out: &mut dyn Write, progress: &Progress) -> Result<(), Error> {
    Contents::open(bundle)?.cat(path, out, progress)
}

/// A bundle that is asked for many files, and opened once.
#[derive(Debug)]
pub struct Contents {
    input: Input,
    bundle: Bundle,
}

impl Contents {
    /// Reads layout and index.
    ///
    /// # Errors
    /// The bundle is damaged, or is a delta bundle.
    pub fn open(bundle: Trusted) -> Result<Self, Error> {
        let (input, bundle) = bundle.open_bundle()?;
        Ok(Self { input, bundle })
    }

    /// What it has.
    #[must_use]
    pub fn bundle(&self) -> &Bundle {
        &self.bundle
    }

    /// Writes the content of the file at `[REF:]PATH` to `out`. From a pipe, files come in their order there.
    ///
    /// # Errors
    /// The chunks are damaged, there is no such file or it is not a regular one, or `out` fails.
    pub fn cat(&mut self, path: &[u8], out: &mut dyn Write, progress: &Progress) -> Result<(), Error> {
        cat_from(&mut self.input, &self.bundle, path, out, progress)
    }
}

fn cat_from(
    input: &mut Input,
    bundle: &Bundle,
    path: &[u8],
    out: &mut dyn Write,
    progress: &Progress,
) -> Result<(), Error> {
    let InodeKind::Regular(object) = find(bundle, path)?.inode.kind else {
        return Err(Error::Usage(format!("{} is not a regular file", String::from_utf8_lossy(path))));
    };
    let mut writer = ObjectWriter { bundle, object, out };
    if bundle.index.object(object).size > bundle.head.root().maxima.piece_len() {
        return writer.write_pieces(input, progress);
    }
    writer.write_whole(input)
}

struct ObjectWriter<'a> {
    bundle: &'a Bundle,
    object: u32,
    out: &'a mut dyn Write,
}

impl ObjectWriter<'_> {
    fn write_whole(&mut self, input: &mut Input) -> Result<(), Error> {
        let bundle = self.bundle;
        let size = bundle.index.object(self.object).size;
        let Some(number) = bundle.layout.chunk_of(self.object) else {
            check_object(bundle, self.object, &[])?;
            return self.write_range(0, size, &[]);
        };
        let mut stored = Vec::new();
        let chunk = &bundle.layout.chunks[usize::try_from(number).unwrap_or(usize::MAX)];
        input.read_chunk(&bundle.head, chunk, &mut stored)?;
        let mut decoder = ChunkDecoder::default();
        let decoded = decoder.decode(bundle, number, &stored, &[])?;
        let Holds::Group(range) = &chunk.holds else { return Ok(()) };
        for (object, data) in group_objects(bundle, bundle.layout.group(range), decoded) {
            if object == self.object {
                check_object(bundle, object, data)?;
                return self.write_range(0, size, data);
            }
        }
        Ok(())
    }

    fn write_pieces(&mut self, input: &mut Input, progress: &Progress) -> Result<(), Error> {
        let bundle = self.bundle;
        let (mut decoder, mut stored) = (ChunkDecoder::default(), Vec::new());
        for (number, piece) in (0..).zip(bundle.layout.pieces_of(self.object)) {
            progress.check()?;
            let data: &[u8] = match piece.chunk {
                None => &[],
                Some(chunk) => {
                    let row = &bundle.layout.chunks[usize::try_from(chunk).unwrap_or(usize::MAX)];
                    input.read_chunk(&bundle.head, row, &mut stored)?;
                    decoder.decode(bundle, chunk, &stored, &[])?
                }
            };
            check_piece(bundle, self.object, number, data)?;
            let range = piece_range(bundle, self.object, number);
            self.write_range(range.start, range.end, data)?;
        }
        Ok(())
    }

    /// Writes the bytes from `start` to `end` of the object.
    fn write_range(&mut self, start: u64, end: u64, data: &[u8]) -> Result<(), Error> {
        let holes = self.bundle.layout.holes_of(self.object);
        let written = fill_holes(data, holes, start..end, |part| self.out.write_all(part));
        written.map_err(|error| Error::io("write", "the output", error))
    }
}
