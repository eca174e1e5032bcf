//! Writes into a store: objects wait in a stage until all are there, and are moved to their places before anything names them.
//!
//! Staged objects are sealed if requested, and flushed (syncfs); then each object gets its name, and the names are flushed.
//! If the run is killed at any point, the store has what it had, and perhaps unreferenced objects, each of them whole.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};

use rustix::fs::{AtFlags, Mode as Permissions, OFlags, renameat, syncfs, unlinkat};
use rustix::io::Errno;
use sealift_format::hex;
use sealift_format::num;
use sealift_format::verity::{FileDigest, FileHasher};
use sealift_verify::fsverity::{self, KernelError, Sealed};

use super::repo::{Repo, make_directory, object_name};
use crate::fs::confined::{names_in, open_name};
use crate::fs::rename::{moves_no_directory, rename_new};
use crate::ostree::{Folders, ObjectStage};
use crate::progress::Phase;
use crate::seal::seal_open;
use crate::threads::parallel::for_each;
use crate::{Error, Progress};

/// The folder of stages.
pub(super) const TMP: &str = "sealift/tmp";

/// The file in a stage that has the contents that are stored within images, each after a byte with its length.
pub(super) const WITHIN: &str = "within";

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// Pending changes to a store. Several threads may write objects; nothing is in its place before [`Self::finish`], and a dropped transaction leaves
/// nothing, unless its stage is kept.
#[derive(Debug)]
pub(crate) struct Transaction<'a> {
    repo: &'a Repo,
    objects: OwnedFd,
    stage: ObjectStage,
    folders: Folders,
    /// Whether to seal objects.
    seals: bool,
    staged: Mutex<HashSet<FileDigest>>,
    within: Mutex<Option<File>>,
    /// Existing objects that did not match their names.
    replaced: AtomicU64,
    sealed: AtomicU64,
}

impl<'a> Transaction<'a> {
    /// Begins a transaction.
    pub(crate) fn begin(repo: &'a Repo, seals: bool) -> Result<Self, Error> {
        let failed = |error: Errno| Error::io("write to", repo.path(), error);
        let tmp = repo.make_directories(TMP, 0o700).map_err(failed)?;
        let stage = ObjectStage::create(tmp).map_err(failed)?;
        let objects = make_directory(repo.root(), "objects", 0o755).map_err(failed)?;
        let folders = Folders::of(objects.as_fd(), stage.directory()).map_err(failed)?;
        Ok(Self {
            repo,
            objects,
            stage,
            folders,
            seals,
            staged: Mutex::default(),
            within: Mutex::default(),
            replaced: AtomicU64::new(0),
            sealed: AtomicU64::new(0),
        })
    }

    /// Leaves the stage to the next run, if it has objects.
    pub(crate) fn keep(&mut self) {
        if !self.list().is_empty() {
            self.stage.keep();
        }
    }

    /// Notes a content that is stored within images, for the next run if this one does not end.
    pub(crate) fn note_within(&self, content: &[u8]) -> Result<(), Error> {
        let len = u8::try_from(content.len()).unwrap_or(u8::MAX); // at most 64
        let record = [&[len], content].concat();
        let mut within = self.within.lock();
        let file = match &mut *within {
            Some(file) => file,
            none => none.insert(self.create(WITHIN).map_err(|error| self.unwritten(error.into()))?),
        };
        file.write_all(&record).map_err(|error| self.unwritten(error))
    }

