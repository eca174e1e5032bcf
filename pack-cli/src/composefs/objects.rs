//! The objects of a bundle, made in a store from its chunks.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{AtFlags, unlinkat};
use sealift_format::verity::{self, Algorithm, FileDigest, FileHasher};
use sealift_format::{Bundle, Chunk, Holds, data_len, data_ranges};
use sealift_verify::content::{ChunkDecoder, check_object, check_piece, fill_holes, group_objects, piece_range};

use super::image::WITHIN_LEN_MAX;
use super::kept::Found;
use super::repo::parameters;
use super::transaction::Transaction;
use crate::base::{self, BaseReader, Bases};
use crate::feed::Feed;
use crate::input::Input;
use crate::parallel::for_each;
use crate::progress::Phase;
use crate::{Error, Progress};

/// What is wanted of a bundle, and where it is in it.
pub(super) struct Plan<'a> {
    pub(super) bundle: &'a Bundle,
    /// Of a delta bundle.
    pub(super) bases: &'a Bases,
    /// By the number of the object.
    wanted: Vec<bool>,
    chunks: Vec<u32>,
    /// Of each chunk the pieces that are wanted.
    pieces: BTreeMap<u32, Vec<(u32, u64)>>,
}

fn at(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

impl<'a> Plan<'a> {
    pub(super) fn new((bundle, bases): (&'a Bundle, &'a Bases), wanted: Vec<bool>) -> Self {
        let mut pieces: BTreeMap<u32, Vec<(u32, u64)>> = BTreeMap::new();
        for large in bundle.layout.large.iter().filter(|large| wanted.get(at(large.object)).is_some_and(|is| *is)) {
            for (number, piece) in (0..).zip(bundle.layout.pieces_of(large.object)) {
                if let Some(chunk) = piece.chunk {
                    pieces.entry(chunk).or_default().push((large.object, number));
                }
            }
        }
        let chunks = (0..)
            .zip(&bundle.layout.chunks)
            .filter(|(number, chunk)| match &chunk.holds {
                Holds::Group(range) => bundle.layout.group(range).iter().any(|object| wanted[at(*object)]),
                Holds::Piece => pieces.contains_key(number),
            })
            .map(|(number, _)| number)
            .collect();
        Self { bundle, bases, wanted, chunks, pieces }
    }

    /// The objects that are wanted, of which some may have no data.
    pub(super) fn objects(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.wanted).filter(|(_, is_wanted)| **is_wanted).map(|(object, _)| object)
    }

    fn size(&self, object: u32) -> u64 {
        self.bundle.index.object(object).size
    }

    fn is_large(&self, object: u32) -> bool {
        self.size(object) > self.bundle.head.root().maxima.piece_len()
    }

    pub(super) fn stored_bytes(&self) -> u64 {
        self.chunks.iter().map(|number| u64::from(self.chunk(*number).stored_len)).sum()
    }

    /// Bytes that they take in a store, of which it may have some.
    pub(super) fn disk_bytes(&self) -> u64 {
        let sizes = self.objects().map(|object| {
            let data = data_len(self.bundle.layout.holes_of(object), 0..self.size(object));
            if self.size(object) <= WITHIN_LEN_MAX { 0 } else { data.div_ceil(4096).saturating_mul(4096) }
        });
        sizes.fold(0, u64::saturating_add)
    }

    fn chunk(&self, number: u32) -> &'a Chunk {
        &self.bundle.layout.chunks[at(number)]
    }

    /// Whether what a delta needs of its base is there.
    ///
    /// # Errors
    /// It is not, or cannot be read.
    pub(super) fn check_bases(&self, target: &std::path::Path, jobs: usize, progress: &Progress) -> Result<(), Error> {
        if self.bundle.layout.carried.is_none() {
            return Ok(());
        }
        let lacking: Vec<u32> = self.objects().filter(|object| !self.bundle.layout.is_carried(*object)).collect();
        if let Some(object) = lacking.first() {
            let problem = format!(
                "objects that the last bundle installed are gone, such as the content of {}; use the full bundle",
                base::path_of_object(&self.bundle.index, *object)
            );
            return Err(Error::MissingBase { path: target.to_owned(), problem });
        }
        let needed = base::needed(self.bundle, self.bases, &self.chunks, lacking.into_iter());
        base::check(self.bases, &needed, target, jobs, progress)
    }
}

/// Making the objects of a plan.
pub(super) struct Work<'a> {
    plan: &'a Plan<'a>,
    transaction: &'a Transaction<'a>,
    algorithm: Algorithm,
    progress: &'a Progress,
    large: BTreeMap<u32, Large>,
    found: Mutex<Found>,
    written: AtomicU64,
    written_bytes: AtomicU64,
}

