//! Checking a whole bundle.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};

use sealift_format::verity::{VerityHasher, block_hashes, digest};
use sealift_format::{Bundle, Error as FormatError, Holds, Limits, Part};
use sealift_verify::content::{
    ChunkDecoder, check_object, check_piece, check_stored, fill_holes, group_objects, piece_range,
};

use crate::feed::Feed;
use crate::progress::Phase;
use crate::{Error, Head, Input, Progress};

/// How thoroughly a bundle is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a caller chooses one")]
pub enum Depth {
    /// Each byte of the file is covered: head, layout, index, and the digest of each chunk.
    Stored,
    /// Each chunk is also decoded, and each object checked against its id and its fs-verity digest.
    Objects,
}

/// What was checked.
#[derive(Clone, Debug)]
pub struct Verified {
    /// The bundle, without its content.
    pub bundle: Bundle,
    /// Bytes of the whole file.
    pub file_bytes: u64,
}

/// Checks every byte of a bundle in one pass, on `jobs` threads.
///
/// # Errors
/// The bundle is refused or damaged, or cannot be read.
pub fn verify(
    input: &mut Input,
    depth: Depth,
    jobs: usize,
    limits: Limits,
    judge: impl FnOnce(&Head) -> Result<(), Error>,
    progress: &Progress,
) -> Result<Verified, Error> {
    let bundle = input.open_bundle(limits, judge)?;
    let all: Vec<u32> = (0..).take(bundle.layout.chunks.len()).collect();
    progress.enter(Phase::Verifying, bundle.head.root().maxima.chunks_stored, 0);
    match depth {
        Depth::Stored => Feed::new(&bundle, &all, input, progress).run(
            jobs,
            || (),
            |(), number, stored| {
                let chunk = &bundle.layout.chunks[usize::try_from(number).unwrap_or(usize::MAX)];
                Ok(check_stored(number, chunk, stored)?)
            },
        )?,
        Depth::Objects => check_objects(&bundle, &all, input, jobs, progress)?,
    }
    input.finish(&bundle)?;
    let file_bytes = bundle.head.file_len();
    Ok(Verified { bundle, file_bytes })
}

fn check_objects(
    bundle: &Bundle,
    all: &[u32],
    input: &mut Input,
    jobs: usize,
    progress: &Progress,
) -> Result<(), Error> {
    let digests = VerityTable::new(bundle);
    Feed::new(bundle, all, input, progress).run(jobs, ChunkDecoder::default, |decoder, number, stored| {
        let chunk = &bundle.layout.chunks[usize::try_from(number).unwrap_or(usize::MAX)];
        let decoded = decoder.decode(bundle, number, stored)?;
        match &chunk.holds {
            Holds::Group(range) => {
                for (object, data) in group_objects(bundle, bundle.layout.group(range), decoded) {
                    check_object(bundle, object, data)?;
                    digests.take_object(object, data);
                }
            }
            Holds::Piece => {
                for &(object, piece) in digests.pieces_in(number) {
                    check_piece(bundle, object, piece, decoded)?;
                    digests.take_piece(object, piece, decoded);
                }
            }
        }
        Ok(())
    })?;
    digests.check_without_data(progress)?;
    digests.finish()
}

/// Recomputes the table of fs-verity digests, whose own digest the index has (spec 6, section 10).
struct VerityTable<'a> {
    bundle: &'a Bundle,
    /// Object and piece that each chunk holds, by chunk.
    uses: Vec<(u32, (u32, u64))>,
    pieces: Vec<(u32, u64)>,
    state: Mutex<TableState>,
}

struct TableState {
    digests: Vec<[u8; 32]>,
    large: BTreeMap<u32, LargeDigest>,
}

/// A large object's digest, put together from its pieces in order.
#[derive(Default)]
struct LargeDigest {
    hasher: VerityHasher,
    next: u64,
    waiting: BTreeMap<u64, (u64, Vec<[u8; 32]>)>,
}

impl<'a> VerityTable<'a> {
    fn new(bundle: &'a Bundle) -> Self {
        let mut uses = Vec::new();
        for large in &bundle.layout.large {
            for (piece, row) in (0..).zip(bundle.layout.pieces_of(large.object)) {
                uses.extend(row.chunk.map(|chunk| (chunk, (large.object, piece))));
            }
        }
        uses.sort_unstable();
        let pieces = uses.iter().map(|(_, piece)| *piece).collect();
        let digests = vec![[0; 32]; bundle.index.objects().len()];
        Self { bundle, uses, pieces, state: Mutex::new(TableState { digests, large: BTreeMap::new() }) }
    }

    fn pieces_in(&self, chunk: u32) -> &[(u32, u64)] {
        let start = self.uses.partition_point(|(at, _)| *at < chunk);
        let end = self.uses.partition_point(|(at, _)| *at <= chunk);
        &self.pieces[start..end]
    }

    fn take_object(&self, object: u32, data: &[u8]) {
        let size = self.bundle.index.object(object).size;
        let holes = self.bundle.layout.holes_of(object);
        let verity = if holes.is_empty() {
            digest(data)
        } else {
            let mut hasher = VerityHasher::new();
            let Ok(()) = fill_holes(data, holes, 0..size, |part| {
                hasher.update(part);
                Ok::<(), Infallible>(())
            });
            hasher.finish()
        };
        self.lock().digests[usize::try_from(object).unwrap_or(usize::MAX)] = verity;
    }

    fn take_piece(&self, object: u32, piece: u64, data: &[u8]) {
        let range = piece_range(self.bundle, object, piece);
        let holes = self.bundle.layout.holes_of(object);
        let len = range.end - range.start;
        let hashes = if holes.is_empty() {
            block_hashes(data)
        } else {
            let mut bytes = Vec::with_capacity(usize::try_from(len).unwrap_or(0));
            let Ok(()) = fill_holes(data, holes, range, |part| {
                bytes.extend(part);
                Ok::<(), Infallible>(())
            });
            block_hashes(&bytes)
        };
        let mut state = self.lock();
        let large = state.large.entry(object).or_default();
        large.waiting.insert(piece, (len, hashes));
        while let Some((len, hashes)) = large.waiting.remove(&large.next) {
            large.hasher.update_hashed(len, &hashes);
            large.next += 1;
        }
    }

    /// Objects and pieces without data, which no chunk brings.
    fn check_without_data(&self, progress: &Progress) -> Result<(), Error> {
        for (number, object) in (0..).zip(self.bundle.index.objects()) {
            if object.size > self.bundle.head.root().maxima.piece_len() {
                let empty = (0..).zip(self.bundle.layout.pieces_of(number)).filter(|(_, piece)| piece.chunk.is_none());
                for (piece, _) in empty {
                    progress.check()?;
                    check_piece(self.bundle, number, piece, &[])?;
                    self.take_piece(number, piece, &[]);
                }
            } else if sealift_format::data_len(self.bundle.layout.holes_of(number), 0..object.size) == 0 {
                check_object(self.bundle, number, &[])?;
                self.take_object(number, &[]);
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<(), Error> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut digests = state.digests;
        for (object, large) in state.large {
            digests[usize::try_from(object).unwrap_or(usize::MAX)] = large.hasher.finish();
        }
        if digest(digests.as_flattened()) == *self.bundle.index.verity() {
            return Ok(());
        }
        Err(FormatError::Malformed {
            part: Part::Index,
            what: "its digest of the objects' fs-verity digests is not theirs",
            at: 0,
        }
        .into())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, TableState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
