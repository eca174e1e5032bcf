//! fs-verity of files: computing digests, asking the kernel which it enforces, and sealing.
//!
//! A sealed file can be read, renamed and removed, but not written to, and the kernel returns no byte of it that differs from what was sealed:
//! reading such a byte fails. Its digest is that of [`digest`], and the kernel reports it without reading content.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("hello");
//! # use sealift_store as sealift;
//! use sealift::seal::{Parameters, SealOptions, digest, is_supported, measure, seal};
//! use sealift::Progress;
//!
//! let progress = Progress::default();
//! std::fs::write(&path, "hello")?;
//! let digest = digest(&path, &Parameters::default(), &progress)?;
//! if is_supported(&path)? {
//!     seal(&[path.clone()], &SealOptions::default(), &progress)?;
//!     assert_eq!(measure(&path)?, digest);
//! }
//! # Ok(())
//! # }
//! ```

mod decision;
mod digests;
mod index;
mod list;

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{CWD, Mode, OFlags, Stat, Timespec, Timestamps, UTIME_OMIT, fchmod, fstat, futimens, openat};
use rustix::io::{Errno, retry_on_intr};
use sealift_format::num;
pub use sealift_format::verity::{Algorithm, FileDigest, FileHasher, Parameters, ParametersError};
pub use sealift_verify::fsverity::KernelError;
use sealift_verify::fsverity::{self, Sealed};
use serde::Serialize;

use crate::threads::parallel::for_each;
use crate::{Error, Phase, Progress};
pub use decision::Seal;
pub use digests::Digests;
pub use index::KernelSignature;
pub(crate) use index::{WantedSignature, has_signature, seal_index};
use list::ListedFile;

/// Options of sealing.
#[derive(Clone, Debug, Default)]
pub struct SealOptions {
    /// The hash, the block size, and the salt.
    pub parameters: Parameters,
    /// A built-in signature for the single file to seal: PKCS#7 over its formatted digest.
    pub signature: Option<Vec<u8>>,
    /// Threads; 0 counts as 1.
    pub jobs: usize,
}

/// What was sealed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SealStats {
    /// Names of files that this run sealed.
    pub files: u64,
    /// Names of files that were already sealed, with the same parameters.
    pub files_before: u64,
    /// Names of entries that are neither directories nor regular files, and have no content to seal.
    pub others: u64,
    /// Bytes of the files that this run sealed.
    pub logical_bytes: u64,
}

/// Returns the digest that a file has, or would have if sealed with these parameters. Its content is read.
///
/// # Errors
/// Returns an error if it is not a regular file or cannot be read, or if the caller requested a stop.
pub fn digest(path: &Path, parameters: &Parameters, progress: &Progress) -> Result<FileDigest, Error> {
    let file = open(path)?;
    let len = file.metadata().map_err(|error| Error::io("look at", path, error))?.len();
    progress.enter(Phase::Hashing, len, 1);
    let digest = digest_of(file, path, parameters, progress)?;
    progress.add(0, 1);
    Ok(digest)
}

/// A read may return fewer bytes than requested; the digest does not depend on that.
fn digest_of(
    mut content: impl Read,
    path: &Path,
    parameters: &Parameters,
    progress: &Progress,
) -> Result<FileDigest, Error> {
    let (mut hasher, mut buffer) = (FileHasher::new(parameters), vec![0; 1 << 20]);
    loop {
        progress.check()?;
        match content.read(&mut buffer) {
            Ok(0) => return Ok(hasher.finish()),
            Ok(len) => {
                hasher.update(&buffer[..len]);
                progress.add(num::wide(len), 0);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::io("read", path, error)),
        }
    }
}

/// Returns the digest that the kernel enforces for a file. No content is read.
///
/// # Errors
/// Returns an error if the file cannot be opened or is not sealed.
pub fn measure(path: &Path) -> Result<FileDigest, Error> {
    fsverity::measure(open(path)?).map_err(|error| Error::kernel(path, error))
}

