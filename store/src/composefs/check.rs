//! Checks objects of a store against their names: asks the kernel first, and reads and hashes those that are not sealed.

use std::fs::File;
use std::io::Read as _;

use parking_lot::Mutex;

use ::composefs::erofs::reader::collect_objects;
use ::composefs::fsverity::{FsVerityHashValue, Sha256HashValue, Sha512HashValue};
use sealift_format::hex;
use sealift_format::num;
use sealift_format::verity::{Algorithm, FileDigest, FileHasher};
use sealift_verify::fsverity::{self, KernelError};

use crate::composefs::repo::{Repo, object_name};
use crate::composefs::transaction::hash;
use crate::progress::Phase;
use crate::threads::parallel::for_each;
use crate::{Error, Progress};

/// A fault of an object.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// The object is missing.
    Missing,
    /// The object's content has this digest.
    Other(FileDigest),
    /// The object is sealed, and the kernel reports this digest.
    OtherSealed(FileDigest),
}

impl Fault {
    /// Returns the fault as an error, for callers that cannot continue.
    pub(crate) fn error(self, repo: &Repo, digest: &FileDigest) -> Error {
        match self {
            Self::Missing => {
                let problem = format!("object {} is missing", object_name(digest));
                Error::DamagedStore { path: repo.path().to_owned(), problem }
            }
            Self::OtherSealed(found) => {
                let expected = digest.clone();
                Error::kernel(repo.object_path(digest), KernelError::OtherDigest { expected, found })
            }
            Self::Other(found) => {
                let (path, expected) = (repo.object_path(digest), Box::new(digest.clone()));
                Error::StoreObject { path, expected, found: Box::new(found) }
            }
        }
    }
}

/// The settings common to all checks.
pub(crate) struct Check<'a> {
    pub(crate) repo: &'a Repo,
    pub(crate) progress: &'a Progress,
    /// Threads, at least 1.
    pub(crate) jobs: usize,
    /// Receives each fault, and decides whether to continue.
    pub(crate) note: &'a (dyn Fn(&FileDigest, Fault) -> Result<(), Error> + Sync),
}

/// An image that matches its digest.
pub(crate) struct RightImage {
    pub(crate) file: File,
    pub(crate) bytes: Vec<u8>,
    /// Whether the kernel vouches for it.
    pub(crate) is_sealed: bool,
}

/// The result of checking objects.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    /// Objects that the kernel vouches for.
    pub(crate) vouched: u64,
    /// Objects that were read, and their bytes.
    pub(crate) hashed: u64,
    pub(crate) hashed_bytes: u64,
    /// Objects that are correct but not sealed.
    pub(crate) unsealed: Vec<FileDigest>,
}

/// The kernel's answer for an open file.
enum Answer {
    Vouched,
    NotSealed,
    Other(FileDigest),
}

