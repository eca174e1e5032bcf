//! What a delta bundle states about the full bundle that it stands for (spec 4.7 and 7.6).

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use sealift_format::num::{self, at};
use sealift_format::{Chunk, Full, FullLayout, Index, Limits, verity};
use sealift_verify::content::ChunkDecoder;

use crate::Phase;
use crate::pack::PackOptions;
use crate::pack::compress::{Compressor, encoder};
use crate::{Error, Input, Progress};
use sealift_store::base::chunks::{Held, SameChunks, held};
use sealift_store::base::{Bases, BundleFile, short};
use sealift_store::threads::parallel::for_each;

/// A bundle that carries all of its objects, for which a delta bundle is to stand.
#[derive(Debug)]
pub struct FullBundle(BundleFile);

/// Length of a full bundle's head that fits in a root.
const HEAD_LEN: usize = 32 << 10;

impl FullBundle {
    /// Opens a bundle. It need not be trusted: its content is used only to check that it can be rebuilt.
    ///
    /// # Errors
    /// Returns an error if the bundle cannot be read, is no bundle or a delta bundle, or comes through a pipe.
    pub fn open(input: &mut Input, limits: Limits) -> Result<Self, Error> {
        let bundle = input.open_bundle(limits).map_err(|error| error.of_bundle(input.path()))?;
        Ok(Self(BundleFile::new(input, bundle)?))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn chunk(&self, number: u32) -> &Chunk {
        &self.0.bundle.layout.chunks[at(number)]
    }

    /// Describes how to rebuild it from `index`, which a delta bundle carries, and `bases`; and verifies that this works.
    pub(super) fn describe(
        &self,
        index: &Index,
        bases: &Bases,
        options: &PackOptions,
        progress: &Progress,
    ) -> Result<(Full, FullLayout), Error> {
        let bundle = &self.0.bundle;
        if bundle.index.bytes() != index.bytes() {
            let digest = |index: &Index| short(&verity::digest(index.bytes()));
            return Err(Error::Usage(format!(
                "{} has other content than this delta: {} instead of {}; pack both from the same files, with the same \
                 options",
                self.path().display(),
                digest(&bundle.index),
                digest(index)
            )));
        }
        let head_len = bundle.head.signed().len() + sealift_format::area_len_for(bundle.head.envelopes());
        if head_len > HEAD_LEN {
            return Err(Error::Usage(format!(
                "{}: its root and signatures have {head_len} bytes, but a delta bundle has room for {HEAD_LEN}",
                self.path().display()
            )));
        }
        let (held, same) = (held(bundle), SameChunks::new(bases, |_, _| true));
        let layouts: Vec<Option<[u8; 32]>> =
            bases.files().enumerate().map(|(base, file)| self.stores_as(base, file?, &held, &same)).collect();
        let is_copied = |number: &u32| same.find(&held[at(*number)]).any(|(base, _)| layouts[base].is_some());
        let count = u32::try_from(bundle.layout.chunks.len()).unwrap_or(u32::MAX);
        let encoded: Vec<u32> = (0..count).filter(|number| !is_copied(number)).collect();
        let level = self.find_level(&encoded, options, progress)?;
        let head = Box::new(bundle.head.clone());
        Ok((Full { level, encoder: encoder(), layouts, head }, FullLayout::from(&bundle.layout)))
    }

    /// Returns the layout of a base's bundle, if it stores all objects that both have in one chunk as this one does.
    fn stores_as(&self, base: usize, file: &BundleFile, held: &[Held], same: &SameChunks) -> Option<[u8; 32]> {
        let chunks = &self.0.bundle.layout.chunks;
        let pairs = chunks.iter().zip(held).flat_map(|(chunk, held)| {
            let theirs = same.find(held).find(|(of, _)| *of == base);
            theirs.map(|(_, theirs)| (chunk, &file.bundle.layout.chunks[at(theirs)]))
        });
        let mut are_same =
            pairs.map(|(own, theirs)| own.codec == theirs.codec && own.digest == theirs.digest).peekable();
        are_same.peek()?;
        are_same.all(|is_same| is_same).then_some(file.bundle.head.root().contents.layout_blake3)
    }

    /// Finds the level at which this encoder produces these chunks, the layout and the index.
    fn find_level(&self, chunks: &[u32], options: &PackOptions, progress: &Progress) -> Result<u8, Error> {
        let bytes = chunks.iter().map(|number| u64::from(self.chunk(*number).stored_len)).sum();
        let mut tried = BTreeSet::new();
        let likely = [options.level, PackOptions::LEVEL].map(u8::try_from).into_iter().flatten();
        for level in likely.chain(1..=22).filter(|level| (1..=22).contains(level)) {
            // A wrong level mostly shows at the first chunk, but only all of them prove the right one.
            if tried.insert(level)
                && self.is_made_at(level, &chunks[..chunks.len().min(1)], options.jobs, &Progress::default())?
                && self.is_front_made_at(level)?
            {
                progress.enter(Phase::Verifying, bytes, 0);
                if self.is_made_at(level, chunks, options.jobs, progress)? {
                    return Ok(level);
                }
            }
            progress.check()?;
        }
        Err(Error::Usage(format!(
            "{}: {} does not make its bytes at any level: pack it again with this version",
            self.path().display(),
            encoder()
        )))
    }

    /// Returns whether this encoder produces the layout and index at this level.
    fn is_front_made_at(&self, level: u8) -> Result<bool, Error> {
        let (bundle, mut compressor) = (&self.0.bundle, Compressor::for_front(level.into())?);
        let contents = &bundle.head.root().contents;
        let layout = blake3::hash(compressor.compress(&bundle.layout.encode())?);
        let index = blake3::hash(compressor.compress(bundle.index.bytes())?);
        Ok(layout == contents.layout_blake3 && index == contents.index_blake3)
    }

    /// Returns whether this encoder produces these chunks at this level.
    fn is_made_at(&self, level: u8, chunks: &[u32], jobs: usize, progress: &Progress) -> Result<bool, Error> {
        let differs = AtomicBool::new(false);
        let start = || (ChunkDecoder::default(), None, Vec::new());
        for_each(jobs.max(1), chunks, start, |(decoder, compressor, stored), number| {
            progress.check()?;
            if differs.load(Ordering::Relaxed) {
                return Ok(());
            }
            self.0.read_stored(*number, stored)?;
            let decoded = decoder.decode(&self.0.bundle, *number, stored, &[]);
            let decoded = decoded.map_err(|error| Error::from(error).of_bundle(self.path()))?;
            let compressor = match compressor {
                Some(compressor) => compressor,
                none => none.insert(Compressor::new(level.into())?),
            };
            if compressor.chunk(decoded)? != (self.chunk(*number).codec, stored.clone()) {
                differs.store(true, Ordering::Relaxed);
            }
            progress.add(num::wide(stored.len()), 0);
            Ok(())
        })?;
        Ok(!differs.into_inner())
    }
}
