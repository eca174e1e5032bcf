//! fs-verity of files: computing digests, asking the kernel which it enforces, and sealing.
//!
//! A sealed file can be read, renamed and removed, but not written to, and the kernel returns no byte of it that differs from what
//! was sealed: reading that is an error from then on. Its digest is that of [`digest`], and is asked for without reading content.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("hello");
//! use sealift_store::seal::{Parameters, SealOptions, digest, is_supported, measure, seal};
//! use sealift_store::Progress;
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
pub use sealift_verify::kernel::KernelError;
use sealift_verify::kernel::{self, Sealed};

use crate::threads::parallel::for_each;
use crate::{Error, Phase, Progress};
pub use decision::Seal;
pub use digests::Digests;
pub use index::KernelSignature;
pub(crate) use index::{WantedSignature, has_signature, seal_index};
use list::Place;

/// How files are sealed.
#[derive(Clone, Debug, Default)]
pub struct SealOptions {
    /// The hash, the size of blocks, and the salt.
    pub parameters: Parameters,
    /// A built-in signature of the one file that is sealed: PKCS#7 over its formatted digest.
    pub signature: Option<Vec<u8>>,
    /// Threads; 0 is 1.
    pub jobs: usize,
}

/// What was sealed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SealStats {
    /// Names of files that were sealed.
    pub files: u64,
    /// Names of files that were sealed before, with the same parameters.
    pub files_before: u64,
    /// Names of what is neither a directory nor a regular file, and has no content to seal.
    pub others: u64,
    /// Bytes of the files that were sealed.
    pub logical_bytes: u64,
}

/// Returns the digest that a file has, or would have if it were sealed so. Its content is read.
///
/// # Errors
/// It is no regular file, or cannot be read; the caller wished to stop.
pub fn digest(path: &Path, parameters: &Parameters, progress: &Progress) -> Result<FileDigest, Error> {
    let file = open(path)?;
    let len = file.metadata().map_err(|error| Error::io("look at", path, error))?.len();
    progress.enter(Phase::Hashing, len, 1);
    let digest = digest_of(file, path, parameters, progress)?;
    progress.add(0, 1);
    Ok(digest)
}

/// However short its reads are, content has one digest.
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

/// Returns the digest that the kernel enforces of a file. No content is read.
///
/// # Errors
/// The file cannot be opened, or is not sealed.
pub fn measure(path: &Path) -> Result<FileDigest, Error> {
    kernel::measure(open(path)?).map_err(|error| Error::kernel(path, error))
}

/// Returns whether files are sealed on the file system of `path`, a file or a directory.
///
/// # Errors
/// It cannot be opened, or the kernel cannot say.
pub fn is_supported(path: &Path) -> Result<bool, Error> {
    let opened = open_any(path).map_err(|error| Error::io("open", path, error))?;
    kernel::is_supported(opened).map_err(|error| Error::kernel(path, error))
}

/// The same of a directory that is open; `path` is its name, for messages.
pub(crate) fn is_supported_in(directory: BorrowedFd<'_>, path: &Path) -> Result<bool, Error> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = retry_on_intr(|| openat(directory, ".", flags, Mode::empty()));
    let opened = opened.map_err(|error| Error::io("open", path, error))?;
    kernel::is_supported(opened).map_err(|error| Error::kernel(path, error))
}

/// Seals files, and all regular files below directories. Links within a directory are not followed.
///
/// Nothing is sealed where one of the file systems has no fs-verity.
///
/// # Errors
/// The first that was met: a file system has no fs-verity, a file cannot be opened, somebody has it open for writing, or it is sealed with
/// other parameters. Other files may be sealed by then.
pub fn seal(paths: &[PathBuf], options: &SealOptions, progress: &Progress) -> Result<SealStats, Error> {
    progress.enter(Phase::Listing, 0, 0);
    let list = list::list(paths, progress)?;
    let places = list.places();
    if options.signature.is_some() && places.len() != 1 {
        return Err(Error::Usage("a built-in signature is for one file: name that file alone".into()));
    }
    progress.enter(Phase::Sealing, 0, num::wide(places.len()));
    let [files, files_before, logical_bytes] = [const { AtomicU64::new(0) }; 3];
    for_each(
        options.jobs,
        &places,
        || (),
        |(), place: &Place<'_>| {
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
        },
    )?;
    Ok(SealStats {
        files: files.into_inner(),
        files_before: files_before.into_inner(),
        others: list.others(),
        logical_bytes: logical_bytes.into_inner(),
    })
}

/// Seals an open file, and leaves its mode and its time of modification as they are: the kernel seals what may be written to, and some file
/// systems take the tree that they write behind the content for a modification of it.
///
/// # Errors
/// As [`kernel::seal`].
pub(crate) fn seal_open(
    file: BorrowedFd<'_>,
    parameters: &Parameters,
    signature: Option<&[u8]>,
) -> Result<Sealed, KernelError> {
    let before = fstat(file).map_err(io::Error::from)?;
    let seal = || kernel::seal(file, parameters, signature);
    let sealed = match seal() {
        // A file that is read-only is so to its owner, too, unless he is root.
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
            // Who may write to it and is not its owner sets no time.
            Ok(()) | Err(Errno::PERM) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
    }
    Ok(sealed)
}

/// The time of modification that a file had; that of access is left.
fn modified_at(stat: &Stat) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec {
            tv_sec: stat.st_mtime,
            tv_nsec: stat.st_mtime_nsec.try_into().unwrap_or_default(),
        },
    }
}

/// Opens a file that the user named, or anything else: a fifo is not waited for.
fn open_any(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(retry_on_intr(|| openat(CWD, path, flags, Mode::empty()))?)
}

fn open(path: &Path) -> Result<File, Error> {
    let failed = |error| Error::io("open", path, error);
    let file = File::from(open_any(path).map_err(failed)?);
    match file.metadata().map_err(failed)?.is_file() {
        true => Ok(file),
        false => Err(Error::Usage(format!("{} is no regular file, and has no digest", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    /// Reads whose lengths these are, one after the other and again; 0 is one that a signal came between.
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
            assert!(matches!(error, Error::Usage(_)), "{error}");
        }
    }

    /// What the kernel seals is shown where there is such a kernel; elsewhere nothing may be half done.
    #[test]
    fn a_file_system_without_it_is_found_before_anything_is_sealed() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("file"), "content").expect("a file");
        if is_supported(folder.path()).expect("the kernel says") {
            return;
        }
        let error = seal(&[folder.path().into()], &SealOptions::default(), &Progress::default());
        let error = error.expect_err("there is no fs-verity");
        assert!(matches!(&error, Error::Kernel { path, source } if path == folder.path() && source.is_unsupported()));
        assert_eq!((error.word(), error.exit_status()), ("verity", 2));
    }
}
