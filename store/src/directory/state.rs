//! The install record beside a tree: the bundle's head and index, and which part of it was unpacked into which directory.

use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use crate::{OwnDir, Record, Site, StatCache};
use rustix::fs::{AtFlags, RenameFlags, renameat, renameat_with, statat};
use rustix::io::Errno;
use sealift_format::num;
use sealift_format::{Bundle, Error as FormatError, Head, Index, Limits, Part, Ref, verity};
use sealift_verify::kernel::KernelError;

use super::stage::Stage;
use crate::Error;
use crate::seal::{self, KernelSignature, WantedSignature, seal_index};

/// What is installed in a target.
#[derive(Clone, Debug)]
pub struct InstallRecord {
    /// The bundle's head, with its signatures.
    pub head: Head,
    /// The bundle's index.
    pub index: Index,
    /// Returns the ref that was unpacked.
    pub reference: String,
    /// Only what lies at or below this path was unpacked.
    pub prefix: Vec<u8>,
    /// The inode number of the unpacked directory.
    pub inode: u64,
    /// Whether root unpacked it, with owners and all other metadata.
    pub as_root: bool,
    /// If its files are sealed, the fs-verity digests of the index's objects in order, which the index vouches for; empty if some of them are not
    /// in the target.
    pub sealed: Option<Vec<[u8; 32]>>,
}

/// The bundle's head.
const HEAD: &str = "head";
/// The bundle's index.
const INDEX: &str = "index";
/// The stats that identify the files without reading them.
const STATS: &str = "stats";
/// The signature for the kernel that the index is sealed with.
const SIGNATURE: &str = "index.p7s";
/// The file that marks a target's files as sealed, and lists the digest of each object.
const DIGESTS: &str = "fs-verity";

impl InstallRecord {
    /// Reads the record of `target`: verified, then parsed. Returns `None` if there is none.
    ///
    /// # Errors
    /// Returns an error if the record cannot be read, is damaged, or belongs to another user.
    pub fn load(target: &Path, limits: Limits) -> Result<Option<Self>, Error> {
        Self::of(&Site::resolve(target)?, limits)
    }

    /// Reads the record of the target at `site`.
    pub fn of(site: &Site, limits: Limits) -> Result<Option<Self>, Error> {
        site.record()?.map(|dir| Self::read(&dir, limits)).transpose()
    }

    /// Reads a record's directory.
    pub fn read(dir: &OwnDir, limits: Limits) -> Result<Self, Error> {
        Self::read_behind(dir, read_head(dir, limits)?)
    }

    /// Reads what a record's directory has besides the head.
    pub fn read_behind(dir: &OwnDir, head: Head) -> Result<Self, Error> {
        let contents = &head.root().contents;
        let index = read(dir, INDEX, contents.index_len)?;
        if verity::digest(&index) != contents.index_digest {
            return Err(FormatError::Digest { part: Part::Index }.into());
        }
        let index = Index::parse(index, head.root().maxima.entries)?;
        let Record { reference, prefix, inode, as_root } = read_record(dir)?;
        if index.find_ref(&reference).is_none() {
            let problem = "its ref is not in the index".into();
            return Err(Error::State { path: dir.path().join(Record::FILE), problem });
        }
        let sealed = read_digests(dir, &index)?;
        Ok(Self { head, index, reference, prefix, inode, as_root, sealed })
    }

    /// The ref that was unpacked.
    pub fn tree(&self) -> Option<&Ref> {
        self.index.find_ref(&self.reference)
    }

    /// Returns whether it is of the directory at `site`, which is on the record's file system: not of one that was copied or moved over it.
    pub fn is_of(&self, site: &Site) -> Result<bool, Error> {
        Ok(site.root().is_some() && site.identity()?.1 == self.inode)
    }
}

/// Reads the head in a record's directory.
///
/// # Errors
/// Returns an error if it cannot be read or is damaged.
pub fn read_head(dir: &OwnDir, limits: Limits) -> Result<Head, Error> {
    let head = Head::parse(&read(dir, HEAD, Head::LEN_MAX.into())?)?;
    limits.check(head.root())?;
    Ok(head)
}

fn read_record(dir: &OwnDir) -> Result<Record, Error> {
    let bytes = read(dir, Record::FILE, Record::LEN_MAX)?;
    Record::parse(&bytes).map_err(|problem| Error::State { path: dir.path().join(Record::FILE), problem })
}

/// Returns how the target at `site` was unpacked; `None` if it has no record.
pub fn kept_record(site: &Site) -> Result<Option<Record>, Error> {
    site.record()?.map(|dir| read_record(&dir)).transpose()
}

/// Returns the head of the bundle that the target at `site` holds; `None` if nothing was installed or the target no longer exists.
///
/// # Errors
/// Returns an error if the recorded head cannot be read or is damaged.
pub fn kept_head(site: &Site) -> Result<Option<Head>, Error> {
    let Some(dir) = site.record()?.filter(|_| site.root().is_some()) else { return Ok(None) };
    let bytes = read(&dir, HEAD, Head::LEN_MAX.into())?;
    let parsed = Head::parse(&bytes);
    parsed.map(Some).map_err(|error| Error::State { path: dir.path().join(HEAD), problem: error.to_string() })
}