    pub(crate) fn stage(&self) -> BorrowedFd<'_> {
        self.stage.directory()
    }

    pub(crate) fn replaced(&self) -> u64 {
        self.replaced.load(Ordering::Relaxed)
    }

    pub(crate) fn sealed(&self) -> u64 {
        self.sealed.load(Ordering::Relaxed)
    }

    /// Returns whether the store has an object that is correct, and sealed if requested: its name alone proves nothing. The kernel vouches for a
    /// sealed object; any other is read.
    ///
    /// # Errors
    /// Returns an error if this cannot be determined, or if the kernel refuses to seal it.
    pub(crate) fn has(&self, digest: &FileDigest, size: u64) -> Result<bool, Error> {
        if !digest.as_bytes().first().is_some_and(|first| self.folders.has(*first)) {
            return Ok(false);
        }
        let Some((mut file, found)) = self.repo.open_object(digest)? else { return Ok(false) };
        let path = || self.repo.object_path(digest);
        if found == size {
            match fsverity::check(&file, digest) {
                Ok(()) => return Ok(true),
                Err(KernelError::NotSealed | KernelError::Unsupported) => {
                    let hashed = hash(&mut file, self.repo).map_err(|error| Error::io("read", path(), error))?;
                    if hashed == *digest {
                        return self.seal_open(&file, digest).map(|()| true);
                    }
                }
                Err(KernelError::OtherDigest { .. }) => {}
                Err(error) => return Err(Error::kernel(path(), error)),
            }
        }
        tracing::warn!(path = %path().display(), "replacing an object that does not match its name");
        self.replaced.fetch_add(1, Ordering::Relaxed);
        Ok(false)
    }

    fn seal_open(&self, file: &File, digest: &FileDigest) -> Result<(), Error> {
        if !self.seals {
            return Ok(());
        }
        let failed = |error| Error::kernel(self.repo.object_path(digest), error);
        if seal_open(file.as_fd(), self.repo.parameters(), None).map_err(failed)? == Sealed::Now {
            self.sealed.fetch_add(1, Ordering::Relaxed);
        }
        fsverity::check(file, digest).map_err(failed)
    }

    /// Creates a file in the stage that is not an object yet.
    pub(crate) fn create(&self, name: &str) -> Result<File, Errno> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        open_name(self.stage(), name.as_bytes(), flags, Permissions::from_raw_mode(0o644)).map(File::from)
    }

    /// Has `write` write an object, unless another thread does.
    ///
    /// # Errors
    /// Returns an error if it cannot be written. Nothing is left then.
    pub(crate) fn write(&self, digest: &FileDigest, write: impl FnOnce(&File) -> io::Result<()>) -> Result<(), Error> {
        let failed = |error: io::Error| Error::io("write", self.repo.object_path(digest), error);
        let Some(name) = self.reserve(digest)? else { return Ok(()) };
        let written = self.create(&name).map_err(io::Error::from).and_then(|file| write(&file));
        written.map_err(|error| {
            self.give_up(digest, &name);
            failed(error)
        })
    }

    /// Turns a file of the stage into an object.
    pub(crate) fn adopt(&self, digest: &FileDigest, from: &str) -> Result<(), Error> {
        let Some(name) = self.reserve(digest)? else { return Ok(()) };
        let renamed = renameat(self.stage(), from, self.stage(), &*name);
        renamed.map_err(|error| {
            self.give_up(digest, &name);
            Error::io("write", self.repo.object_path(digest), error)
        })
    }

    /// Reserves the name of an object in the stage; `None` if another thread has it.
    pub(super) fn reserve(&self, digest: &FileDigest) -> Result<Option<String>, Error> {
        if !self.list().insert(digest.clone()) {
            return Ok(None);
        }
        let first = digest.as_bytes().first().copied().unwrap_or(0);
        let folder = self.folders.wait_in(self.stage(), first);
        let folder = folder.map_err(|error| Error::io("create", self.repo.object_path(digest), error))?;
        Ok(Some(staged_name(digest, folder)))
    }

    pub(super) fn give_up(&self, digest: &FileDigest, name: &str) {
        // If this fails, the file is removed with the stage, and is never moved into place.
        let _ = unlinkat(self.stage(), name, AtFlags::empty());
        self.list().remove(digest);
    }

    /// Seals what is staged, if requested. No staged object may still be open for writing.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses, or reports another digest.
    pub(crate) fn seal(&self, jobs: usize, progress: &Progress) -> Result<(), Error> {
        if !self.seals {
            return Ok(());
        }
        let staged: Vec<FileDigest> = self.list().iter().cloned().collect();
        progress.enter(Phase::Sealing, 0, num::wide(staged.len()));
        for_each(jobs, &staged, |digest| {
            progress.check()?;
            let failed = |error: Errno| Error::io("open", self.repo.object_path(digest), error);
            let name = self.name_in_stage(digest);
            let file = open_name(self.stage(), name.as_bytes(), OFlags::RDONLY, Permissions::empty());
            self.seal_open(&File::from(file.map_err(failed)?), digest)?;
            progress.add(0, 1);
            Ok(())
        })
    }

    fn name_in_stage(&self, digest: &FileDigest) -> String {
        let first = digest.as_bytes().first().copied().unwrap_or(0);
        staged_name(digest, self.folders.folder_of(first))
    }

    /// Moves everything that was written to its place. Returns the number of objects. `ready` is called when all of it is durable and nothing has
    /// its name yet; if it fails, nothing gets one.
    ///
    /// # Errors
    /// Returns the error of `ready`, or an error if the store cannot be written to; its state is then as after a kill.
    pub(crate) fn finish(&self, ready: impl FnOnce() -> Result<(), Error>) -> Result<u64, Error> {
        let mut staged: Vec<FileDigest> = self.list().iter().cloned().collect();
        // This also covers existing objects, which may be from a run that was killed before they were durable.
        self.sync()?;
        ready()?;
        self.folders.staged().try_for_each(|(folder, name)| self.place_folder(&folder, &name))?;
        staged.retain(|digest| self.name_in_stage(digest) == staged_name(digest, None));
        staged.sort_unstable_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
        for digest in &staged {
            let failed = |error: Errno| Error::io("create", self.repo.object_path(digest), error);
            let name = object_name(digest);
            let (folder, rest) = name.split_once('/').unwrap_or((&name, ""));
            let folder = make_directory(self.objects.as_fd(), folder, 0o755).map_err(failed)?;
            // An existing object of this name is damaged, or was written meanwhile and is as good.
            renameat(self.stage(), staged_name(digest, None), &folder, rest).map_err(failed)?;
        }
        let written = self.list().len();
        self.sync()?;
        Ok(num::wide(written))
    }

    /// Returns the error for writing to a staged file that is not an object yet.
    pub(crate) fn unwritten(&self, error: io::Error) -> Error {
        Error::io("write to", self.repo.path(), error)
    }

    /// Waits until everything is durable.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        syncfs(&self.objects).map_err(|error| Error::io("sync", self.repo.path(), error))
    }

    /// Moves a directory of the stage to its place, or its contents if that directory exists by now.
    fn place_folder(&self, folder: &str, name: &str) -> Result<(), Error> {
        let failed = |error: Errno| Error::io("create", self.repo.path().join("objects").join(name), error);
        let (stage, objects) = (self.stage(), self.objects.as_fd());
        match rename_new(stage, folder, objects, name) {
            Ok(()) => return Ok(()),
            Err(Errno::EXIST | Errno::NOTEMPTY) => {}
            Err(error) if moves_no_directory(error) => {
                make_directory(objects, name, 0o755).map_err(failed)?;
            }
            Err(error) => return Err(failed(error)),
        }
        let open = |at, name: &str| open_name(at, name.as_bytes(), DIRECTORY, Permissions::empty()).map_err(failed);
        let (from, to) = (open(stage, folder)?, open(objects, name)?);
        for (object, _) in names_in(from.as_fd()).map_err(failed)? {
            renameat(&from, &object[..], &to, &object[..]).map_err(failed)?;
        }
        Ok(())
    }

    fn list(&self) -> MutexGuard<'_, HashSet<FileDigest>> {
        self.staged.lock()
    }
}

fn staged_name(digest: &FileDigest, folder: Option<String>) -> String {
    let name = hex(digest.as_bytes());
    match folder {
        Some(folder) => format!("{folder}/{}", &name[2.min(name.len())..]),
        None => name,
    }
}

/// Returns the digest that a file would have if sealed as the store's objects are.
pub(crate) fn hash(file: &mut File, repo: &Repo) -> io::Result<FileDigest> {
    hash_with(file, repo, |_| ())
}

/// As [`hash`], but also passes the bytes to `take`.
pub(crate) fn hash_with(file: &mut File, repo: &Repo, mut take: impl FnMut(&[u8])) -> io::Result<FileDigest> {
    let (mut hasher, mut buffer) = (FileHasher::new(repo.parameters()), vec![0; 1 << 18]);
    file.rewind()?;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(hasher.finish()),
            Ok(len) => {
                hasher.update(&buffer[..len]);
                take(&buffer[..len]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
