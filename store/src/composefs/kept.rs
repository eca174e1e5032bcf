//! The install records of a store, `sealift/state/NAME`: for the last bundle of each name the head, the index, the fs-verity digest of each
//! object, and the contents that are stored within images, one after the other.
//!
//! A record gives the base of a delta bundle, tells without reading which objects the store has, and by whose signature an image is
//! mounted. It is a short cut and no authority: head and index count by signature and digest, and objects by their names.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::PathBuf;

use rustix::fs::{AtFlags, Mode as Permissions, OFlags, fdatasync, fstat, fsync, renameat, unlinkat};
use rustix::io::Errno;
use sealift_format::num;
use sealift_format::verity::{self, Algorithm, FileDigest};
use sealift_format::{Bundle, Error as FormatError, Head, Index, Limits, Part};
use sealift_verify::kernel;

use super::image::WITHIN_LEN_MAX;
use super::repo::Repo;
use super::transaction::Transaction;
use crate::Error;
use crate::check_owner;
use crate::fs::confined::{names_below, open_beneath, open_name};
use crate::seal::seal_open;

/// The record of the last imported bundle of a name.
#[derive(Debug)]
pub(crate) struct InstallRecord {
    pub(crate) head: Head,
    pub(crate) index: Index,
    pub(crate) found: KnownObjects,
}

/// What is known of the objects of an index, by their numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownObjects {
    pub(crate) digests: HashMap<u32, FileDigest>,
    /// The contents stored inside images.
    pub(crate) within: HashMap<u32, Vec<u8>>,
}

/// The folder of records in a store.
const KEPT: &str = "sealift/state";

/// The name of a record in the stage.
const STAGED: &str = "kept";

impl KnownObjects {
    /// Compares the digests with the index's digest of them, if that uses this hash and all of them are known.
    ///
    /// # Errors
    /// Returns an error if they differ.
    pub(crate) fn check(&self, index: &Index, algorithm: Algorithm) -> Result<(), FormatError> {
        if algorithm != Algorithm::Sha256 || self.digests.len() < index.objects().len() {
            return Ok(());
        }
        let table: Vec<u8> = (0..)
            .zip(index.objects())
            .flat_map(|(number, _)| self.digests.get(&number).map_or(&[][..], FileDigest::as_bytes))
            .copied()
            .collect();
        if verity::digest(&table) == *index.verity() {
            return Ok(());
        }
        let what = "its digest of the objects' fs-verity digests is not theirs";
        Err(FormatError::Malformed { part: Part::Index, what, at: 0 })
    }