/// Returns whether the file system of `path`, a file or a directory, supports sealing.
///
/// # Errors
/// Returns an error if it cannot be opened, or if the kernel cannot tell.
pub fn is_supported(path: &Path) -> Result<bool, Error> {
    let opened = open_any(path).map_err(|error| Error::io("open", path, error))?;
    fsverity::is_supported(opened).map_err(|error| Error::kernel(path, error))
}

/// As [`is_supported`], for an open directory; `path` is its name, for messages.
pub(crate) fn is_supported_in(directory: BorrowedFd<'_>, path: &Path) -> Result<bool, Error> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = retry_on_intr(|| openat(directory, ".", flags, Mode::empty()));
    let opened = opened.map_err(|error| Error::io("open", path, error))?;
    fsverity::is_supported(opened).map_err(|error| Error::kernel(path, error))
}

/// Seals files, and all regular files below directories. Links inside a directory are not followed.
///
/// Nothing is sealed if one of the file systems has no fs-verity.
///
/// # Errors
/// Returns the first error: a file system has no fs-verity, a file cannot be opened, is open for writing, or is sealed with other parameters. Other
/// files may be sealed by then.
pub fn seal(paths: &[PathBuf], options: &SealOptions, progress: &Progress) -> Result<SealStats, Error> {
    progress.enter(Phase::Listing, 0, 0);
    let list = list::list(paths, progress)?;
    let places = list.places();
    if options.signature.is_some() && places.len() != 1 {
        return Err(Error::Usage("a built-in signature is for a single file".into()));
    }
    progress.enter(Phase::Sealing, 0, num::wide(places.len()));
    let [files, files_before, logical_bytes] = [const { AtomicU64::new(0) }; 3];
    for_each(options.jobs, &places, |place: &ListedFile<'_>| {
        progress.check()?;
        let failed = |error| Error::io("open", place.path(), error);
        let file = place.open().map_err(failed)?;
        let stat = file.metadata().map_err(failed)?;
        let signature = options.signature.as_deref();
        let sealed = seal_open(file.as_fd(), &options.parameters, signature);
        match sealed.map_err(|error| Error::kernel(place.path(), error))? {
            Sealed::Now => {
                files.fetch_add(1, Ordering::Relaxed);
                logical_bytes.fetch_add(stat.len(), Ordering::Relaxed);
                progress.add(0, 1);
            }
            Sealed::Before => {
                files_before.fetch_add(1, Ordering::Relaxed);
                progress.add(0, 1);
            }
        }
        Ok(())
    })?;
    Ok(SealStats {
        files: files.into_inner(),
        files_before: files_before.into_inner(),
        others: list.others(),
        logical_bytes: logical_bytes.into_inner(),
    })
}

/// Seals an open file, and keeps its mode and modification time: the kernel seals only writable files, and some file systems count the tree that
/// they write behind the content as a modification.
pub(crate) fn seal_open(
    file: BorrowedFd<'_>,
    parameters: &Parameters,
    signature: Option<&[u8]>,
) -> Result<Sealed, KernelError> {
    let before = fstat(file).map_err(io::Error::from)?;
    let seal = || fsverity::seal(file, parameters, signature);
    let sealed = match seal() {
        // A read-only file is read-only to its owner too, except for root.
        Err(KernelError::NotWritable) => {
            let mode = Mode::from_raw_mode(before.st_mode);
            fchmod(file, mode | Mode::WUSR).map_err(|_| KernelError::NotWritable)?;
            let sealed = seal();
            fchmod(file, mode).map_err(io::Error::from)?;
            sealed?
        }
        sealed => sealed?,
    };
    let after = fstat(file).map_err(io::Error::from)?;
    if (before.st_mtime, before.st_mtime_nsec) != (after.st_mtime, after.st_mtime_nsec) {
        match futimens(file, &modified_at(&before)) {
            // A writer who is not the owner cannot set the time.
            Ok(()) | Err(Errno::PERM) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
    }
    Ok(sealed)
}

/// Returns a file's modification time; the access time is left alone.
fn modified_at(stat: &Stat) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: stat.st_mtime, tv_nsec: stat.st_mtime_nsec.cast_signed() },
    }
}