/// A large object, whose pieces come in any order.
#[derive(Default)]
struct Large {
    file: Mutex<Option<Arc<File>>>,
    /// By the number of the piece, its part of the Merkle tree.
    trees: Mutex<BTreeMap<u64, FileHasher>>,
    missing: AtomicU64,
}

/// What came of it.
pub(super) struct Made {
    pub(super) found: Found,
    /// Objects that the store did not have, and their bytes.
    pub(super) objects: u64,
    pub(super) bytes: u64,
}

impl<'a> Work<'a> {
    pub(super) fn new(
        plan: &'a Plan<'a>,
        transaction: &'a Transaction<'a>,
        algorithm: Algorithm,
        progress: &'a Progress,
    ) -> Self {
        let large = plan.objects().filter(|object| plan.is_large(*object)).map(|object| {
            let pieces = plan.bundle.layout.pieces_of(object);
            let missing = pieces.iter().filter(|piece| piece.chunk.is_some()).count();
            let missing = AtomicU64::new(u64::try_from(missing).unwrap_or(u64::MAX));
            (object, Large { missing, ..Large::default() })
        });
        Self {
            plan,
            transaction,
            algorithm,
            progress,
            large: large.collect(),
            found: Mutex::default(),
            written: AtomicU64::new(0),
            written_bytes: AtomicU64::new(0),
        }
    }

    pub(super) fn run(self, input: &mut Input, jobs: usize) -> Result<Made, Error> {
        let (bundle, plan) = (self.plan.bundle, self.plan);
        let files = u64::try_from(plan.objects().count()).unwrap_or(u64::MAX);
        self.progress.enter(Phase::Unpacking, plan.stored_bytes(), files);
        Feed::new((&bundle.head, &bundle.layout.chunks), &plan.chunks, input, self.progress).run(
            jobs,
            || (ChunkDecoder::default(), BaseReader::new(plan.bases), Vec::new()),
            |(decoder, reader, prefix), number, stored| {
                reader.prefix(bundle.layout.prefix_of(plan.chunk(number)), prefix)?;
                let decoded = decoder.decode(bundle, number, stored, prefix)?;
                self.take_chunk(number, decoded)
            },
        )?;
        // What has no data no chunk brings.
        let bare: Vec<u32> = plan.objects().filter(|object| self.data_len(*object) == 0).collect();
        for_each(
            jobs,
            &bare,
            || (),
            |(), object| {
                self.progress.check()?;
                if self.large.contains_key(object) {
                    return self.finish_large(*object);
                }
                check_object(bundle, *object, &[])?;
                self.write_small(*object, &[])
            },
        )?;
        Ok(Made {
            found: self.found.into_inner().unwrap_or_else(PoisonError::into_inner),
            objects: self.written.into_inner(),
            bytes: self.written_bytes.into_inner(),
        })
    }

    fn data_len(&self, object: u32) -> u64 {
        data_len(self.plan.bundle.layout.holes_of(object), 0..self.plan.size(object))
    }

    fn take_chunk(&self, number: u32, decoded: &[u8]) -> Result<(), Error> {
        let (bundle, plan) = (self.plan.bundle, self.plan);
        match &plan.chunk(number).holds {
            Holds::Group(range) => {
                for (object, data) in group_objects(bundle, bundle.layout.group(range), decoded) {
                    if plan.wanted[at(object)] {
                        check_object(bundle, object, data)?;
                        self.write_small(object, data)?;
                    }
                }
                Ok(())
            }
            Holds::Piece => {
                for &(object, piece) in plan.pieces.get(&number).map_or(&[][..], Vec::as_slice) {
                    check_piece(bundle, object, piece, decoded)?;
                    self.take_piece(object, piece, decoded)?;
                }
                Ok(())
            }
        }
    }

    /// Gives `take` the bytes of a part of an object, holes included.
    fn bytes(&self, object: u32, within: std::ops::Range<u64>, data: &[u8], mut take: impl FnMut(&[u8])) {
        let Ok(()) = fill_holes(data, self.plan.bundle.layout.holes_of(object), within, |part| {
            take(part);
            Ok::<(), std::convert::Infallible>(())
        });
    }

