//! The install record beside a tree. To head and index it adds which part of the bundle was unpacked into which directory.

use std::path::{Path, PathBuf};

use crate::{OwnDir, Place, Record, Site, StatCache};
use rustix::fs::{AtFlags, renameat, statat};
use rustix::io::Errno;
use sealift_format::num;
use sealift_format::{Head, Index, Limits, Ref, verity};

use super::stage::TreeStage;
use crate::Error;
use crate::fs::rename::{moves_no_directory, rename_new};
use crate::install_record::{self, HEAD, InstallRecord, read_file};

/// What is installed in a target.
#[derive(Clone, Debug)]
pub struct TreeRecord {
    /// The bundle.
    pub installed: InstallRecord,
    /// The part of it that was unpacked.
    pub part: Record,
    /// If its files are sealed, the fs-verity digests of the index's objects in order, which the index vouches for; empty if some of them are not
    /// in the target.
    pub sealed: Option<Vec<[u8; 32]>>,
}

/// The stats that identify the files without reading them.
const STATS: &str = "stats";
/// The number of seeks that reading the hot set took when an update last wrote it again: a number and a newline. Without this file, the next update
/// assumes 0.
const SEEKS: &str = "seeks";
/// The file that marks a target's files as sealed, and lists the digest of each object.
const DIGESTS: &str = "fs-verity";

impl TreeRecord {
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
        Self::read_behind(dir, InstallRecord::read_head(dir, limits)?)
    }

    /// Reads what a record's directory has besides the head.
    pub fn read_behind(dir: &OwnDir, head: Head) -> Result<Self, Error> {
        let installed = InstallRecord::read_index(dir, head)?;
        let part = read_part(dir)?;
        if installed.index.find_ref(&part.reference).is_none() {
            let problem = "its ref is not in the index".into();
            return Err(Error::State { path: dir.path().join(Record::FILE), problem });
        }
        let sealed = read_digests(dir, &installed.index)?;
        Ok(Self { installed, part, sealed })
    }

    /// The ref that was unpacked.
    pub fn tree(&self) -> Option<&Ref> {
        self.installed.index.find_ref(&self.part.reference)
    }

    /// Returns whether it is the record of the directory at `site`, and not of one that this directory has replaced. Both directories are on the
    /// record's file system, so inode numbers suffice.
    pub fn is_of(&self, site: &Site) -> Result<bool, Error> {
        Ok(site.root().is_some() && site.inode_id()?.1 == self.part.inode)
    }
}

fn read_part(dir: &OwnDir) -> Result<Record, Error> {
    let bytes = read_file(dir, Record::FILE, Record::LEN_MAX)?;
    Record::parse(&bytes).map_err(|problem| Error::State { path: dir.path().join(Record::FILE), problem })
}

/// Returns how the target at `site` was unpacked; `None` if it has no record.
pub fn kept_record(site: &Site) -> Result<Option<Record>, Error> {
    site.record()?.map(|dir| read_part(&dir)).transpose()
}

/// Returns the head of the bundle that the target at `site` holds; `None` if nothing was installed or the target no longer exists.
///
/// # Errors
/// Returns an error if the recorded head cannot be read or is damaged.
pub fn kept_head(site: &Site) -> Result<Option<Head>, Error> {
    let Some(dir) = site.record()?.filter(|_| site.root().is_some()) else { return Ok(None) };
    match InstallRecord::read_head(&dir, Limits::NONE) {
        Err(Error::Format(error)) => Err(Error::State { path: dir.path().join(HEAD), problem: error.to_string() }),
        read => read.map(Some),
    }
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
    dir.replace(STATS, &stats.encode()?, false)
}

/// Returns the recorded number of seeks of the hot set; `None` if there is none.
pub(crate) fn kept_seeks(dir: &OwnDir) -> Option<u64> {
    let bytes = dir.read(SEEKS, 32).ok().flatten()?;
    str::from_utf8(&bytes).ok()?.strip_suffix('\n')?.parse().ok()
}

/// Writes the number of seeks to a target's next record. It is only a hint: a failure is logged.
pub(crate) fn write_seeks(dir: &OwnDir, seeks: u64) {
    if let Err(error) = dir.replace(SEEKS, format!("{seeks}\n").as_bytes(), false) {
        tracing::warn!(%error, "cannot record the seeks of the hot set");
    }
}

/// Notes in the record of the target at `site` that its files are of two bundles, and removes their stats: the next run reads the files.
pub fn note_mixed(site: &Site) -> Result<(), Error> {
    let Some(dir) = site.record()? else { return Ok(()) };
    dir.replace(Record::MIXED, b"", true)?;
    dir.remove(STATS)
}

