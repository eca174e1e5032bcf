//! Seals objects of a repository with fs-verity, as libostree does if a repository's
//! configuration says so, with the same parameters.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FileType, Mode as Permissions, OFlags, fstat};
use rustix::io::Errno;
use sealift_format::Head;
use sealift_format::num;
use sealift_verify::fsverity::{self, Sealed};

use crate::fs::confined::open_name;
use crate::ostree::object::ObjectType;
use crate::ostree::records::records;
use crate::ostree::repo::Repo;
use crate::ostree::transaction::Transaction;
use crate::progress::Phase;
use crate::seal::{Parameters, Seal, WantedSignature, seal_open};
use crate::threads::parallel::for_each;
use crate::{Error, Progress};

/// Decides whether to seal the new objects of a bundle of that name, before anything is written.
///
/// # Errors
/// Returns an error if the repository's file system has no fs-verity, and that was required.
pub(super) fn plan(repo: &Repo, name: &str, wish: Seal) -> Result<bool, Error> {
    let is_supported = || fsverity::is_supported(repo.objects()).map_err(|error| Error::kernel(repo.path(), error));
    wish.decide(records(repo).is_sealed(name), repo.path(), is_supported)
}

/// Returns the bundle's signature for the kernel, to seal its index with. As for directories, it is required on request or if the index of the last
/// bundle of its name has one.
pub(super) fn signature<'a>(repo: &Repo, head: &'a Head, wish: Seal) -> Option<WantedSignature<'a>> {
    let is_required = wish.requires_signature(records(repo).is_signed(&head.root().identity.name));
    WantedSignature::of(head, is_required)
}

impl Transaction<'_> {
    /// Seals the objects that wait in the stage. Detached metadata may be replaced later, and is not sealed.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses.
    pub(super) fn seal(&self, jobs: usize, progress: &Progress) -> Result<u64, Error> {
        let staged: Vec<_> = self.staged().into_iter().filter(|(_, kind)| *kind != ObjectType::CommitMeta).collect();
        progress.enter(Phase::Sealing, 0, num::wide(staged.len()));
        let sealed = AtomicU64::new(0);
        for_each(jobs, &staged, |(checksum, kind)| {
            progress.check()?;
            let path = || self.repo.object_path(*kind, checksum);
            let name = self.name_in_stage(*kind, checksum);
            let opened = open_regular(self, &name).map_err(|error| Error::io("open", path(), error))?;
            if let Some(file) = opened
                && seal_open(file.as_fd(), &Parameters::default(), None)
                    .map_err(|error| Error::kernel(path(), error))?
                    == Sealed::Now
            {
                sealed.fetch_add(1, Ordering::Relaxed);
            }
            progress.add(0, 1);
            Ok(())
        })?;
        Ok(sealed.into_inner())
    }
}

/// Opens a file of the stage; `None` for a symbolic link, which has no content to seal.
fn open_regular(transaction: &Transaction<'_>, name: &str) -> Result<Option<OwnedFd>, Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    match open_name(transaction.stage.directory(), name.as_bytes(), flags, Permissions::empty()) {
        Err(Errno::LOOP) => Ok(None),
        Err(error) => Err(error),
        Ok(file) => {
            let is_file = FileType::from_raw_mode(fstat(&file)?.st_mode) == FileType::RegularFile;
            Ok(is_file.then_some(file))
        }
    }
}