    fn write_small(&self, object: u32, data: &[u8]) -> Result<(), Error> {
        let (size, holes) = (self.plan.size(object), self.plan.bundle.layout.holes_of(object));
        let digest = if holes.is_empty() && self.algorithm == Algorithm::Sha256 {
            FileDigest::from(verity::digest(data))
        } else {
            let mut hasher = FileHasher::new(&parameters(self.algorithm));
            self.bytes(object, 0..size, data, |part| hasher.update(part));
            hasher.finish()
        };
        if size <= WITHIN_LEN_MAX {
            self.note(object, digest, Some(data));
            return Ok(());
        }
        if !self.transaction.has(&digest, size)? {
            self.transaction.write(&digest, |file| {
                if holes.is_empty() {
                    return file.write_all_at(data, 0);
                }
                file.set_len(size)?;
                write_data(file, holes, 0..size, data)
            })?;
            self.count(size);
        }
        self.note(object, digest, None);
        Ok(())
    }

    fn count(&self, size: u64) {
        self.written.fetch_add(1, Ordering::Relaxed);
        self.written_bytes.fetch_add(size, Ordering::Relaxed);
    }

    fn note(&self, object: u32, digest: FileDigest, within: Option<&[u8]>) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.digests.insert(object, digest);
        found.within.extend(within.map(|content| (object, content.to_vec())));
        drop(found);
        self.progress.add(0, 1);
    }

    /// Puts a piece in its place; the last one makes the object.
    fn take_piece(&self, object: u32, piece: u64, data: &[u8]) -> Result<(), Error> {
        let Some(large) = self.large.get(&object) else { return Ok(()) };
        let (bundle, range) = (self.plan.bundle, piece_range(self.plan.bundle, object, piece));
        let file = self.large_file(object, large)?;
        let failed = |error: io::Error| self.transaction.unwritten(error);
        write_data(&file, bundle.layout.holes_of(object), range.clone(), data).map_err(failed)?;
        drop(file);
        let mut tree = FileHasher::new(&parameters(self.algorithm));
        self.bytes(object, range, data, |part| tree.update(part));
        large.trees.lock().unwrap_or_else(PoisonError::into_inner).insert(piece, tree);
        if large.missing.fetch_sub(1, Ordering::AcqRel) > 1 { Ok(()) } else { self.finish_large(object) }
    }

    fn large_file(&self, object: u32, large: &Large) -> Result<Arc<File>, Error> {
        let failed = |error: io::Error| self.transaction.unwritten(error);
        let mut slot = large.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = &*slot {
            return Ok(Arc::clone(file));
        }
        let file = self.transaction.create(&large_name(object)).map_err(|error| failed(error.into()))?;
        file.set_len(self.plan.size(object)).map_err(failed)?;
        Ok(Arc::clone(slot.insert(Arc::new(file))))
    }

    /// All pieces that chunks bring are there.
    fn finish_large(&self, object: u32) -> Result<(), Error> {
        let (bundle, size) = (self.plan.bundle, self.plan.size(object));
        let Some(large) = self.large.get(&object) else { return Ok(()) };
        drop(self.large_file(object, large)?);
        let mut trees = std::mem::take(&mut *large.trees.lock().unwrap_or_else(PoisonError::into_inner));
        let mut hasher = FileHasher::new(&parameters(self.algorithm));
        for (number, piece) in (0..).zip(bundle.layout.pieces_of(object)) {
            if piece.chunk.is_none() {
                check_piece(bundle, object, number, &[])?;
            }
            let tree = trees.remove(&number).unwrap_or_else(|| {
                let mut tree = FileHasher::new(&parameters(self.algorithm));
                self.bytes(object, piece_range(bundle, object, number), &[], |part| tree.update(part));
                tree
            });
            hasher.append(&tree);
        }
        let digest = hasher.finish();
        // Nobody seals a file that somebody has open for writing.
        large.file.lock().unwrap_or_else(PoisonError::into_inner).take();
        if self.transaction.has(&digest, size)? {
            let removed = unlinkat(self.transaction.stage(), large_name(object), AtFlags::empty());
            removed.map_err(|error| self.transaction.unwritten(error.into()))?;
        } else {
            self.transaction.adopt(&digest, &large_name(object))?;
            self.count(size);
        }
        self.note(object, digest, None);
        Ok(())
    }
}

fn large_name(object: u32) -> String {
    format!("large-{object}")
}

/// Writes the data of a part of an object where they belong; holes are left.
fn write_data(
    file: &File,
    holes: &[sealift_format::Extent],
    within: std::ops::Range<u64>,
    mut data: &[u8],
) -> io::Result<()> {
    for range in data_ranges(holes, within) {
        let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX).min(data.len());
        let (part, rest) = data.split_at(len);
        file.write_all_at(part, range.start)?;
        data = rest;
    }
    Ok(())
}
