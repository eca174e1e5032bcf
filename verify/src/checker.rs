//! The check of what chunks hold, in any order and by several checkers. Each reuses its buffers.

use sealift_format::verity::digests;
use sealift_format::{Bundle, Chunk, Object, Row};

use crate::content::{ChunkDecoder, Content, ContentError, Portion, check_shape, check_stored};
use crate::objects::Checked;
use crate::ostree::{LargeFiles, OsTreeFiles};
use crate::read_plan::ReadPlan;

/// How thoroughly a bundle is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a caller chooses one")]
pub enum Depth {
    /// Each byte of the file is covered: head, layout, index, and the digest of each chunk.
    Stored,
    /// Each chunk is also decoded, and each object checked against its id, its fs-verity digest and the checksums of OSTree's files. Of a
    /// delta bundle, objects that need its bases cannot be checked, only the form of their chunks.
    Objects,
}

/// Checks chunks of one bundle. Its results are for a [`VerityTable`](crate::objects::VerityTable), of which there is only one for all checkers.
#[derive(Debug)]
pub struct ObjectChecker {
    decoder: ChunkDecoder,
    plan: ReadPlan,
    files: OsTreeFiles,
    /// In ascending order of the objects.
    large: Vec<(Row<Object>, LargeFiles)>,
}

impl ObjectChecker {
    /// Returns a checker that has seen no chunk.
    #[must_use]
    pub fn new(bundle: &Bundle) -> Self {
        let files = OsTreeFiles::new(bundle);
        Self { decoder: ChunkDecoder::default(), plan: ReadPlan::all(bundle.into()), large: files.large(bundle), files }
    }

    /// Returns the chunks that the checker that [finishes](Self::finish) must check itself, in this order: they hold large files of OSTree, whose
    /// checksums cover the whole file.
    #[must_use]
    pub fn in_order(&self) -> Vec<Row<Chunk>> {
        let large = self.plan.pieces().filter(|(_, portion)| place(&self.large, portion.object).is_some());
        let mut chunks: Vec<_> = large.map(|(chunk, _)| chunk).collect();
        chunks.dedup();
        chunks
    }

    /// Checks the stored bytes of chunk `number` and all that it holds, and passes each object or piece to `take`. `prefix` are the bytes of its
    /// prefix, which only chunks of a delta bundle have.
    ///
    /// # Errors
    /// Returns an error if one of them does not match.
    pub fn check(
        &mut self,
        bundle: &Bundle,
        number: Row<Chunk>,
        stored: &[u8],
        prefix: &[u8],
        mut take: impl FnMut(Checked),
    ) -> Result<(), ContentError> {
        let Self { decoder, plan, files, large } = self;
        let decoded = decoder.decode(bundle, number, stored, prefix)?;
        let (mut objects, mut data) = (Vec::new(), Vec::new());
        for content in plan.contents(bundle.into(), number, decoded) {
            let content = content?;
            if content.portion.piece.is_none() && !content.has_holes() {
                files.check(bundle, &content)?;
                objects.push(content.portion.object);
                data.push(content.data);
                continue;
            }
            let checked = Checked::new(bundle, files, &content)?;
            if let (Some(piece), Some(at)) = (content.portion.piece, place(large, content.portion.object)) {
                large[at].1.take(bundle, piece, content.data);
            }
            take(checked);
        }
        for (object, digest) in objects.into_iter().zip(digests(&data)) {
            take(Checked::Object { object, digest });
        }
        Ok(())
    }

    /// Checks the stored bytes of a chunk whose prefix cannot be made, and the form of what they hold. The files in it are left out from then on.
    ///
    /// # Errors
    /// Returns an error if the chunk does not match its digest, or has another form.
    pub fn check_stored(&mut self, bundle: &Bundle, number: Row<Chunk>, stored: &[u8]) -> Result<(), ContentError> {
        let Some(chunk) = number.get(&bundle.layout.chunks) else { return Ok(()) };
        check_stored(number, chunk, stored)?;
        let Self { plan, large, .. } = self;
        large.retain(|(object, _)| plan.pieces_in(number).iter().all(|(_, held, _)| held != object));
        check_shape(&bundle.head, &bundle.layout, number, stored)
    }

    /// Returns the portions without a chunk, which [`Self::check_bare`] checks.
    #[must_use]
    pub fn without_data(&self, bundle: &Bundle) -> Vec<Portion> {
        self.plan.without_data(bundle.into())
    }

    /// Checks an object or a piece without a chunk.
    ///
    /// # Errors
    /// Returns an error if it does not match.
    pub fn check_bare(&self, bundle: &Bundle, portion: Portion) -> Result<Checked, ContentError> {
        Checked::new(bundle, &self.files, &Content::check(bundle.into(), portion, &[])?)
    }

    /// Ends the check, after all chunks and all portions without a chunk were checked. What the table took is compared with the index apart.
    ///
    /// # Errors
    /// Returns an error if a large file of OSTree does not match the index.
    pub fn finish(self, bundle: &Bundle) -> Result<(), ContentError> {
        for (_, mut files) in self.large {
            while files.take_bare(bundle) {}
            files.check(bundle)?;
        }
        Ok(())
    }
}

fn place(large: &[(Row<Object>, LargeFiles)], object: Row<Object>) -> Option<usize> {
    large.binary_search_by_key(&object, |(own, _)| *own).ok()
}