/// Opens a file of any type that the user named, without blocking on a fifo.
fn open_any(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(retry_on_intr(|| openat(CWD, path, flags, Mode::empty()))?)
}

fn open(path: &Path) -> Result<File, Error> {
    let failed = |error| Error::io("open", path, error);
    let file = File::from(open_any(path).map_err(failed)?);
    match file.metadata().map_err(failed)?.is_file() {
        true => Ok(file),
        false => Err(Error::unexpected(path, "is not a regular file, and has no digest")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    /// Reads with these lengths, repeated; 0 is a read interrupted by a signal.
    struct Short<'a> {
        rest: &'a [u8],
        lens: &'a [usize],
        at: usize,
    }

    impl Read for Short<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let len = self.lens[self.at % self.lens.len()];
            self.at += 1;
            if len == 0 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let (part, rest) = self.rest.split_at(self.rest.len().min(len));
            buffer[..part.len()].copy_from_slice(part);
            self.rest = rest;
            Ok(part.len())
        }
    }

    proptest! {
        #[test]
        fn short_reads_give_the_same(
            content in proptest::collection::vec(any::<u8>(), 0..30_000),
            mut lens in proptest::collection::vec(0..6000_usize, 0..20),
            algorithm in 0..2_usize,
            salt in proptest::collection::vec(any::<u8>(), 0..=32),
        ) {
            lens.push(1);
            let parameters = Parameters::new(Algorithm::ALL[algorithm], 4096, &salt).expect("they are good");
            let mut whole = FileHasher::new(&parameters);
            whole.update(&content);
            let short = Short { rest: &content, lens: &lens, at: 0 };
            let digest = digest_of(short, Path::new("short"), &parameters, &Progress::default()).expect("it is read");
            prop_assert_eq!(digest, whole.finish());
        }
    }

    #[test]
    fn reads_of_every_length_give_the_same() {
        let content: Vec<u8> = (0..251).cycle().take(9000).collect();
        let whole = FileDigest::from(sealift_format::verity::digest(&content));
        for len in 1..=content.len() {
            let short = Short { rest: &content, lens: &[len], at: 0 };
            let digest = digest_of(short, Path::new("short"), &Parameters::default(), &Progress::default());
            assert_eq!(digest.expect("it is read"), whole, "{len}");
        }
    }

    #[test]
    fn what_is_no_file_has_no_digest() {
        let folder = tempfile::tempdir().expect("a folder");
        let fifo = folder.path().join("fifo");
        rustix::fs::mknodat(CWD, &fifo, rustix::fs::FileType::Fifo, Mode::RWXU, 0).expect("a fifo");
        for path in [folder.path(), &fifo] {
            let error = digest(path, &Parameters::default(), &Progress::default()).expect_err("no file");
            assert!(matches!(error, Error::Unexpected { .. }), "{error}");
        }
    }

    /// Sealing is tested where the kernel supports it; elsewhere nothing may be left half done.
    #[test]
    fn a_file_system_without_it_is_found_before_anything_is_sealed() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("file"), "content").expect("a file");
        if is_supported(folder.path()).expect("the kernel says") {
            return;
        }
        let error = seal(&[folder.path().into()], &SealOptions::default(), &Progress::default());
        let error = error.expect_err("there is no fs-verity");
        let Error::Kernel { path, source } = &error else { panic!("{error}") };
        assert!(path == folder.path() && matches!(**source, KernelError::Unsupported), "{error}");
        assert_eq!((error.word(), error.exit_status()), ("verity", 2));
    }
}
