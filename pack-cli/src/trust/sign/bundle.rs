//! Replaces the signature area of a bundle.
//!
//! The bundle is copied beside itself, by reflink where the file system has it, the area is written into the copy, and the copy takes
//! the bundle's name when the medium has all of it. Killed at any moment, the name leads to the old bundle or to the new one.
//!
//! Writing the area in place would touch fewer bytes, but it may span several blocks, which no medium writes as one: cut in the middle, neither the old
//! signatures nor the new ones agree with the area's BLAKE3, and the bundle is lost to everyone. It would also change the file under those who
//! are reading it.
//!
//! What goes with the old file: its other hard links, which keep the old signatures, and its extended attributes.

use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock, ioctl_ficlone};
use rustix::io::Errno;
use sealift_format::num;
use sealift_format::{Error as FormatError, Head, Preamble};
use sealift_verify::trust::KeyId;

use super::{KernelChange, KernelSigner, Signer, area, read_signature, sign_head};
use crate::Phase;
use crate::pack::{Output, Spool};
use crate::trust::durable;
use crate::{Error, Input, Progress};

/// What is to happen to a bundle's signatures.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "what a caller leaves out is empty")]
pub struct SignChange<'a> {
    /// Keys that sign it (`--key K`).
    pub keys: &'a [Signer],
    /// Files of signatures that were made elsewhere (`--attach SIG`).
    pub attach: &'a [PathBuf],
    /// Keys whose signatures are taken away (`--remove SHA256:...`).
    pub remove: &'a [KeyId],
    /// Who signs for the kernel (`--kernel-key KEY --kernel-cert CERT`), or has signed what is attached.
    pub kernel: Option<&'a KernelSigner>,
    /// What the bundle is to be called: another one is not changed.
    pub name: Option<&'a str>,
    /// What version it is to have.
    pub version: Option<u64>,
    /// The signature for the kernel is taken away (`--remove kernel`).
    pub remove_kernel: bool,
}

/// What came of signing.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SignStats {
    /// The head as it is now.
    pub head: Head,
    /// Keys that had not signed before.
    pub added: Vec<KeyId>,
    /// Keys that had, and whose new signature took the place of the old one.
    pub replaced: Vec<KeyId>,
    /// What became of the signature for the kernel.
    pub kernel: KernelChange,
    /// Whether the file was written; not where it had exactly these signatures before.
    pub written: bool,
    /// Whether the file has its owner and group still; only root may give a file away.
    pub owner_kept: bool,
}

/// Ends the name of the copy while it is made.
const PARTIAL: &str = ".sealift-sign-partial";
/// Bytes that are copied between two looks at whether to stop.
const STEP: u64 = 32 << 20;

/// Changes the signatures of the bundle at `path`. Waits while another run does the same.
///
/// # Errors
/// The file is not a bundle or cannot be replaced, a signature is none of this bundle, or there is no room for it. The bundle is as it was then.
pub fn sign_bundle(path: &Path, change: &SignChange<'_>, progress: &Progress) -> Result<SignStats, Error> {
    let bundle = Locked::open(path)?;
    let head = bundle.read_head()?;
    let area::Changed { head: new, added, replaced, kernel } = change_head(path, &head, change)?;
    let written = new != head;
    // What a killed run left goes in any case.
    remove_partial(&bundle.partial())?;
    let owner_kept = if written { bundle.replace(&new, progress)? } else { true };
    Ok(SignStats { head: new, added, replaced, kernel, written, owner_kept })
}

/// Writes a copy of a bundle with other signatures to `output`: `head` has been read from `input`, and nothing else.
///
/// # Errors
/// The input is cut or goes on behind the bundle, a signature is none of this bundle, there is no room for it, or the output cannot be
/// written, and nothing is left there then.
pub fn sign_copy(
    input: &mut Input,
    head: &Head,
    change: &SignChange<'_>,
    output: &Output,
    progress: &Progress,
) -> Result<SignStats, Error> {
    let area::Changed { head: new, added, replaced, kernel } = change_head(input.path(), head, change)?;
    let mut spool = Spool::create(output)?;
    spool.leave_room(new.preamble().head_len().into())?;
    progress.enter(Phase::Finishing, head.file_len(), 1);
    input.read_behind(head, |bytes| {
        progress.check()?;
        progress.add(num::wide(bytes.len()), 0);
        spool.write(bytes)
    })?;
    spool.finish(&new.encode())?;
    Ok(SignStats { head: new, added, replaced, kernel, written: true, owner_kept: true })
}

/// The head with other signatures.
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

/// Refuses to sign something else than what is meant.
fn check_identity(path: &Path, head: &Head, change: &SignChange<'_>) -> Result<(), Error> {
    let identity = &head.root().identity;
    let is_other = change.name.is_some_and(|name| name != identity.name)
        || change.version.is_some_and(|version| version != identity.version);
    if !is_other {
        return Ok(());
    }
    let (path, name, version) = (path.display(), &identity.name, identity.version);
    Err(Error::Usage(format!("{path} is {name} version {version}: to change that, pack it again")))
}

/// Removes the copy of a bundle that a signing left which was killed. Returns whether there was one.
///
/// # Errors
/// The bundle is being signed, or the copy cannot be removed.
pub(crate) fn remove_stale(bundle: &Path) -> Result<bool, Error> {
    let real = std::fs::canonicalize(bundle);
    let bundle = real.as_deref().unwrap_or(bundle);
    let path = partial_of(bundle);
    if path.symlink_metadata().is_err() {
        return Ok(false);
    }
    // Who signs holds the bundle's lock; a bundle that is not there nobody signs.
    let file = match File::open(bundle) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        opened => Some(opened.map_err(|error| Error::io("read", bundle, error))?),
    };
    match file.as_ref().map_or(Ok(()), |file| flock(file, FlockOperation::NonBlockingLockExclusive)) {
        Err(Errno::WOULDBLOCK) => return Err(Error::Busy { path }),
        locked => locked.map_err(|error| Error::io("lock", bundle, error))?,
    }
    remove_partial(&path)
}

