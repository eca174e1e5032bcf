//! What a target keeps of the bundle that it took, beside it: the head, the index, and which part of it was unpacked.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use sealift_format::{Bundle, Error as FormatError, Head, Index, Limits, Part, Preamble, Ref, verity};
use sealift_verify::kernel::KernelError;

use super::sibling;
use super::stage::Stage;
use crate::Error;
use crate::beneath::open_own_file;
use crate::seal::{self, KernelSignature, WantedSignature, seal_index};

/// What a target took.
#[derive(Clone, Debug)]
pub struct State {
    /// Who the bundle was, and its signatures.
    pub head: Head,
    /// What was in it.
    pub index: Index,
    /// The ref that was unpacked.
    pub reference: String,
    /// What was unpacked of it lies at or below this path.
    pub prefix: Vec<u8>,
    /// Where its files are sealed, the fs-verity digests of the index's objects, in their order, for which the index vouches; none where not
    /// all of them are in the target.
    pub sealed: Option<Vec<[u8; 32]>>,
}

/// The longest head.
const HEAD_LEN_MAX: u32 = Preamble::LEN + Preamble::ROOT_LEN_MAX + Preamble::AREA_LEN_MAX;
/// The longest ref's name and path.
const PART_LEN_MAX: u64 = 1 << 20;

/// Where the state of `target` is, or would be. A target's other names, such as a link to it, have none of their own.
///
/// # Errors
/// `target` does not end with a name.
pub(crate) fn path_of(target: &Path) -> Result<PathBuf, Error> {
    let real = std::fs::canonicalize(target);
    sibling(real.as_deref().unwrap_or(target), ".sealift-state")
}

impl State {
    /// Reads what `target` took, if `judge` takes the head: verified, then parsed. `None` where it took nothing.
    ///
    /// # Errors
    /// The state cannot be read, is damaged, or was refused.
    pub fn load(
        target: &Path,
        limits: Limits,
        judge: impl FnOnce(&Head) -> Result<(), Error>,
    ) -> Result<Option<Self>, Error> {
        Self::read(&path_of(target)?, limits, judge)
    }

    /// Reads a state's directory; `None` where there is none.
    pub(super) fn read(
        dir: &Path,
        limits: Limits,
        judge: impl FnOnce(&Head) -> Result<(), Error>,
    ) -> Result<Option<Self>, Error> {
        if !dir.exists() {
            return Ok(None);
        }
        let head = Head::parse(&read_file(&dir.join("head"), HEAD_LEN_MAX.into())?)?;
        limits.check(head.root())?;
        judge(&head)?;
        let contents = &head.root().contents;
        let index = read_file(&dir.join(INDEX), contents.index_len)?;
        if verity::digest(&index) != contents.index_digest {
            return Err(FormatError::Digest { part: Part::Index }.into());
        }
        let index = Index::parse(index, head.root().maxima.entries)?;
        let part = read_file(&dir.join("part"), PART_LEN_MAX)?;
        let cut = part.iter().position(|byte| *byte == b'\n');
        let (reference, prefix) = cut.map_or((&part[..], &[][..]), |cut| (&part[..cut], &part[cut + 1..]));
        let reference = String::from_utf8_lossy(reference).into_owned();
        if index.find_ref(&reference).is_none() {
            let problem = "it names a ref that the index does not have".into();
            return Err(Error::State { path: dir.join("part"), problem });
        }
        let (prefix, sealed) = (prefix.to_vec(), read_digests(dir, &index)?);
        Ok(Some(Self { head, index, reference, prefix, sealed }))
    }

    /// The ref that was unpacked.
    pub(crate) fn tree(&self) -> Option<&Ref> {
        self.index.find_ref(&self.reference)
    }
}

/// Whether this part of the bundle of this head is what `target` took last.
pub(super) fn is_kept(target: &Path, head: &Head, reference: &str, prefix: &[u8]) -> bool {
    path_of(target).is_ok_and(|dir| {
        read_file(&dir.join("head"), HEAD_LEN_MAX.into()).is_ok_and(|bytes| bytes == head.encode())
            && read_file(&dir.join("part"), PART_LEN_MAX).is_ok_and(|bytes| bytes == part(reference, prefix))
    })
}

/// The bundle's index.
const INDEX: &str = "index";
/// The signature for the kernel with which the index is sealed.
const SIGNATURE: &str = "index.p7s";
/// The file that says that a target's files are sealed, and of what digest each object is.
const DIGESTS: &str = "fs-verity";

/// Whether the files of `target` are sealed, as far as it says so.
pub(super) fn is_sealed(target: &Path) -> bool {
    path_of(target).is_ok_and(|dir| dir.join(DIGESTS).symlink_metadata().is_ok())
}

/// The digests that `target` kept of the objects of an index; `None` where it does not say that it is sealed.
///
/// # Errors
/// They cannot be read, or are not what the index says.
pub(super) fn kept_digests(target: &Path, index: &Index) -> Result<Option<Vec<[u8; 32]>>, Error> {
    read_digests(&path_of(target)?, index)
}

fn read_digests(dir: &Path, index: &Index) -> Result<Option<Vec<[u8; 32]>>, Error> {
    let path = dir.join(DIGESTS);
    if path.symlink_metadata().is_err() {
        return Ok(None);
    }
    let bytes = read_file(&path, u64::try_from(index.objects().len()).unwrap_or(u64::MAX).saturating_mul(32))?;
    if !bytes.is_empty() && verity::digest(&bytes) != *index.verity() {
        return Err(Error::State { path, problem: "it is not what the index says".into() });
    }
    Ok(Some(bytes.as_chunks().0.to_vec()))
}