/// Returns the recorded stats of the files of the target at `site`, numbered by the entries of the index of this digest; `None` if they are
/// missing, damaged, of another index or another user's.
///
/// # Errors
/// Returns an error if the record is another user's.
pub fn kept_stats(site: &Site, of: [u8; 32], entries: usize) -> Result<Option<StatCache>, Error> {
    let Some(dir) = site.record()? else { return Ok(None) };
    let bytes = dir.read(STATS, StatCache::encoded_len(entries)).ok().flatten();
    let user = rustix::process::geteuid().as_raw();
    let stats = bytes.and_then(|bytes| StatCache::parse(&bytes));
    Ok(stats.filter(|stats| (stats.of, stats.user, stats.len()) == (of, user, entries)))
}

/// Writes the stats of a target's files to its record, or to its next one. They are synced only if the rest is: a truncated file is noticed, and
/// the files are read instead.
pub fn write_stats(dir: &OwnDir, stats: &StatCache) -> Result<(), Error> {
    dir.replace(STATS, &stats.encode(), false)
}

/// Removes the recorded stats of the files of the target at `site`: the next run reads them.
pub fn forget_stats(site: &Site) -> Result<(), Error> {
    match site.record()? {
        Some(dir) => Ok(dir.remove(STATS)?),
        None => Ok(()),
    }
}