/// Where a bundle's copy grows.
fn partial_of(bundle: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(bundle.file_name().unwrap_or_default());
    name.push(PARTIAL);
    bundle.with_file_name(name)
}

/// Returns whether there was one.
fn remove_partial(path: &Path) -> Result<bool, Error> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        removed => removed.map(|()| true).map_err(|error| Error::io("remove", path, error)),
    }
}

/// A bundle that nobody else signs meanwhile.
struct Locked {
    path: PathBuf,
    file: File,
    metadata: Metadata,
}

impl Locked {
    fn open(path: &Path) -> Result<Self, Error> {
        // A symbolic link goes on leading to the bundle.
        let path = std::fs::canonicalize(path).map_err(|error| Error::io("read", path, error))?;
        let failed = |error| Error::io("read", &path, error);
        loop {
            let file = File::open(&path).map_err(failed)?;
            let metadata = file.metadata().map_err(failed)?;
            if !metadata.is_file() {
                return Err(Error::Usage(format!("{} is not a file, and only a file can be signed", path.display())));
            }
            rustix::io::retry_on_intr(|| flock(&file, FlockOperation::LockExclusive))
                .map_err(|error| Error::io("lock", &path, error))?;
            // Who held the lock may have put another file there.
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
        let preamble = Preamble::parse(&self.read(u64::from(Preamble::LEN))?)?;
        let head = Head::parse(&self.read(preamble.head_len().into())?)?;
        let (len, expected) = (self.metadata.len(), head.file_len());
        match len.cmp(&expected) {
            std::cmp::Ordering::Less => Err(FormatError::Truncated { len, expected }.into()),
            std::cmp::Ordering::Greater => Err(FormatError::Trailing { expected }.into()),
            std::cmp::Ordering::Equal => Ok(head),
        }
    }

    /// The file's first bytes, as many as there are.
    fn read(&self, len: u64) -> Result<Vec<u8>, Error> {
        let len = num::size(len.min(self.metadata.len()));
        let mut bytes = vec![0; len];
        self.file.read_exact_at(&mut bytes, 0).map_err(|error| Error::io("read", &self.path, error))?;
        Ok(bytes)
    }

    /// Puts a copy with another head in the bundle's place, and says whether it has the same owner.
    fn replace(self, head: &Head, progress: &Progress) -> Result<bool, Error> {
        let partial = Partial::create(self.partial())?;
        let failed = |error| Error::io("write", &partial.path, error);
        self.copy_to(&partial, progress)?;
        // The lock keeps other signers away, and nobody else: what was cut meanwhile must not take the bundle's place.
        let (len, expected) = (partial.file.metadata().map_err(failed)?.len(), head.file_len());
        if len != expected {
            return Err(FormatError::Truncated { len, expected }.into());
        }
        partial.file.write_all_at(&head.encode(), 0).map_err(failed)?;
        let owner_kept = give_owner(&partial.file, &self.metadata).map_err(failed)?;
        progress.enter(Phase::Syncing, 0, 0);
        partial.file.sync_all().map_err(failed)?;
        progress.check()?;
        std::fs::rename(&partial.path, &self.path).map_err(|error| Error::io("rename to", &self.path, error))?;
        partial.keep();
        durable::sync_parent(&self.path)?;
        Ok(owner_kept)
    }

    fn copy_to(&self, partial: &Partial, progress: &Progress) -> Result<(), Error> {
        progress.enter(Phase::Finishing, self.metadata.len(), 1);
        if ioctl_ficlone(&partial.file, &self.file).is_ok() {
            return Ok(());
        }
        tracing::info!("copying the bundle: this file system has no reflinks");
        let mut to = &partial.file;
        loop {
            progress.check()?;
            // copy_file_range(2) inside.
            let copied = io::copy(&mut (&self.file).take(STEP), &mut to);
            match copied.map_err(|error| Error::io("write", &partial.path, error))? {
                0 => return Ok(()),
                len => progress.add(len, 0),
            }
        }
    }
}

/// The copy while it does not have its name yet.
struct Partial {
    path: PathBuf,
    file: File,
    kept: bool,
}

impl Partial {
    fn create(path: PathBuf) -> Result<Self, Error> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let file = file.map_err(|error| Error::io("create", &path, error))?;
        Ok(Self { path, file, kept: false })
    }

    fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.kept {
            // What cannot be removed is a rest that is named as one.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Gives the copy the owner, group and mode of the bundle, as far as that is allowed.
fn give_owner(copy: &File, of: &Metadata) -> io::Result<bool> {
    let _ = fchown(copy, Some(of.uid()), Some(of.gid())).or_else(|_| fchown(copy, None, Some(of.gid())));
    let present = copy.metadata()?;
    let mut mode = of.mode() & 0o7777;
    if present.gid() != of.gid() {
        // Another group gets what everybody has.
        mode = mode & !0o2070 | (mode & 0o007) << 3;
    }
    if present.uid() != of.uid() {
        mode &= !0o4000;
    }
    copy.set_permissions(Permissions::from_mode(mode))?;
    Ok(present.uid() == of.uid() && present.gid() == of.gid())
}
