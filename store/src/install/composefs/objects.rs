//! Builds a bundle's objects in a store from its chunks.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use rustix::fs::{AtFlags, unlinkat};
use sealift_format::num;
use sealift_format::verity::{self, Algorithm, FileDigest, FileHasher};
use sealift_format::{Bundle, Image, Object, Row, data_len};
use sealift_verify::content::{Content, Portion};
use sealift_verify::read_plan::ReadPlan;

use crate::base::{self, Bases};
use crate::composefs::KnownObjects;
use crate::composefs::repo::parameters;
use crate::composefs::transaction::Transaction;
use crate::delivery::feed::requests;
use crate::delivery::{Delivery, from_bases, write_content, write_sparse};
use crate::input::Input;
use crate::install::options::InstallOptions;
use crate::progress::Phase;
use crate::{Error, Progress};

/// What is wanted of a bundle, and where the bundle holds it.
pub(super) struct Plan<'a> {
    pub(super) bundle: &'a Bundle,
    /// The bases of a delta bundle.
    pub(super) bases: &'a Bases,
    reads: ReadPlan,
}

impl<'a> Plan<'a> {
    pub(super) fn new(bundle: &'a Bundle, bases: &'a Bases, wanted: Vec<bool>) -> Self {
        Self { bundle, bases, reads: ReadPlan::new(bundle.into(), wanted, &|_, _| false) }
    }

    /// Returns the wanted objects, some of which may have no data.
    pub(super) fn objects(&self) -> impl Iterator<Item = Row<Object>> {
        self.reads.objects()
    }

    fn size(&self, object: Row<Object>) -> u64 {
        self.bundle.index.object(object).size
    }

    fn is_large(&self, object: Row<Object>) -> bool {
        self.size(object) > self.bundle.head.root().maxima.piece_len()
    }

    pub(super) fn stored_bytes(&self) -> u64 {
        self.reads.stored_bytes()
    }

    /// Returns how many requests reading takes, if the bundle is at an address.
    pub(super) fn requests(&self, input: &Input) -> Option<u64> {
        requests(input, &self.bundle.head, &self.bundle.layout.chunks, self.reads.chunks())
    }

    /// Returns the bytes that the wanted objects need in a store, including those that it already has.
    pub(super) fn disk_bytes(&self) -> u64 {
        let sizes = self.objects().map(|object| {
            let data = data_len(self.bundle.layout.holes_of(object), 0..self.size(object));
            if self.size(object) <= Image::WITHIN_LEN_MAX { 0 } else { data.div_ceil(4096).saturating_mul(4096) }
        });
        sizes.fold(0, u64::saturating_add)
    }

    /// Returns the wanted objects that have bytes and come from a base.
    fn lacking(&self) -> Vec<Row<Object>> {
        let is_lacking = |object: &Row<Object>| self.size(*object) > 0 && !self.bundle.layout.is_stored(*object);
        self.objects().filter(is_lacking).collect()
    }

    /// Checks whether the bases of a delta, which are those given or else the store's own, have what it needs of them.
    ///
    /// # Errors
    /// Returns an error if they do not, or cannot be read.
    pub(super) fn check_bases(
        &self,
        target: &Path,
        options: &InstallOptions,
        progress: &Progress,
    ) -> Result<(), Error> {
        if self.bundle.layout.carried.is_none() {
            return Ok(());
        }
        let lacking = self.lacking();
        if let Some(object) = lacking.first().filter(|_| self.bases.is_empty()) {
            let problem = format!(
                "objects that the last bundle installed are gone, such as the content of {}",
                base::path_of_object(&self.bundle.index, *object)
            );
            return Err(Error::missing_base(target, problem));
        }
        let needed = base::needed(self.bundle, self.bases, self.reads.chunks(), lacking.into_iter());
        base::check(self.bases, &needed, options.bases.place_or(target), options.jobs.max(1), progress)
    }
}

/// The work of building a plan's objects.
pub(super) struct Work<'a> {
    plan: &'a Plan<'a>,
    transaction: &'a Transaction<'a>,
    algorithm: Algorithm,
    progress: &'a Progress,
    large: BTreeMap<Row<Object>, Large>,
    found: Mutex<KnownObjects>,
    written: AtomicU64,
    written_bytes: AtomicU64,
}

/// A large object, whose pieces arrive in any order.
#[derive(Default)]
struct Large {
    file: Mutex<Option<Arc<File>>>,
    /// Each piece's part of the Merkle tree, by the number of the piece.
    trees: Mutex<BTreeMap<u64, FileHasher>>,
}