/// Returns whether the directory at `site` has no record of this program, or one of another directory.
///
/// # Errors
/// Returns an error if the record cannot be read, or is another user's.
pub fn is_foreign(site: &Site) -> Result<bool, Error> {
    let Some(dir) = site.record()? else { return Ok(true) };
    match read_record(&dir) {
        Ok(record) => Ok(record.inode != site.identity()?.1),
        // It is damaged, but ours.
        Err(Error::State { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns whether this part of the bundle of this head is what was last installed in the target at `site`.
pub fn is_kept(site: &Site, head: &Head, reference: &str, prefix: &[u8]) -> Result<bool, Error> {
    let Some(dir) = site.record()? else { return Ok(false) };
    let record = read_record(&dir);
    Ok(read(&dir, HEAD, Head::LEN_MAX.into()).is_ok_and(|bytes| bytes == head.encode())
        && record.is_ok_and(|record| record.reference == reference && record.prefix == prefix))
}

/// Returns whether the files of the target at `site` are sealed, according to its record.
pub fn is_sealed(site: &Site) -> Result<bool, Error> {
    has(site, DIGESTS)
}

fn has(site: &Site, name: &str) -> Result<bool, Error> {
    let Some(dir) = site.record()? else { return Ok(false) };
    dir.has(name)
}

/// Returns the recorded digests of the objects of an index for the target at `site`; `None` if it is not recorded as sealed.
///
/// # Errors
/// Returns an error if they cannot be read, or do not match the index.
pub fn kept_digests(site: &Site, index: &Index) -> Result<Option<Vec<[u8; 32]>>, Error> {
    match site.record()? {
        Some(dir) => read_digests(&dir, index),
        None => Ok(None),
    }
}

fn read_digests(dir: &OwnDir, index: &Index) -> Result<Option<Vec<[u8; 32]>>, Error> {
    if !dir.has(DIGESTS)? {
        return Ok(None);
    }
    let len_max = num::wide(index.objects().len()).saturating_mul(32);
    let bytes = read(dir, DIGESTS, len_max)?;
    if !bytes.is_empty() && verity::digest(&bytes) != *index.verity() {
        return Err(Error::State { path: dir.path().join(DIGESTS), problem: "it is not what the index says".into() });
    }
    Ok(Some(bytes.as_chunks().0.to_vec()))
}

/// The part of a bundle that is installed in a target.
pub(crate) struct NewRecord<'a> {
    pub(crate) bundle: &'a Bundle,
    pub(crate) record: Record,
    /// The digests of its objects, if files are sealed: then so are the index and the digests.
    pub(crate) sealed: Option<Vec<[u8; 32]>>,
    /// The signature for the kernel to seal the index with.
    pub(crate) signature: Option<WantedSignature<'a>>,
}

/// Writes a record to the stage, and returns what happened to the signature for the kernel.
pub(crate) fn write(stage: &Stage, took: &NewRecord<'_>, durable: bool) -> Result<KernelSignature, Error> {
    let dir = stage.new_state()?;
    dir.write_new(HEAD, &took.bundle.head.encode(), durable)?;
    dir.write_new(INDEX, took.bundle.index.bytes(), durable)?;
    dir.write_new(Record::FILE, &took.record.encode(), durable)?;
    let Some(sealed) = &took.sealed else { return Ok(KernelSignature::None) };
    dir.write_new(DIGESTS, sealed.as_flattened(), durable)?;
    seal_file(&dir, DIGESTS, verity::digest(sealed.as_flattened()), None)?;
    let outcome = seal_file(&dir, INDEX, took.bundle.head.root().contents.index_digest, took.signature)?;
    if let (KernelSignature::Taken, Some(signature)) = (&outcome, took.signature) {
        dir.write_new(SIGNATURE, signature.body, durable)?;
    }
    Ok(outcome)
}

/// Checks whether the kernel accepts a signature of the index, by sealing an index in the stage; the actual record replaces it later.
pub(crate) fn try_signature(stage: &Stage, bundle: &Bundle, signature: WantedSignature<'_>) -> Result<(), Error> {
    let dir = stage.new_state()?;
    dir.write_new(INDEX, bundle.index.bytes(), false)?;
    seal_file(&dir, INDEX, bundle.head.root().contents.index_digest, Some(signature)).map(drop)
}

/// Returns whether the index recorded for the target at `site` is sealed with a signature for the kernel, according to the record.
pub fn is_signed(site: &Site) -> Result<bool, Error> {
    has(site, SIGNATURE)
}

/// Returns the same according to the kernel, if the file system supports the query.
///
/// # Errors
/// Returns an error if the index cannot be opened.
pub fn is_index_signed(site: &Site) -> Result<bool, Error> {
    let Some(dir) = site.record()? else { return Ok(false) };
    let path = dir.path().join(INDEX);
    let opened = dir.open_file(INDEX).map_err(of_sealed)?;
    let Some(index) = opened else { return Ok(false) };
    let said = seal::has_signature(index.as_fd()).map_err(|error| Error::kernel(path, error))?;
    said.map_or_else(|| is_signed(site), Ok)
}

/// Seals a file that was written: from then on the kernel vouches for this digest.
fn seal_file(
    dir: &OwnDir,
    name: &str,
    digest: [u8; 32],
    signature: Option<WantedSignature<'_>>,
) -> Result<KernelSignature, Error> {
    let path = dir.path().join(name);
    let file = dir.open_file(name)?.ok_or_else(|| Error::io("open", &path, Errno::NOENT))?;
    seal_index(file.as_fd(), &path, digest, signature)
}

/// Makes the record in the stage the target's. The old one is removed with the stage: after a kill in between, the target has none, and the stage
/// the new one.
///
/// # Errors
/// Returns an error if it cannot be renamed, or if another user placed something where the record was, which is left there.
pub fn replace(stage: &Stage, site: &Site) -> Result<(), Error> {
    let (place, own) = (site.record_place()?, stage.own());
    let failed = |error| Error::io("rename to", place.path(), error);
    own.remove(Stage::OLD_STATE)?;
    if let Some(before) = site.record()? {
        renameat(place.parent(), place.name(), own.fd(), Stage::OLD_STATE).map_err(failed)?;
        let moved = statat(own.fd(), Stage::OLD_STATE, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        if (moved.st_dev, moved.st_ino) != before.identity()? {
            // Anything that appeared under the name in between is not ours to remove.
            renameat_with(own.fd(), Stage::OLD_STATE, place.parent(), place.name(), RenameFlags::NOREPLACE)
                .map_err(failed)?;
            return Err(Error::Exchanged { path: place.path().to_owned() });
        }
    }
    match renameat_with(own.fd(), Stage::STATE, place.parent(), place.name(), RenameFlags::NOREPLACE) {
        // A file system without this kind of rename: a rename over a non-empty directory fails.
        Err(Errno::INVAL | Errno::NOSYS) => {
            renameat(own.fd(), Stage::STATE, place.parent(), place.name()).map_err(failed)
        }
        renamed => renamed.map_err(failed),
    }
}

/// Removes the record of the target at `site`. Returns whether there was one.
pub fn remove(site: &Site) -> Result<bool, Error> {
    let Some(dir) = site.record()? else { return Ok(false) };
    dir.remove_from(&site.record_place()?)?;
    Ok(true)
}

/// Reads one of our files of at most `len` bytes, and one more if it is longer.
fn read(dir: &OwnDir, name: &str, len: u64) -> Result<Vec<u8>, Error> {
    match dir.read(name, len).map_err(of_sealed)? {
        Some(bytes) => Ok(bytes),
        None => Err(Error::State { path: dir.path().join(name), problem: "it is missing".into() }),
    }
}

/// Explains the error: an index sealed with a signature for the kernel can only be opened where its certificate is present.
fn of_sealed(error: Error) -> Error {
    match error {
        Error::Io { path, source, doing } => match KernelError::of_open(&source) {
            Some(source) => Error::kernel(path, source),
            None => Error::Io { doing, path, source },
        },
        other => other,
    }
}

/// Returns where the record of `target` is, or would be, for messages.
///
/// # Errors
/// Returns an error if the target cannot be resolved.
pub fn path_of(target: &Path) -> Result<PathBuf, Error> {
    Ok(Site::resolve(target)?.record_place()?.path().to_owned())
}