fn part(reference: &str, prefix: &[u8]) -> Vec<u8> {
    [reference.as_bytes(), b"\n", prefix].concat()
}

/// What part of a bundle a target took.
pub(super) struct Took<'a> {
    pub(super) bundle: &'a Bundle,
    pub(super) reference: &'a str,
    pub(super) prefix: &'a [u8],
    /// The digests of its objects, where files are sealed: then so are the index and the digests.
    pub(super) sealed: Option<Vec<[u8; 32]>>,
    /// The signature for the kernel with which the index is sealed.
    pub(super) signature: Option<WantedSignature<'a>>,
}

/// Writes a state to the directory `dir`, which is new, and says what became of the signature for the kernel.
pub(super) fn write(dir: &Path, took: &Took<'_>, durable: bool) -> Result<KernelSignature, Error> {
    make_empty(dir)?;
    let (index, digests) = (dir.join(INDEX), dir.join(DIGESTS));
    write_file(&dir.join("head"), &took.bundle.head.encode(), durable)?;
    write_file(&index, took.bundle.index.bytes(), durable)?;
    write_file(&dir.join("part"), &part(took.reference, took.prefix), durable)?;
    let Some(sealed) = &took.sealed else { return Ok(KernelSignature::None) };
    write_file(&digests, sealed.as_flattened(), durable)?;
    seal_file(&digests, verity::digest(sealed.as_flattened()), None)?;
    let outcome = seal_file(&index, took.bundle.head.root().contents.index_digest, took.signature)?;
    if let (KernelSignature::Taken, Some(signature)) = (&outcome, took.signature) {
        write_file(&dir.join(SIGNATURE), signature.body, durable)?;
    }
    Ok(outcome)
}

/// Finds out whether the kernel takes a signature of the index, by an index that is sealed in `dir`; what is written there later takes its place.
pub(super) fn try_signature(dir: &Path, bundle: &Bundle, signature: WantedSignature<'_>) -> Result<(), Error> {
    make_empty(dir)?;
    let index = dir.join(INDEX);
    write_file(&index, bundle.index.bytes(), false)?;
    seal_file(&index, bundle.head.root().contents.index_digest, Some(signature)).map(drop)
}

/// Whether the index that `target` keeps is sealed with a signature for the kernel, as far as it says so.
pub(super) fn is_signed(target: &Path) -> bool {
    path_of(target).is_ok_and(|dir| dir.join(SIGNATURE).symlink_metadata().is_ok())
}

/// The same, as the kernel says, where the file system hands that out.
///
/// # Errors
/// The index cannot be opened.
pub(crate) fn is_index_signed(target: &Path) -> Result<bool, Error> {
    let path = path_of(target)?.join(INDEX);
    let index = open_own_file(&path).map_err(|error| failed_to_read(&path, error))?;
    let said = seal::has_signature(index.as_fd()).map_err(|error| Error::kernel(path, error))?;
    Ok(said.unwrap_or_else(|| is_signed(target)))
}

fn make_empty(dir: &Path) -> Result<(), Error> {
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(Error::io("remove", dir, error)),
        _ => {}
    }
    std::fs::create_dir(dir).map_err(|error| Error::io("create", dir, error))
}

/// Seals a file that was written: from then on the kernel vouches for this digest.
fn seal_file(path: &Path, digest: [u8; 32], signature: Option<WantedSignature<'_>>) -> Result<KernelSignature, Error> {
    let file = File::open(path).map_err(|error| Error::io("open", path, error))?;
    seal_index(file.as_fd(), path, digest, signature)
}

/// Makes the state in the stage that of its target. The one before goes with the stage: killed in between, the target has none, and
/// the stage the one to come.
pub(super) fn replace(stage: &Stage) -> Result<(), Error> {
    let (path, old) = (path_of(stage.target())?, stage.old_state());
    let failed = |error| Error::io("rename to", &path, error);
    match std::fs::remove_dir_all(&old) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(Error::io("remove", &old, error)),
        _ => {}
    }
    match std::fs::rename(&path, &old) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    std::fs::rename(stage.state(), &path).map_err(failed)
}

/// Removes what `target` kept. Returns whether there was something.
pub(crate) fn remove(target: &Path) -> Result<bool, Error> {
    let path = path_of(target)?;
    match std::fs::remove_dir_all(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        removed => removed.map(|()| true).map_err(|error| Error::io("remove", &path, error)),
    }
}

/// Reads a file of `len` bytes at most, and one more if it is longer.
fn read_file(path: &Path, len: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let read = open_own_file(path).and_then(|file| file.take(len.saturating_add(1)).read_to_end(&mut bytes));
    match read {
        Ok(_) => Ok(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Error::State { path: path.to_owned(), problem: "it is missing".into() })
        }
        Err(error) => Err(failed_to_read(path, error)),
    }
}

/// An index that was sealed with a signature for the kernel is opened where its certificate is.
fn failed_to_read(path: &Path, error: io::Error) -> Error {
    match KernelError::of_open(&error) {
        Some(source) => Error::kernel(path, source),
        None => Error::io("read", path, error),
    }
}

fn write_file(path: &Path, bytes: &[u8], durable: bool) -> Result<(), Error> {
    let written = File::create_new(path).and_then(|mut file| {
        file.write_all(bytes)?;
        if durable { file.sync_all() } else { Ok(()) }
    });
    written.map_err(|error| Error::io("write", path, error))
}