    fn encode(&self, index: &Index, algorithm: Algorithm) -> Vec<u8> {
        let unknown = vec![0; algorithm.digest_len().into()];
        let numbers = || (0..).zip(index.objects()).map(|(number, _)| number);
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
        for (number, _) in (0..).zip(index.objects()) {
            let digest = take(algorithm.digest_len().into())?;
            if digest.iter().any(|byte| *byte != 0) {
                found.digests.insert(number, FileDigest::new(algorithm, digest)?);
            }
        }
        for (number, object) in (0..).zip(index.objects()) {
            if object.size <= WITHIN_LEN_MAX && found.digests.contains_key(&number) {
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

impl InstallRecord {
    /// Returns the names of the bundles with a record.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be read.
    pub(crate) fn names(repo: &Repo) -> Result<Vec<String>, Error> {
        names_below(repo.root(), KEPT).map_err(|error| Error::io("read", repo.path().join(KEPT), error))
    }

    /// Reads the record of a name. A damaged one counts as missing: it is rebuilt.
    ///
    /// # Errors
    /// Returns an error if it cannot be read.
    pub(crate) fn load(repo: &Repo, name: &str) -> Result<Option<Self>, Error> {
        let Some(bytes) = read(repo, name)? else { return Ok(None) };
        match Self::parse(bytes, name, repo.algorithm()) {
            Ok(kept) => Ok(Some(kept)),
            Err(error) => {
                let path = path_of(repo, name);
                tracing::warn!(%error, path = %path.display(), "ignored the damaged record of this store");
                Ok(None)
            }
        }
    }

    /// Reads the existing record of a name.
    ///
    /// # Errors
    /// Returns an error if it is damaged or cannot be read.
    pub(crate) fn load_whole(repo: &Repo, name: &str) -> Result<Self, Error> {
        let bytes = read(repo, name)?.unwrap_or_default();
        Self::parse(bytes, name, repo.algorithm()).map_err(|error| Error::from(error).of_bundle(&path_of(repo, name)))
    }

    fn parse(mut bytes: Vec<u8>, name: &str, algorithm: Algorithm) -> Result<Self, FormatError> {
        let malformed = |part, what| FormatError::Malformed { part, what, at: 0 };
        let (head, rest) = Head::parse_first(&bytes)?;
        let mut rest = bytes.split_off(bytes.len() - rest.len());
        Limits::NONE.check(head.root())?;
        if head.root().identity.name != name {
            return Err(malformed(Part::Root, "it is of a bundle of another name"));
        }
        let contents = &head.root().contents;
        let table = rest.split_off(num::up_to(contents.index_len, rest.len()));
        if verity::digest(&rest) != contents.index_digest {
            return Err(FormatError::Digest { part: Part::Index });
        }
        let index = Index::parse(rest, head.root().maxima.entries)?;
        let found = KnownObjects::parse(&table, &index, algorithm);
        let found = found.ok_or_else(|| malformed(Part::Index, "the record of its objects is malformed"))?;
        Ok(Self { head, index, found })
    }

    pub(crate) fn digest(&self) -> [u8; 32] {
        self.head.root().contents.index_digest
    }
}

/// Writes the record of an imported bundle by one rename. It is sealed if the objects are.
///
/// # Errors
/// Returns an error if the store cannot be written to.
pub(crate) fn keep(
    transaction: &Transaction<'_>,
    repo: &Repo,
    bundle: &Bundle,
    found: &KnownObjects,
    seals: bool,
) -> Result<(), Error> {
    let name = &bundle.head.root().identity.name;
    let bytes =
        [&bundle.head.encode(), bundle.index.bytes(), &found.encode(&bundle.index, repo.algorithm())[..]].concat();
    if read(repo, name)?.is_some_and(|kept| kept == bytes) {
        return Ok(());
    }
    let path = path_of(repo, name);
    let failed = |error: std::io::Error| Error::io("write", &path, error);
    let write = || -> Result<(), std::io::Error> {
        match unlinkat(transaction.stage(), STAGED, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let mut file = transaction.create(STAGED)?;
        file.write_all(&bytes)?;
        Ok(fdatasync(&file)?)
    };
    write().map_err(failed)?;
    if seals {
        let file = open_name(transaction.stage(), STAGED.as_bytes(), OFlags::RDONLY, Permissions::empty());
        let file = file.map_err(|error| failed(error.into()))?;
        seal_open(file.as_fd(), repo.parameters(), None).map_err(|error| Error::kernel(&path, error))?;
    }
    let folder = repo.make_directories(KEPT, 0o700).map_err(|error| failed(error.into()))?;
    let named = renameat(transaction.stage(), STAGED, &folder, &**name).and_then(|()| fsync(&folder));
    named.map_err(|error| failed(error.into()))
}

/// Returns whether the record of a name is sealed, as its objects then are.
pub(crate) fn is_sealed(repo: &Repo, name: &str) -> bool {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    let opened = open_beneath(repo.root(), format!("{KEPT}/{name}").as_bytes(), flags, Permissions::empty());
    opened.is_ok_and(|file| kernel::measure(file).is_ok())
}

pub(crate) fn path_of(repo: &Repo, name: &str) -> PathBuf {
    repo.path().join(KEPT).join(name)
}

/// Reads one of our files, up to the maximum length of a record.
fn read(repo: &Repo, name: &str) -> Result<Option<Vec<u8>>, Error> {
    let failed = |error: std::io::Error| Error::io("read", path_of(repo, name), error);
    let folder =
        match open_beneath(repo.root(), KEPT.as_bytes(), OFlags::RDONLY | OFlags::DIRECTORY, Permissions::empty()) {
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            opened => opened.map_err(|error| failed(error.into()))?,
        };
    let stat = fstat(&folder).map_err(|error| failed(error.into()))?;
    // Anyone with write access may have put anything there.
    check_owner(stat.st_uid, stat.st_mode, &repo.path().join(KEPT))?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    let file = match open_name(folder.as_fd(), name.as_bytes(), flags, Permissions::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        opened => File::from(opened.map_err(|error| failed(error.into()))?),
    };
    let head = Head::LEN_MAX;
    // An index row has at least 40 bytes, and a record at most 128 per object.
    let len_max = Limits::default().index_len.saturating_mul(4) + u64::from(head);
    let mut bytes = Vec::new();
    file.take(len_max).read_to_end(&mut bytes).map_err(failed)?;
    Ok(Some(bytes))
}
