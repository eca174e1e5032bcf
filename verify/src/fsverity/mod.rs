//! Calls of the kernel: they enable fs-verity of a file, after which the kernel checks every read against a digest, and read that digest.
//!
//! A file is given as a descriptor that is open for reading. The kernel's documentation is in `Documentation/filesystems/fsverity.rst`.
//!
//! ```no_run
//! use sealift_verify::fsverity::{Sealed, measure, seal};
//! use sealift_format::verity::Parameters;
//!
//! let file = std::fs::File::open("usr/bin/hello")?;
//! seal(&file, &Parameters::default(), None)?;
//! assert_eq!(measure(&file)?, sealift_format::verity::digest(&std::fs::read("usr/bin/hello")?).into());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod sys;

use std::io;
use std::os::fd::AsFd;
use std::thread::sleep;
use std::time::{Duration, Instant};

use sealift_format::hex;
use sealift_format::num;
use sealift_format::verity::{Algorithm, FileDigest, Parameters};

pub use error::KernelError;

use crate::kernel_signature;

/// How long [`seal`] waits while the file is open for writing elsewhere. A child that was forked while it was open for writing has it open until it
/// executes its own program, which takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(2);

/// When a file was sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "there is no third time")]
pub enum Sealed {
    /// By this call.
    Now,
    /// Before, with the same parameters.
    Before,
}

/// What the kernel stores for a sealed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SealMetadata {
    /// The Merkle tree, from its root down.
    Tree,
    /// The descriptor, whose hash is the file's digest; without the signature.
    Descriptor,
    /// The built-in signature.
    Signature,
}

