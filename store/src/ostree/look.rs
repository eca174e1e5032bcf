//! Checks objects of a repository: asks the kernel, and reads those that are not sealed.

use std::collections::HashMap;
use std::io::{ErrorKind, Read as _};
use std::os::fd::AsFd;

use parking_lot::{Mutex, MutexGuard};

use rustix::io::Errno;
use sealift_format::num;
use sealift_format::ostree::Checksum;
use sealift_format::verity::{self, Algorithm, FileDigest, FileHasher, Parameters};
use sealift_format::{Index, InodeKind, Object, OsTreeFile, Row};
use sealift_verify::fsverity::{self, KernelError};

use crate::ostree::object::ObjectType;
use crate::ostree::read::FileContent;
use crate::ostree::repo::Repo;
use crate::threads::parallel::{for_each, for_each_with};
use crate::{Error, Phase, Progress};

/// The result of checking an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectState {
    /// The kernel vouches for it.
    Vouched,
    /// It was read, and is correct.
    Right {
        bytes: u64,
    },
    Missing,
    /// It does not match its checksum.
    Changed,
}

/// How objects of an index are checked.
pub(crate) struct ObjectCheck<'a> {
    repo: &'a Repo,
    index: &'a Index,
    progress: &'a Progress,
    jobs: usize,
}

/// A file object with its number among those that are checked.
type Numbered<'a> = (usize, &'a OsTreeFile);

/// What is known of file objects after asking the kernel.
#[derive(Default)]
struct Asked<'a> {
    /// Objects with a known result.
    known: Vec<(usize, ObjectState)>,
    /// Sealed objects with correct attributes.
    sealed: Vec<Numbered<'a>>,
    /// Objects that have to be read.
    unknown: Vec<(Numbered<'a>, u64)>,
    /// Digests of contents, from the kernel or by reading, by their numbers in the index.
    digests: HashMap<Row<Object>, [u8; 32]>,
    /// Whether two files of equal content have different digests.
    are_several: bool,
}

/// Bytes per read.
const READ_LEN: usize = 1 << 18;

impl<'a> ObjectCheck<'a> {
    pub(crate) fn new(repo: &'a Repo, index: &'a Index, progress: &'a Progress, jobs: usize) -> Self {
        Self { repo, index, progress, jobs }
    }

    /// Checks a commit, dirtree or dirmeta against its expected bytes.
    pub(crate) fn metadata(&self, kind: ObjectType, checksum: &Checksum, bytes: &[u8]) -> Result<ObjectState, Error> {
        self.progress.check()?;
        self.progress.add(0, 1);
        let file = match self.repo.open_object(kind, checksum) {
            Ok(Some(file)) => file,
            Ok(None) => return Ok(ObjectState::Missing),
            Err(Errno::LOOP) => return Ok(ObjectState::Changed),
            Err(error) => return Err(Error::io("open", self.repo.object_path(kind, checksum), error)),
        };
        if self.measure(&file, kind, checksum)? == Some(verity::digest(bytes).into()) {
            return Ok(ObjectState::Vouched);
        }
        match self.repo.load_metadata(kind, checksum) {
            Ok(bytes) => Ok(ObjectState::Right { bytes: num::wide(bytes.len()) }),
            Err(error) => looked(error),
        }
    }