/// Returns whether this part of the bundle of this head is what was last installed in the target at `site`.
pub fn is_kept(site: &Site, head: &Head, reference: &str, prefix: &[u8]) -> Result<bool, Error> {
    let Some(dir) = site.record()? else { return Ok(false) };
    let record = read_part(&dir);
    Ok(install_record::is_of(&dir, head)
        && record.is_ok_and(|record| record.reference == reference && record.prefix == prefix))
}

/// Returns whether the files of the target at `site` are sealed, according to its record.
pub fn is_sealed(site: &Site) -> Result<bool, Error> {
    site.record()?.map_or(Ok(false), |dir| dir.has(DIGESTS))
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
    let bytes = read_file(dir, DIGESTS, len_max)?;
    if !bytes.is_empty() && verity::digest(&bytes) != *index.verity() {
        return Err(Error::State { path: dir.path().join(DIGESTS), problem: "it does not match the index".into() });
    }
    Ok(Some(bytes.as_chunks().0.to_vec()))
}

/// Returns the files that a target's record has besides those of the bundle; `sealed` are the digests of its objects, if files are sealed.
pub(crate) fn files(part: &Record, sealed: Option<&[[u8; 32]]>) -> Vec<(&'static str, Vec<u8>)> {
    let digests = sealed.map(|digests| (DIGESTS, digests.as_flattened().to_vec()));
    [(Record::FILE, part.encode())].into_iter().chain(digests).collect()
}

/// Returns whether the index recorded for the target at `site` is sealed with a signature for the kernel, according to the record.
pub fn is_signed(site: &Site) -> Result<bool, Error> {
    site.record()?.map_or(Ok(false), |dir| install_record::is_signed(&dir))
}

/// As [`is_signed`], but according to the kernel if the file system supports the query.
///
/// # Errors
/// Returns an error if the index cannot be opened.
pub fn is_index_signed(site: &Site) -> Result<bool, Error> {
    site.record()?.map_or(Ok(false), |dir| install_record::is_index_signed(&dir))
}

/// Makes the record in the stage that of the target. The old one is removed with the stage. If the run is killed in between, the target has no
/// record, and the new one is still in the stage.
///
/// # Errors
/// Returns an error if it cannot be renamed, or if another user placed something where the record was, which is left there.
pub fn replace(stage: &TreeStage, site: &Site) -> Result<(), Error> {
    let (place, own) = (record_place(site)?, stage.own());
    let failed = |error| Error::io("rename to", place.path(), error);
    own.remove(TreeStage::OLD_STATE)?;
    if let Some(before) = site.record()? {
        match renameat(place.parent(), place.name(), own.fd(), TreeStage::OLD_STATE) {
            Err(error) if moves_no_directory(error) => return replace_files(stage, &before),
            moved => moved.map_err(failed)?,
        }
        let moved = statat(own.fd(), TreeStage::OLD_STATE, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        if (moved.st_dev, moved.st_ino) != before.inode_id()? {
            // Anything that appeared under the name in between is not ours to remove.
            rename_new(own.fd(), TreeStage::OLD_STATE, place.parent(), place.name()).map_err(failed)?;
            return Err(Error::Exchanged { path: place.path().to_owned() });
        }
    }
    match rename_new(own.fd(), TreeStage::STATE, place.parent(), place.name()) {
        Err(error) if moves_no_directory(error) => replace_files(stage, &OwnDir::create_public(&place)?),
        renamed => renamed.map_err(failed),
    }
}

/// Gives the target's record the files of the one in the stage, which is complete until all of them have their names.
fn replace_files(stage: &TreeStage, record: &OwnDir) -> Result<(), Error> {
    let missing = || Error::io("open", stage.own().path().join(TreeStage::STATE), Errno::NOENT);
    record.take_files(&stage.state()?.ok_or_else(missing)?, HEAD, true)?;
    stage.own().remove(TreeStage::STATE)
}

/// Removes the record of the target at `site`. Returns whether there was one.
pub fn remove(site: &Site) -> Result<bool, Error> {
    let Some(dir) = site.record()? else { return Ok(false) };
    dir.remove_from(&record_place(site)?)?;
    Ok(true)
}

/// Returns where the record of `target` is, or would be, for messages.
///
/// # Errors
/// Returns an error if the target cannot be resolved.
pub fn path_of(target: &Path) -> Result<PathBuf, Error> {
    Ok(Site::resolve(target)?.record_path())
}

/// Returns the place of the record of the target at `site`, whose stage or record exists.
fn record_place(site: &Site) -> Result<Place, Error> {
    site.record_place()?.ok_or_else(|| Error::io("open", site.record_path(), Errno::NOENT))
}
