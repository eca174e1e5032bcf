//! Replaces the signature area of a bundle.
//!
//! The bundle is copied beside itself, by reflink where the file system supports that. The area is written into the copy, which is renamed over the
//! bundle once it is durable. After a kill at any moment, the name refers to the old bundle or to the new one.
//!
//! Writing the area in place would touch fewer bytes, but it may span several blocks, which no medium writes atomically: after a partial write,
//! neither the old signatures nor the new ones match the area's BLAKE3, and the bundle is lost. It would also change the file under its current
//! readers.
//!
//! Not carried over from the old file: its other hard links, which keep the old signatures, and its extended attributes.

use std::fs::{File, Metadata, Permissions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock, ioctl_ficlone};
use sealift_format::num;
use sealift_format::{Error as FormatError, Head};
use sealift_store::fs::partial::PartialFile;
use sealift_verify::trust::KeyId;

use super::{KernelChange, KernelSigner, Signer, area, read_signature, sign_head};
use crate::Phase;
use crate::output::{Output, Spool};
use crate::trust::sign_partial::{partial_of, remove_partial};
use crate::{Error, Input, Progress};

/// The changes to make to a bundle's signatures.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "what a caller leaves out is empty")]
pub struct SignChange<'a> {
    /// Keys that sign it (`--key K`).
    pub keys: &'a [Signer],
    /// Files of signatures made elsewhere (`--attach SIG`).
    pub attach: &'a [PathBuf],
    /// Keys whose signatures are removed (`--remove SHA256:...`).
    pub remove: &'a [KeyId],
    /// The kernel signer (`--kernel-key KEY --kernel-cert CERT`), or the certificate of the attached kernel signature.
    pub kernel: Option<&'a KernelSigner>,
    /// The expected name of the bundle: one with another name is refused.
    pub name: Option<&'a str>,
    /// The expected version.
    pub version: Option<u64>,
    /// Whether to remove the kernel signature (`--remove kernel`).
    pub remove_kernel: bool,
}

/// The result of signing.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SignStats {
    /// The head as it is now.
    pub head: Head,
    /// Keys that signed for the first time.
    pub added: Vec<KeyId>,
    /// Keys that had signed before, and whose signatures were replaced.
    pub replaced: Vec<KeyId>,
    /// The change of the kernel signature.
    pub kernel: KernelChange,
    /// Whether the file was written; not if it already had exactly these signatures.
    pub written: bool,
    /// Whether the file kept its owner and group; only root can change a file's owner.
    pub owner_kept: bool,
}

/// Bytes copied between two checks for cancellation.
const STEP: u64 = 32 << 20;

/// Changes the signatures of the bundle at `path`. Waits for other runs that do the same.
///
/// # Errors
/// Returns an error if the file is not a bundle or cannot be replaced, if a signature is not one of this bundle, or if there is no room. The bundle
/// is unchanged then.
pub fn sign_bundle(path: &Path, change: &SignChange<'_>, progress: &Progress) -> Result<SignStats, Error> {
    let bundle = Locked::open(path)?;
    let head = bundle.read_head()?;
    let area::Changed { head: new, added, replaced, kernel } = change_head(path, &head, change)?;
    let written = new != head;
    // The remains of a killed run are removed in any case.
    remove_partial(&bundle.partial())?;
    let owner_kept = if written { bundle.replace(&head, &new, progress)? } else { true };
    Ok(SignStats { head: new, added, replaced, kernel, written, owner_kept })
}

/// Writes a copy of a bundle with other signatures to `output`. Only `head` has been read from `input` so far.
///
/// # Errors
/// Returns an error if the input is truncated or has trailing bytes, if a signature is not one of this bundle, if there is no room for it, or if the
/// output cannot be written. Nothing is left at the output then.
pub fn sign_copy(
    input: &mut Input,
    head: &Head,
    change: &SignChange<'_>,
    output: &Output,
    progress: &Progress,
) -> Result<SignStats, Error> {
    let area::Changed { head: new, added, replaced, kernel } = change_head(input.path(), head, change)?;
    let mut spool = Spool::create(output)?;
    spool.leave_room(new.head_len())?;
    progress.enter(Phase::Finishing, head.file_len(), 1);
    input.read_behind(head, |bytes| {
        progress.check()?;
        progress.add(num::wide(bytes.len()), 0);
        spool.write(bytes)
    })?;
    spool.finish(&[&new.encode()])?;
    Ok(SignStats { head: new, added, replaced, kernel, written: true, owner_kept: true })
}

/// Returns the head with the changed signatures.
fn change_head(path: &Path, head: &Head, change: &SignChange<'_>) -> Result<area::Changed, Error> {
    check_identity(path, head, change)?;
    let mut add = sign_head(head, change.keys)?;
    if let Some(signer) = change.kernel {
        add.extend(signer.sign(head)?);
    }
    for file in change.attach {
        add.push(read_signature(file, head, change.kernel)?);
    }
    let removals = area::Removals { keys: change.remove, kernel: change.remove_kernel };
    area::change(head, add, removals, path)
}