    /// Checks file objects.
    pub(crate) fn files(&self, files: &[Numbered<'a>]) -> Result<Vec<(usize, ObjectState)>, Error> {
        let asked = Mutex::new(Asked::default());
        for_each(self.jobs, files, |file| self.ask(*file, &asked))?;
        let mut asked = asked.into_inner();
        let unknown = std::mem::take(&mut asked.unknown);
        let asked = self.read(&unknown, asked)?;
        if asked.sealed.is_empty() {
            return Ok(asked.known);
        }
        if self.is_right(&asked) {
            let vouched = asked.sealed.iter().map(|(number, _)| (*number, ObjectState::Vouched));
            return Ok(asked.known.iter().copied().chain(vouched).collect());
        }
        tracing::info!("the kernel's digests do not match the index: reading all files");
        let size = |file: &OsTreeFile| object_of(file).map_or(0, |object| self.index.object(object).size);
        let unknown: Vec<_> = asked.sealed.iter().map(|own| (*own, size(own.1))).collect();
        self.read(&unknown, Asked { known: asked.known, ..Asked::default() }).map(|asked| asked.known)
    }

    /// Returns whether an object is an existing regular file that is not sealed.
    pub(crate) fn is_unsealed(&self, kind: ObjectType, checksum: &Checksum) -> Result<bool, Error> {
        match self.repo.open_object(kind, checksum) {
            Ok(Some(file)) => Ok(self.measure(&file, kind, checksum)?.is_none()),
            // A symbolic link has no content to seal.
            Ok(None) | Err(Errno::LOOP) => Ok(false),
            Err(error) => Err(Error::io("open", self.repo.object_path(kind, checksum), error)),
        }
    }

    fn measure(&self, file: impl AsFd, kind: ObjectType, checksum: &Checksum) -> Result<Option<FileDigest>, Error> {
        match fsverity::measure(file) {
            Ok(digest) => Ok(Some(digest)),
            Err(KernelError::NotSealed | KernelError::Unsupported) => Ok(None),
            Err(error) => Err(Error::kernel(self.repo.object_path(kind, checksum), error)),
        }
    }

    /// Compares everything except the content of a file object, and asks the kernel about that.
    fn ask(&self, (number, file): Numbered<'a>, asked: &Mutex<Asked<'a>>) -> Result<(), Error> {
        self.progress.check()?;
        self.progress.add(0, 1);
        let opened = match self.repo.open_file(&file.checksum) {
            Ok((attributes, content)) => {
                let content = match content {
                    FileContent::Symlink(_) => None,
                    FileContent::Regular(content) => Some(content),
                };
                let is_alike = attributes == *self.index.ostree_attributes(file);
                Ok((content, is_alike))
            }
            Err(error) => Err(looked(error)?),
        };
        let mut asked = lock(asked);
        match opened {
            Err(wrong) => asked.known.push((number, wrong)),
            // A symbolic link was compared with its checksum when it was opened.
            Ok((None, _)) => asked.known.push((number, ObjectState::Right { bytes: 0 })),
            Ok((Some(content), is_alike)) => {
                let digest = match content.plain().filter(|_| is_alike) {
                    Some(plain) => self.measure(plain, ObjectType::File, &file.checksum)?,
                    None => None,
                };
                let digest = digest.as_ref().and_then(plain_digest);
                match (object_of(file), digest) {
                    (Some(object), Some(digest)) => {
                        asked.note(object, digest);
                        asked.sealed.push((number, file));
                    }
                    _ => asked.unknown.push(((number, file), content.size())),
                }
            }
        }
        Ok(())
    }

    /// Returns whether the digests are complete and match the index's objects.
    fn is_right(&self, asked: &Asked<'_>) -> bool {
        let table: Option<Vec<[u8; 32]>> =
            Row::all(self.index.objects()).map(|(object, _)| asked.digests.get(&object).copied()).collect();
        !asked.are_several && table.is_some_and(|table| verity::digest(table.as_flattened()) == *self.index.verity())
    }

    /// Reads file objects, and compares them with their checksums.
    fn read(&self, files: &[(Numbered<'a>, u64)], asked: Asked<'a>) -> Result<Asked<'a>, Error> {
        if files.is_empty() {
            return Ok(asked);
        }
        let bytes = files.iter().map(|(_, size)| *size).fold(0, u64::saturating_add);
        self.progress.enter(Phase::Hashing, bytes, num::wide(files.len()));
        // Needed to verify the kernel's digests of the others.
        let takes_digest = !asked.sealed.is_empty();
        let asked = Mutex::new(asked);
        for_each_with(
            self.jobs,
            files,
            || vec![0; READ_LEN],
            |buffer, ((number, file), _)| {
                let (found, digest) = self.read_file(file, takes_digest, buffer)?;
                self.progress.add(0, 1);
                let mut asked = lock(&asked);
                asked.known.push((*number, found));
                if let (Some(object), Some(digest)) = (object_of(file), digest) {
                    asked.note(object, digest);
                }
                Ok(())
            },
        )?;
        Ok(asked.into_inner())
    }

    /// Reads a file object to its end. Also returns the digest that its content would have if sealed.
    fn read_file(
        &self,
        file: &OsTreeFile,
        takes_digest: bool,
        buffer: &mut [u8],
    ) -> Result<(ObjectState, Option<[u8; 32]>), Error> {
        let mut content = match self.repo.open_file(&file.checksum) {
            Ok((_, FileContent::Regular(content))) => content,
            Ok((_, FileContent::Symlink(_))) => return Ok((ObjectState::Right { bytes: 0 }, None)),
            Err(error) => return Ok((looked(error)?, None)),
        };
        let size = content.size();
        let mut hasher = takes_digest.then(|| FileHasher::new(&Parameters::default()));
        loop {
            self.progress.check()?;
            match content.read(buffer) {
                Ok(0) => break,
                Ok(len) => {
                    if let Some(hasher) = &mut hasher {
                        hasher.update(&buffer[..len]);
                    }
                    self.progress.add(num::wide(len), 0);
                }
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::InvalidData | ErrorKind::InvalidInput | ErrorKind::UnexpectedEof
                    ) =>
                {
                    return Ok((ObjectState::Changed, None));
                }
                Err(error) => return Err(self.repo.unread(&file.checksum, error)),
            }
        }
        let digest = hasher.and_then(|hasher| plain_digest(&hasher.finish()));
        Ok((ObjectState::Right { bytes: size }, digest))
    }
}

impl Asked<'_> {
    fn note(&mut self, object: Row<Object>, digest: [u8; 32]) {
        self.are_several |= self.digests.insert(object, digest).is_some_and(|other| other != digest);
    }
}

fn lock<'m, 'a>(asked: &'m Mutex<Asked<'a>>) -> MutexGuard<'m, Asked<'a>> {
    asked.lock()
}

/// Returns the content of a regular file.
fn object_of(file: &OsTreeFile) -> Option<Row<Object>> {
    match file.kind {
        InodeKind::Regular(object) => Some(object),
        _ => None,
    }
}

/// Returns a digest in the form that the index's digest of digests uses.
fn plain_digest(digest: &FileDigest) -> Option<[u8; 32]> {
    digest.as_bytes().try_into().ok().filter(|_| digest.algorithm() == Algorithm::Sha256)
}

/// Turns an error about an object into its result; returns other errors as `Err`.
fn looked(error: Error) -> Result<ObjectState, Error> {
    match error {
        Error::Repository { fault, .. } if matches!(*fault, crate::error::RepoFault::Missing { .. }) => {
            Ok(ObjectState::Missing)
        }
        Error::Repository { .. } => Ok(ObjectState::Changed),
        error => Err(error),
    }
}
