//! Returns the content of one file.
//!
//! A small file takes one read after the index, a large object one for each piece; a pipe is read up to the content.
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

use sealift_format::{Bundle, Chunk, InodeKind, Row};
use sealift_store::base::{BaseReader, Bases, GivenBases, number_of};
use sealift_verify::content::{ChunkDecoder, portions_of};

#[cfg(feature = "pack")]
use crate::files::Files;
use crate::inspect::find;
use crate::trust::Trusted;
use crate::{Error, Input, Progress};

/// Writes the content of the file at `[REF:]PATH` to `out`. Only verified bytes are written.
///
/// # Errors
/// Returns an error if the bundle is refused or damaged, if there is no such regular file, or if `out` cannot be written.
pub fn cat(bundle: Trusted, path: &[u8], out: &mut dyn Write, progress: &Progress) -> Result<(), Error> {
    Contents::open(bundle)?.cat(path, out, progress)
}

/// A bundle that is opened once, to read many files.
#[derive(Debug)]
pub struct Contents {
    input: Input,
    bundle: Bundle,
    /// For each object, the chunk of its group.
    homes: Vec<Option<Row<Chunk>>>,
    bases: Bases,
}

impl Contents {
    /// Reads layout and index of a full bundle.
    ///
    /// # Errors
    /// Returns an error if the bundle is damaged, or is a delta bundle.
    pub fn open(bundle: Trusted) -> Result<Self, Error> {
        Self::open_over(bundle, &GivenBases::default(), &Progress::default())
    }

    /// As [`Self::open`], but completes a delta bundle with `bases`.
    ///
    /// # Errors
    /// As [`Self::open`], and if `bases` are not those of the bundle.
    pub fn open_over(bundle: Trusted, bases: &GivenBases, progress: &Progress) -> Result<Self, Error> {
        let (input, bundle, bases) = bases.open(bundle.into_unopened(), progress)?;
        Ok(Self { input, homes: bundle.homes(), bundle, bases })
    }

    /// Returns the bundle.
    #[must_use]
    pub fn bundle(&self) -> &Bundle {
        &self.bundle
    }

    /// Returns what reads its files at any offset.
    #[cfg(feature = "pack")]
    pub(crate) fn files(&self) -> Result<Files<'_>, Error> {
        Files::new(&self.input, &self.bundle, &self.bases)
    }

    /// Writes the content of the file at `[REF:]PATH` to `out`. From a pipe, files must be requested in the order in which they are stored.
    ///
    /// # Errors
    /// Returns an error if the chunks are damaged, if there is no such regular file, or if `out` cannot be written.
    pub fn cat(&mut self, path: &[u8], out: &mut dyn Write, progress: &Progress) -> Result<(), Error> {
        let Self { input, bundle, homes, bases } = self;
        let InodeKind::Regular(object) = find(bundle, path)?.inode.kind else {
            return Err(Error::unexpected(&*String::from_utf8_lossy(path), "is not a regular file"));
        };
        let failed = |error| Error::io("write", "the output", error);
        let mut reader = BaseReader::new(bases);
        if !bundle.layout.is_stored(object) {
            let of_base = number_of(&bases.by_id(), bundle.index.object(object))?;
            return reader.read_in_parts(of_base, |_, part| {
                progress.check()?;
                out.write_all(part).map_err(failed)
            });
        }
        let (mut decoder, mut stored, mut prefix) = (ChunkDecoder::default(), Vec::new(), Vec::new());
        for (portion, chunk) in portions_of(bundle, object, homes[object.at()]) {
            progress.check()?;
            if let Some(chunk) = chunk {
                let row = &bundle.layout.chunks[chunk.at()];
                input.read_chunk(&bundle.head, row, &mut stored)?;
                reader.prefix(bundle.layout.prefix_of(row), &mut prefix)?;
            }
            let content = decoder.portion(bundle, portion, chunk, &stored, &prefix)?;
            content.try_for_each_part(|part| out.write_all(part)).map_err(failed)?;
        }
        Ok(())
    }
}