/// The result of building objects.
pub(super) struct Made {
    pub(super) found: KnownObjects,
    /// Objects that the store lacked, and their bytes.
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
        let large = plan.objects().filter(|object| plan.is_large(*object)).map(|object| (object, Large::default()));
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
        let Plan { bundle, bases, ref reads } = *self.plan;
        let files = num::wide(reads.objects().count());
        self.progress.enter(Phase::Unpacking, reads.stored_bytes(), files);
        let lacking = self.plan.lacking();
        Delivery::new(bundle, bases, reads, jobs, self.progress).telling(lacking.is_empty()).run(
            input,
            || (),
            |(), content| {
                if content.portion.piece.is_some() { self.take_piece(content) } else { self.write_small(content) }
            },
            |(), object| self.finish_large(object),
        )?;
        self.copy_from_bases(&lacking, jobs)?;
        Ok(Made {
            found: self.found.into_inner(),
            objects: self.written.into_inner(),
            bytes: self.written_bytes.into_inner(),
        })
    }

    /// Builds the objects that a base has and the bundle does not carry.
    fn copy_from_bases(&self, lacking: &[Row<Object>], jobs: usize) -> Result<(), Error> {
        let Plan { bundle, bases, .. } = *self.plan;
        if lacking.is_empty() {
            return Ok(());
        }
        let bytes = lacking.iter().map(|object| self.plan.size(*object)).sum();
        self.progress.enter(Phase::Copying, bytes, num::wide(lacking.len()));
        let copied = from_bases(bundle, bases, lacking, jobs, |reader, object, of_base| {
            let mut tree = FileHasher::new(&parameters(self.algorithm));
            let size = self.plan.size(object);
            self.progress.add(size, 0);
            if size <= Image::WITHIN_LEN_MAX {
                let mut content = Vec::new();
                reader.read_in_parts(of_base, |_, part| {
                    content.extend(part);
                    Ok(())
                })?;
                tree.update(&content);
                return self.note_within(object, tree.finish(), content);
            }
            let failed = |error: io::Error| self.transaction.unwritten(error);
            let file = self.transaction.create(&large_name(object)).map_err(|error| failed(error.into()))?;
            reader.read_in_parts(of_base, |at, part| {
                self.progress.check()?;
                tree.update(part);
                write_sparse(&file, part, at).map_err(|error| failed(error.into()))
            })?;
            file.set_len(size).map_err(failed)?;
            drop(file);
            self.place(object, tree.finish())
        });
        copied.map(drop)
    }

    fn write_small(&self, content: &Content<'_>) -> Result<(), Error> {
        let (object, size) = (content.portion.object, content.range.end);
        let digest = if !content.has_holes() && self.algorithm == Algorithm::Sha256 {
            FileDigest::from(verity::digest(content.data))
        } else {
            self.tree(content).finish()
        };
        if size <= Image::WITHIN_LEN_MAX {
            return self.note_within(object, digest, content.data.to_vec());
        }
        if !self.transaction.has(&digest, size)? {
            self.transaction.write(&digest, |file| Ok(write_content(file, content)?))?;
            self.count(size);
        }
        self.note(object, digest);
        Ok(())
    }

    /// Returns the part of the Merkle tree that covers a content.
    fn tree(&self, content: &Content<'_>) -> FileHasher {
        let mut tree = FileHasher::new(&parameters(self.algorithm));
        content.for_each_part(&mut |part| tree.update(part));
        tree
    }

    fn count(&self, size: u64) {
        self.written.fetch_add(1, Ordering::Relaxed);
        self.written_bytes.fetch_add(size, Ordering::Relaxed);
    }

    fn note(&self, object: Row<Object>, digest: FileDigest) {
        self.found.lock().digests.insert(object, digest);
        self.progress.add(0, 1);
    }

    fn note_within(&self, object: Row<Object>, digest: FileDigest, content: Vec<u8>) -> Result<(), Error> {
        self.transaction.note_within(&content)?;
        self.found.lock().within.insert(object, content);
        self.note(object, digest);
        Ok(())
    }

    /// Writes a piece to its place.
    fn take_piece(&self, content: &Content<'_>) -> Result<(), Error> {
        let Portion { object, piece } = content.portion;
        let (Some(large), Some(piece)) = (self.large.get(&object), piece) else { return Ok(()) };
        let file = self.large_file(object, large)?;
        write_content(&file, content).map_err(|error| self.transaction.unwritten(error.into()))?;
        large.trees.lock().insert(piece, self.tree(content));
        Ok(())
    }

    fn large_file(&self, object: Row<Object>, large: &Large) -> Result<Arc<File>, Error> {
        let failed = |error: io::Error| self.transaction.unwritten(error);
        let mut slot = large.file.lock();
        if let Some(file) = &*slot {
            return Ok(Arc::clone(file));
        }
        let file = self.transaction.create(&large_name(object)).map_err(|error| failed(error.into()))?;
        file.set_len(self.plan.size(object)).map_err(failed)?;
        Ok(Arc::clone(slot.insert(Arc::new(file))))
    }

    /// Completes the object of a large file when all of its pieces are in place.
    fn finish_large(&self, object: Row<Object>) -> Result<(), Error> {
        let Some(large) = self.large.get(&object) else { return Ok(()) };
        let mut hasher = FileHasher::new(&parameters(self.algorithm));
        for tree in std::mem::take(&mut *large.trees.lock()).values() {
            hasher.append(tree);
        }
        // A file cannot be sealed while it is open for writing.
        large.file.lock().take();
        self.place(object, hasher.finish())
    }

    /// Turns a complete large file into its object, unless the store has it.
    fn place(&self, object: Row<Object>, digest: FileDigest) -> Result<(), Error> {
        let size = self.plan.size(object);
        if self.transaction.has(&digest, size)? {
            let removed = unlinkat(self.transaction.stage(), large_name(object), AtFlags::empty());
            removed.map_err(|error| self.transaction.unwritten(error.into()))?;
        } else {
            self.transaction.adopt(&digest, &large_name(object))?;
            self.count(size);
        }
        self.note(object, digest);
        Ok(())
    }
}

fn large_name(object: Row<Object>) -> String {
    format!("large-{object}")
}