/// Returns whether files can be sealed on the file system of this open file or directory. It only asks for a digest, and changes nothing.
pub fn is_supported(file: impl AsFd) -> Result<bool, KernelError> {
    match measure(file) {
        // Directories are never sealed, so this covers them as well.
        Ok(_) | Err(KernelError::NotSealed) => Ok(true),
        Err(KernelError::Unsupported) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Enables fs-verity with one call. [`seal`] also waits for writers, and accepts a file that is sealed already.
///
/// # Errors
/// Returns an error if the kernel rejects this.
pub fn enable(file: impl AsFd, parameters: &Parameters, signature: Option<&[u8]>) -> Result<(), KernelError> {
    let algorithm = parameters.algorithm().number().into();
    let signature = signature.unwrap_or_default();
    sys::enable(file.as_fd(), algorithm, parameters.block_len(), parameters.salt(), signature)
        .map_err(|errno| KernelError::of_enable(errno, parameters, !signature.is_empty()))
}

/// Seals a file to which nothing more is written, and returns whether it was sealed before. It waits a moment while the file is still open for
/// writing.
///
/// A built-in signature is stored only if the file is sealed by this call.
///
/// # Errors
/// Returns an error if the kernel rejects this, the file stays open for writing, or it is sealed with other parameters.
pub fn seal(file: impl AsFd, parameters: &Parameters, signature: Option<&[u8]>) -> Result<Sealed, KernelError> {
    let (start, mut pause) = (Instant::now(), Duration::from_millis(1));
    loop {
        match enable(&file, parameters, signature) {
            Ok(()) => return Ok(Sealed::Now),
            Err(KernelError::Sealed) => return check_parameters(&file, parameters).map(|()| Sealed::Before),
            Err(KernelError::OpenForWriting | KernelError::Busy) if start.elapsed() < PATIENCE => {
                sleep(pause);
                pause = (2 * pause).min(Duration::from_millis(100));
            }
            Err(error) => return Err(error),
        }
    }
}

/// Returns the digest that the kernel enforces. No content is read.
///
/// # Errors
/// Returns an error if the file is not sealed, or the call fails.
pub fn measure(file: impl AsFd) -> Result<FileDigest, KernelError> {
    let (number, bytes) = sys::measure(file.as_fd()).map_err(KernelError::of_read)?;
    let digest = Algorithm::from_number(number).and_then(|algorithm| FileDigest::new(algorithm, &bytes));
    digest.ok_or_else(|| io::Error::other(format!("the kernel knows a hash that is not known here, {number}")).into())
}

/// Compares the digest that the kernel enforces with the one that the file should have.
///
/// # Errors
/// Returns an error if they differ, the file is not sealed, or the call fails.
pub fn check(file: impl AsFd, expected: &FileDigest) -> Result<(), KernelError> {
    let found = measure(file)?;
    if found == *expected { Ok(()) } else { Err(KernelError::OtherDigest { expected: expected.clone(), found }) }
}

/// Reads what the kernel stores for a sealed file, from `offset` on. Returns the number of bytes, which is less than the buffer's only at the end.
///
/// # Errors
/// Returns an error if the file is not sealed, has no signature, or its file system, such as btrfs, does not hand this out:
/// [`KernelError::Unsupported`].
pub fn read_metadata(
    file: impl AsFd,
    what: SealMetadata,
    mut offset: u64,
    buffer: &mut [u8],
) -> Result<usize, KernelError> {
    let kind = match what {
        SealMetadata::Tree => 1,
        SealMetadata::Descriptor => 2,
        SealMetadata::Signature => 3,
    };
    let mut filled = 0;
    while filled < buffer.len() {
        match sys::read_metadata(file.as_fd(), kind, offset, &mut buffer[filled..]).map_err(KernelError::of_read)? {
            0 => break,
            read => {
                filled += read;
                offset = offset.saturating_add(num::wide(read));
            }
        }
    }
    Ok(filled)
}

/// Returns the parameters with which a file is sealed; `None` if its file system does not hand them out.
///
/// # Errors
/// Returns an error if the file is not sealed, or the call fails.
pub fn parameters(file: impl AsFd) -> Result<Option<Parameters>, KernelError> {
    let mut descriptor = [0; Parameters::DESCRIPTOR_LEN];
    match read_metadata(file, SealMetadata::Descriptor, 0, &mut descriptor) {
        Ok(_) => Ok(Parameters::of_descriptor(&descriptor).map(|(parameters, _)| parameters)),
        Err(KernelError::Unsupported) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the built-in signature of a file; `None` if it has none, or its file system does not hand it out.
pub fn signature(file: impl AsFd) -> Result<Option<Vec<u8>>, KernelError> {
    let mut signature = vec![0; kernel_signature::LEN_MAX];
    match read_metadata(file, SealMetadata::Signature, 0, &mut signature) {
        Ok(len) => {
            signature.truncate(len);
            Ok(Some(signature))
        }
        Err(KernelError::NotSealed | KernelError::Unsupported) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Checks whether a sealed file has these parameters: by its descriptor or, if that is not available, by the hash algorithm alone. If the expected
/// digest is known, [`check`] is exact.
fn check_parameters(file: impl AsFd, wanted: &Parameters) -> Result<(), KernelError> {
    let found = match parameters(&file)? {
        Some(found) if found == *wanted => return Ok(()),
        Some(found) => shown(&found),
        None => match measure(&file)?.algorithm() {
            algorithm if algorithm == wanted.algorithm() => return Ok(()),
            algorithm => algorithm.to_string(),
        },
    };
    Err(KernelError::OtherParameters { found })
}

fn shown(parameters: &Parameters) -> String {
    let salt = match parameters.salt() {
        [] => "no salt".to_owned(),
        salt => format!("salt {}", hex(salt)),
    };
    format!("{}, blocks of {} bytes and {salt}", parameters.algorithm(), parameters.block_len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::errno::Errno;

    /// Each error in the kernel's documentation has its own message, and none is only a number.
    #[test]
    fn each_error_says_what_to_do() {
        let known = [
            Errno::EACCES,
            Errno::EBADMSG,
            Errno::EBUSY,
            Errno::EEXIST,
            Errno::EFBIG,
            Errno::EINVAL,
            Errno::EISDIR,
            Errno::EKEYREJECTED,
            Errno::EMSGSIZE,
            Errno::ENOKEY,
            Errno::ENOPKG,
            Errno::ENOTTY,
            Errno::EPERM,
            Errno::EROFS,
            Errno::ETXTBSY,
        ];
        let said = |errno| KernelError::of_enable(errno, &Parameters::default(), false).to_string();
        let mut all: Vec<String> = known.into_iter().map(said).collect();
        assert!(all.iter().all(|text| !text.contains("os error")), "{all:?}");
        all.sort();
        all.dedup();
        assert_eq!(all.len(), known.len());
        assert_eq!(said(Errno::EOPNOTSUPP), said(Errno::ENOTTY));
        let signed = |errno| KernelError::of_enable(errno, &Parameters::default(), true);
        for errno in [Errno::EBADMSG, Errno::EKEYREJECTED, Errno::EMSGSIZE, Errno::ENOKEY, Errno::ENOPKG] {
            assert!(signed(errno).is_about_signature(), "{errno}");
        }
        assert!(
            !signed(Errno::EINVAL).is_about_signature() && said(Errno::ENOPKG) != signed(Errno::ENOPKG).to_string()
        );
        assert!(said(Errno::EIO).contains("os error 5"));
        assert!(matches!(KernelError::of_read(Errno::ENODATA), KernelError::NotSealed));
    }

    /// Whether or not this file system supports fs-verity, an unsealed file is not taken for a sealed one.
    #[test]
    fn an_unsealed_file_has_neither_digest_nor_metadata() {
        let file = tempfile::tempfile().expect("a file");
        let error = measure(&file).expect_err("it is not sealed");
        assert!(matches!(error, KernelError::NotSealed | KernelError::Unsupported), "{error}");
        assert!(read_metadata(&file, SealMetadata::Descriptor, 0, &mut [0; 8]).is_err());
        let supported = is_supported(&file).expect("the kernel says");
        assert_eq!(supported, matches!(error, KernelError::NotSealed));
        let folder = std::fs::File::open(std::env::temp_dir()).expect("a folder");
        assert!(is_supported(&folder).is_ok());
    }
}