impl Check<'_> {
    /// Reads an image and compares it with its digest. Returns `None` after reporting a fault if it does not match.
    pub(crate) fn image(&self, digest: &FileDigest) -> Result<Option<RightImage>, Error> {
        let Some((mut file, size)) = self.repo.open_object(digest)? else {
            return (self.note)(digest, Fault::Missing).map(|()| None);
        };
        let is_sealed = match self.ask(&file, digest)? {
            Answer::Vouched => true,
            Answer::NotSealed => false,
            Answer::Other(found) => return (self.note)(digest, Fault::OtherSealed(found)).map(|()| None),
        };
        let mut bytes = Vec::new();
        let read = file.by_ref().take(size).read_to_end(&mut bytes);
        read.map_err(|error| Error::io("read", self.repo.object_path(digest), error))?;
        // Hashed even if sealed: the bytes parsed must be the bytes measured.
        let found = digest_of(&bytes, self.repo);
        if found != *digest {
            return (self.note)(digest, Fault::Other(found)).map(|()| None);
        }
        Ok(Some(RightImage { file, bytes, is_sealed }))
    }

    /// Compares objects with their digests.
    pub(crate) fn objects(&self, objects: &[FileDigest]) -> Result<Checked, Error> {
        let (vouched, unsealed) = self.measure(objects)?;
        let checked = Mutex::new(Checked { vouched, ..Checked::default() });
        if !unsealed.is_empty() {
            let bytes = unsealed.iter().map(|(_, size)| *size).fold(0, u64::saturating_add);
            self.progress.enter(Phase::Hashing, bytes, count(&unsealed));
        }
        for_each(self.jobs, &unsealed, |(digest, size)| {
            self.progress.check()?;
            let Some((mut file, _)) = self.repo.open_object(digest)? else {
                return (self.note)(digest, Fault::Missing);
            };
            let found = hash(&mut file, self.repo);
            let found = found.map_err(|error| Error::io("read", self.repo.object_path(digest), error))?;
            self.progress.add(*size, 1);
            let is_right = found == *digest;
            let mut checked = checked.lock();
            checked.hashed += 1;
            checked.hashed_bytes = checked.hashed_bytes.saturating_add(*size);
            checked.unsealed.extend(is_right.then(|| digest.clone()));
            drop(checked);
            if is_right { Ok(()) } else { (self.note)(digest, Fault::Other(found)) }
        })?;
        Ok(checked.into_inner())
    }

    /// Asks the kernel about all objects. Returns how many it vouches for, and the unsealed ones with their sizes.
    fn measure(&self, objects: &[FileDigest]) -> Result<(u64, Vec<(FileDigest, u64)>), Error> {
        self.progress.enter(Phase::Verifying, 0, count(objects));
        let found = Mutex::new((0, Vec::new()));
        for_each(self.jobs, objects, |digest| {
            self.progress.check()?;
            self.progress.add(0, 1);
            let Some((file, size)) = self.repo.open_object(digest)? else {
                return (self.note)(digest, Fault::Missing);
            };
            let answer = self.ask(&file, digest)?;
            let mut found = found.lock();
            match answer {
                Answer::Vouched => found.0 += 1,
                Answer::NotSealed => found.1.push((digest.clone(), size)),
                Answer::Other(other) => {
                    drop(found);
                    return (self.note)(digest, Fault::OtherSealed(other));
                }
            }
            Ok(())
        })?;
        Ok(found.into_inner())
    }

    fn ask(&self, file: &File, digest: &FileDigest) -> Result<Answer, Error> {
        match fsverity::check(file, digest) {
            Ok(()) => Ok(Answer::Vouched),
            Err(KernelError::NotSealed | KernelError::Unsupported) => Ok(Answer::NotSealed),
            Err(KernelError::OtherDigest { found, .. }) => Ok(Answer::Other(found)),
            Err(error) => Err(Error::kernel(self.repo.object_path(digest), error)),
        }
    }
}

fn count<T>(items: &[T]) -> u64 {
    num::wide(items.len())
}

/// Returns the digest that bytes have as an object of a store.
pub(crate) fn digest_of(bytes: &[u8], repo: &Repo) -> FileDigest {
    let mut hasher = FileHasher::new(repo.parameters());
    hasher.update(bytes);
    hasher.finish()
}

/// Returns the objects that an image names.
///
/// # Errors
/// Returns an error if it cannot be parsed as an image.
pub(crate) fn objects_of(image: &[u8], digest: &FileDigest, repo: &Repo) -> Result<Vec<FileDigest>, Error> {
    let objects = match repo.algorithm() {
        Algorithm::Sha256 => collect::<Sha256HashValue>(image, Algorithm::Sha256),
        Algorithm::Sha512 => collect::<Sha512HashValue>(image, Algorithm::Sha512),
    };
    objects.ok_or_else(|| {
        let problem = format!("the image {} cannot be read", hex(digest.as_bytes()));
        Error::Store { path: repo.path().to_owned(), problem }
    })
}

fn collect<D: FsVerityHashValue>(image: &[u8], algorithm: Algorithm) -> Option<Vec<FileDigest>> {
    let objects = collect_objects::<D>(image).ok()?;
    objects.iter().map(|digest| FileDigest::new(algorithm, digest.as_bytes())).collect()
}
