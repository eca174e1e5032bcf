//! The base objects in a composefs store, or inside its images.

use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use sealift_format::num::size;
use sealift_format::{Index, Object, Row};

use super::parts::KnownParts;
use super::{Base, Holder, ObjectReader, path_of_object};
use crate::composefs::records::{StoreRecord, records};
use crate::composefs::{KnownObjects, Repo};
use crate::install_record::InstallRecord;
use crate::{Error, Progress};

/// A store that holds the objects of an index.
#[derive(Debug)]
pub(super) struct StoreBase {
    repo: Arc<Repo>,
    found: KnownObjects,
    /// Those of the objects whose files have been compared.
    known: KnownParts,
}

/// The state of one thread.
#[derive(Debug)]
pub(super) struct StoreReader<'a> {
    base: &'a StoreBase,
    index: &'a Index,
}

/// Returns the bases that a store has.
pub(super) fn of_store(path: &Path) -> Result<Vec<Base>, Error> {
    let Some(repo) = Repo::open(path)?.map(Arc::new) else { return Ok(Vec::new()) };
    let kept = StoreRecord::load_all(&repo)?.into_iter();
    Ok(kept.map(|kept| Base::of_store(&repo, kept)).collect())
}

/// Returns the install records of a store.
pub(super) fn records_of_store(path: &Path) -> Result<Vec<InstallRecord>, Error> {
    match Repo::open(path)? {
        Some(repo) => records(&repo).load_all(),
        None => Err(Error::NoStore { path: path.to_owned() }),
    }
}

impl Base {
    /// Uses a store as a base, with what it recorded of a bundle.
    pub(crate) fn of_store(repo: &Arc<Repo>, kept: StoreRecord) -> Self {
        let StoreRecord { index, found, order, .. } = kept;
        let holder = Arc::new(StoreBase { repo: Arc::clone(repo), found, known: KnownParts::default() });
        Self { index, holder, identity: None, compatible: None, order }
    }
}

impl Holder for StoreBase {
    fn reader<'a>(&'a self, index: &'a Index) -> Box<dyn ObjectReader + 'a> {
        Box::new(StoreReader::new(self, index))
    }

    fn has_place(&self, object: Row<Object>) -> bool {
        self.found.digests.contains_key(&object)
    }
}

impl<'a> StoreReader<'a> {
    pub(super) fn new(base: &'a StoreBase, index: &'a Index) -> Self {
        Self { base, index }
    }

    fn failed(&self, error: io::Error) -> Error {
        Error::io("read", self.base.repo.path(), error)
    }

    /// Returns whether the store has the object.
    fn has(&mut self, object: Row<Object>) -> Result<bool, Error> {
        // A content within an image was compared with its id when the record was read.
        if self.base.found.within.contains_key(&object) || self.base.known.has(object) {
            return Ok(true);
        }
        let Some(digest) = self.base.found.digests.get(&object) else { return Ok(false) };
        let Some((file, _)) = self.base.repo.open_object(digest)? else { return Ok(false) };
        let mut comparison = self.base.known.compare(object, self.index.object(object));
        comparison.take_all(file).map_err(|error| self.failed(error))?;
        Ok(comparison.finish())
    }

    fn missing(&self, object: Row<Object>) -> Error {
        let path = path_of_object(self.index, object);
        Error::missing_base(self.base.repo.path(), format!("the content of {path} was changed or removed"))
    }
}

impl ObjectReader for StoreReader<'_> {
    fn holds(&mut self, object: Row<Object>, progress: &Progress) -> Result<bool, Error> {
        progress.add(self.index.object(object).size, 0);
        self.has(object)
    }

    fn read(&mut self, object: Row<Object>, range: Range<u64>, out: &mut Vec<u8>) -> Result<(), Error> {
        if let Some(part) =
            self.base.found.within.get(&object).and_then(|all| all.get(size(range.start)..size(range.end)))
        {
            out.extend(part);
            return Ok(());
        }
        if !self.has(object)? {
            return Err(self.missing(object));
        }
        let Some(digest) = self.base.found.digests.get(&object) else { return Err(self.missing(object)) };
        let Some((file, _)) = self.base.repo.open_object(digest)? else { return Err(self.missing(object)) };
        let row = self.index.object(object);
        let read = self.base.known.read(object, row, |part, at| file.read_exact_at(part, at), &range, out);
        match read.map_err(|error| self.failed(error))? {
            true => Ok(()),
            false => Err(self.missing(object)),
        }
    }
}
