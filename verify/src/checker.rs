//! The check of what chunks hold, in any order and by several checkers: each keeps its buffers from one chunk to the next.

use sealift_format::Bundle;

use crate::content::{ChunkDecoder, ContentError};
use crate::objects::{Bare, Checked, PieceMap, VerityTable, check_bare, check_chunk, without_data};
use crate::ostree::{LargeFiles, OsTreeFiles};

/// Checks chunks of one bundle. What it finds is for a [`VerityTable`], of which there is one however many checkers there are.
#[derive(Debug)]
pub struct ObjectChecker {
    decoder: ChunkDecoder,
    pieces: PieceMap,
    files: OsTreeFiles,
    /// In ascending order of the objects.
    large: Vec<(u32, LargeFiles)>,
}

impl ObjectChecker {
    /// A checker that has seen no chunk.
    #[must_use]
    pub fn new(bundle: &Bundle) -> Self {
        let files = OsTreeFiles::new(bundle);
        Self { decoder: ChunkDecoder::default(), pieces: PieceMap::new(bundle), large: files.large(bundle), files }
    }

    /// The chunks that the checker which [finishes](Self::finish) has to see itself, in this order: they bring large files of OSTree,
    /// whose checksums are over the whole file.
    #[must_use]
    pub fn in_order(&self) -> Vec<u32> {
        self.pieces.chunks_of(|object| place(&self.large, object).is_some())
    }

    /// Checks the stored bytes of chunk `number` and all that it holds, and tells `take` of each object or piece.
    ///
    /// # Errors
    /// The first of them that is not what it is to be.
    pub fn check(
        &mut self,
        bundle: &Bundle,
        number: u32,
        stored: &[u8],
        mut take: impl FnMut(Checked),
    ) -> Result<(), ContentError> {
        let Self { decoder, pieces, files, large } = self;
        let decoded = decoder.decode(bundle, number, stored, &[])?;
        check_chunk(bundle, pieces, files, number, decoded, |checked| {
            if let Checked::Piece { object, piece, .. } = checked
                && let Some(at) = place(large, object)
            {
                large[at].1.take(bundle, piece, decoded);
            }
            take(checked);
        })
    }

    /// Checks an object or a piece that no chunk brings.
    ///
    /// # Errors
    /// It is not what it is to be.
    pub fn check_bare(&self, bundle: &Bundle, bare: Bare) -> Result<Checked, ContentError> {
        check_bare(bundle, &self.files, bare)
    }

    /// Ends the check, when all chunks and all that is without data were checked.
    ///
    /// # Errors
    /// A large file of OSTree, or the table, is not as the index says.
    pub fn finish(self, bundle: &Bundle, table: VerityTable) -> Result<(), ContentError> {
        for (_, mut files) in self.large {
            while files.take_bare(bundle) {}
            files.check(bundle)?;
        }
        table.check(bundle)
    }

    /// The same, where what is without data is still to be checked.
    ///
    /// # Errors
    /// As [`Self::finish`], or an object without data is not what it is to be.
    pub fn finish_all(self, bundle: &Bundle, mut table: VerityTable) -> Result<(), ContentError> {
        for bare in without_data(bundle) {
            table.take(self.check_bare(bundle, bare)?);
        }
        self.finish(bundle, table)
    }
}

fn place(large: &[(u32, LargeFiles)], object: u32) -> Option<usize> {
    large.binary_search_by_key(&object, |(own, _)| *own).ok()
}