/// Refuses to sign a bundle of another name or version than expected.
fn check_identity(path: &Path, head: &Head, change: &SignChange<'_>) -> Result<(), Error> {
    let identity = &head.root().identity;
    let is_other = change.name.is_some_and(|name| name != identity.name)
        || change.version.is_some_and(|version| version != identity.version);
    if !is_other {
        return Ok(());
    }
    let (name, version) = (&identity.name, identity.version);
    Err(Error::unexpected(path, format!("is {name} version {version}, which signing does not change")))
}

/// A bundle locked against other signing runs.
struct Locked {
    path: PathBuf,
    file: File,
    metadata: Metadata,
}

impl Locked {
    fn open(path: &Path) -> Result<Self, Error> {
        // A symbolic link keeps referring to the bundle.
        let path = std::fs::canonicalize(path).map_err(|error| Error::io("read", path, error))?;
        let failed = |error| Error::io("read", &path, error);
        loop {
            let file = File::open(&path).map_err(failed)?;
            let metadata = file.metadata().map_err(failed)?;
            if !metadata.is_file() {
                return Err(Error::unexpected(path, "is not a regular file, and only regular files can be signed"));
            }
            rustix::io::retry_on_intr(|| flock(&file, FlockOperation::LockExclusive))
                .map_err(|error| Error::io("lock", &path, error))?;
            // The previous holder of the lock may have replaced the file.
            let present = std::fs::metadata(&path).map_err(failed)?;
            if (present.dev(), present.ino()) == (metadata.dev(), metadata.ino()) {
                return Ok(Self { path, file, metadata });
            }
        }
    }

    fn partial(&self) -> PathBuf {
        partial_of(&self.path)
    }

    fn read_head(&self) -> Result<Head, Error> {
        let (head, _) = Head::parse_first(&self.read(Head::LEN_MAX.into())?)?;
        let (len, expected) = (self.metadata.len(), head.file_len());
        match len.cmp(&expected) {
            std::cmp::Ordering::Less => Err(FormatError::Truncated { len, expected: Some(expected) }.into()),
            std::cmp::Ordering::Greater => Err(FormatError::Trailing { expected }.into()),
            std::cmp::Ordering::Equal => Ok(head),
        }
    }

    /// Returns the first bytes of the file, as many as there are.
    fn read(&self, len: u64) -> Result<Vec<u8>, Error> {
        let len = num::size(len.min(self.metadata.len()));
        let mut bytes = vec![0; len];
        self.file.read_exact_at(&mut bytes, 0).map_err(|error| Error::io("read", &self.path, error))?;
        Ok(bytes)
    }

    /// Replaces the bundle with a copy that has another head. Returns whether the owner was kept.
    fn replace(self, old: &Head, head: &Head, progress: &Progress) -> Result<bool, Error> {
        let copy = PartialFile::create_at(self.partial(), &self.path)?;
        let failed = |error| Error::io("write", copy.path(), error);
        progress.enter(Phase::Finishing, self.metadata.len(), 1);
        // A longer head moves what follows it.
        let is_cloned = head.head_len() == old.head_len() && ioctl_ficlone(copy.file(), &self.file).is_ok();
        if !is_cloned {
            tracing::info!("copying the bundle: its head is longer now, or this file system has no reflinks");
            copy.file().seek(SeekFrom::Start(head.head_len())).map_err(failed)?;
            self.copy_behind(old, &copy, progress)?;
        }
        // The lock excludes only other signers: a bundle truncated meanwhile must not replace the original.
        let (len, expected) = (copy.file().metadata().map_err(failed)?.len(), head.file_len());
        if len != expected {
            return Err(FormatError::Truncated { len, expected: Some(expected) }.into());
        }
        copy.file().write_all_at(&head.encode(), 0).map_err(failed)?;
        let owner_kept = give_owner(copy.file(), &self.metadata).map_err(failed)?;
        progress.enter(Phase::Syncing, 0, 0);
        copy.sync()?;
        progress.check()?;
        copy.finish()?;
        Ok(owner_kept)
    }

    /// Copies what follows the head to the current place in the copy.
    fn copy_behind(&self, head: &Head, copy: &PartialFile, progress: &Progress) -> Result<(), Error> {
        let mut to = copy.file();
        let place = (&self.file).seek(SeekFrom::Start(head.head_len()));
        place.map_err(|error| Error::io("read", &self.path, error))?;
        loop {
            progress.check()?;
            // This uses copy_file_range(2).
            let copied = io::copy(&mut (&self.file).take(STEP), &mut to);
            match copied.map_err(|error| Error::io("write", copy.path(), error))? {
                0 => return Ok(()),
                len => progress.add(len, 0),
            }
        }
    }
}

/// Gives the copy the bundle's owner, group and mode, as far as permitted.
fn give_owner(copy: &File, of: &Metadata) -> io::Result<bool> {
    let _ = fchown(copy, Some(of.uid()), Some(of.gid())).or_else(|_| fchown(copy, None, Some(of.gid())));
    let present = copy.metadata()?;
    let mut mode = of.mode() & 0o7777;
    if present.gid() != of.gid() {
        // Another group gets no more rights than everyone else.
        mode = mode & !0o2070 | (mode & 0o007) << 3;
    }
    if present.uid() != of.uid() {
        mode &= !0o4000;
    }
    copy.set_permissions(Permissions::from_mode(mode))?;
    Ok(present.uid() == of.uid() && present.gid() == of.gid())
}
