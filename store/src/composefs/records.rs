//! The install records of a store, in `sealift/state`. Besides head and index, each has the fs-verity digest of each object, and the contents that
//! are stored within images, one after the other.
//!
//! A record provides the base of a delta bundle; it says which objects the store has, without reading them, and by whose signature an image is
//! mounted.

use std::collections::HashMap;

use sealift_format::num;
use sealift_format::verity::{self, Algorithm, FileDigest};
use sealift_format::{Bundle, Error as FormatError, Head, Image, Index, Object, Part, Row};

use super::repo::Repo;
use super::transaction::Transaction;
use crate::install_record::{InstallRecord, Kept, NewRecord, Records, read_file};
use crate::kept_order::KeptOrder;
use crate::{Error, OwnDir, Record};

/// The record of the last imported bundle of a name.
#[derive(Debug)]
pub(crate) struct StoreRecord {
    pub(crate) head: Head,
    pub(crate) index: Index,
    pub(crate) found: KnownObjects,
    /// The order in which its contents are read, if it is known.
    pub(crate) order: Option<KeptOrder>,
}

/// What is known of the objects of an index, by their numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownObjects {
    pub(crate) digests: HashMap<Row<Object>, FileDigest>,
    /// The contents stored inside images.
    pub(crate) within: HashMap<Row<Object>, Vec<u8>>,
}

/// The file in a record that has its [`KnownObjects`].
const OBJECTS: &str = "objects";

impl KnownObjects {
    /// Compares the digests with the index's digest of them, if that uses this hash and all of them are known.
    ///
    /// # Errors
    /// Returns an error if they differ.
    pub(crate) fn check(&self, index: &Index, algorithm: Algorithm) -> Result<(), FormatError> {
        if algorithm != Algorithm::Sha256 || self.digests.len() < index.objects().len() {
            return Ok(());
        }
        let table: Vec<u8> = Row::all(index.objects())
            .flat_map(|(number, _)| self.digests.get(&number).map_or(&[][..], FileDigest::as_bytes))
            .copied()
            .collect();
        if verity::digest(&table) == *index.verity() {
            return Ok(());
        }
        let what = "its digest of the objects' fs-verity digests does not match them";
        Err(FormatError::Malformed { part: Part::Index, what, at: 0 })
    }

    fn encode(&self, index: &Index, algorithm: Algorithm) -> Vec<u8> {
        let unknown = vec![0; algorithm.digest_len().into()];
        let numbers = || Row::all(index.objects()).map(|(number, _)| number);
        let mut out = Vec::new();
        for number in numbers() {
            out.extend(self.digests.get(&number).map_or(&unknown[..], FileDigest::as_bytes));
        }
        for content in numbers().filter_map(|number| self.within.get(&number)) {
            out.extend(content);
        }
        out
    }

    fn parse(mut bytes: &[u8], index: &Index, algorithm: Algorithm) -> Option<Self> {
        let mut found = Self::default();
        let mut take = |len: usize| {
            let (taken, rest) = bytes.split_at_checked(len)?;
            bytes = rest;
            Some(taken)
        };
        for (number, _) in Row::all(index.objects()) {
            let digest = take(algorithm.digest_len().into())?;
            if digest.iter().any(|byte| *byte != 0) {
                found.digests.insert(number, FileDigest::new(algorithm, digest)?);
            }
        }
        for (number, object) in Row::all(index.objects()) {
            if object.size <= Image::WITHIN_LEN_MAX && found.digests.contains_key(&number) {
                let content = take(usize::try_from(object.size).ok()?)?;
                if *blake3::hash(content).as_bytes() != object.id {
                    return None;
                }
                found.within.insert(number, content.to_vec());
            }
        }
        let is_whole = bytes.is_empty() && found.check(index, algorithm).is_ok();
        is_whole.then_some(found)
    }
}

impl StoreRecord {
    /// Reads the record of a name. A damaged one counts as missing: it is rebuilt.
    pub(crate) fn load(repo: &Repo, name: &str) -> Result<Option<Self>, Error> {
        records(repo).load_with(name, |dir, record| Self::with_objects(repo, dir, record))
    }

    /// Reads the record of a name, and tells a damaged one from a missing one.
    pub(crate) fn look(repo: &Repo, name: &str) -> Result<Kept<Self>, Error> {
        records(repo).look(name, |dir, record| Self::with_objects(repo, dir, record))
    }

    /// Reads the record of a name if `judge` accepts its head, with what that returned; `None` if there is none.
    ///
    /// # Errors
    /// Returns an error if it is refused or damaged, or cannot be read.
    pub(crate) fn load_judged<J>(
        repo: &Repo,
        name: &str,
        judge: impl FnOnce(&Head) -> Result<J, Error>,
    ) -> Result<Option<(J, Self)>, Error> {
        records(repo).load_judged(name, judge, |dir, record| Self::with_objects(repo, dir, record))
    }

    /// Reads the records of all names.
    pub(crate) fn load_all(repo: &Repo) -> Result<Vec<Self>, Error> {
        let names = records(repo).names()?;
        names.iter().filter_map(|name| Self::load(repo, name).transpose()).collect()
    }

    fn with_objects(repo: &Repo, dir: &OwnDir, record: InstallRecord) -> Result<Self, Error> {
        let InstallRecord { head, index, order } = record;
        // A digest takes at most 64 bytes, and so does a content within an image.
        let bytes =
            read_file(dir, OBJECTS, num::wide(index.objects().len()).saturating_mul(64 + Image::WITHIN_LEN_MAX))?;
        let found = KnownObjects::parse(&bytes, &index, repo.algorithm());
        let what = "the record of its objects is malformed";
        let found = found.ok_or(FormatError::Malformed { part: Part::Index, what, at: 0 })?;
        Ok(Self { head, index, found, order })
    }

    pub(crate) fn digest(&self) -> [u8; 32] {
        self.head.root().contents.index_digest
    }
}

/// Returns the records of a store.
pub(crate) fn records(repo: &Repo) -> Records<'_> {
    Records::new(repo.root(), repo.path(), Records::COMPOSEFS)
}

/// Writes the record of an imported bundle, unless it is unchanged, with a note that the names do not lead to its trees yet ([`Records::end`]). It is
/// sealed if the objects are.
pub(crate) fn write(
    transaction: &Transaction<'_>,
    repo: &Repo,
    bundle: &Bundle,
    found: &KnownObjects,
    order: Option<&KeptOrder>,
    is_sealed: bool,
) -> Result<(), Error> {
    let (records, files) = (records(repo), vec![(OBJECTS, found.encode(&bundle.index, repo.algorithm()))]);
    let mut new = NewRecord { bundle, files, order, is_sealed, signature: None, durable: true };
    if records.has(&new)? {
        return Ok(());
    }
    new.files.push((Record::MIXED, Vec::new()));
    let folder = repo.make_directories(Records::COMPOSEFS, 0o700);
    let folder = folder.map_err(|error| Error::io("write", repo.path().join(Records::COMPOSEFS), error))?;
    records.put(transaction.stage(), &folder, &new).map(drop)
}
