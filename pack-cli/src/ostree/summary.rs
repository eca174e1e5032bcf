//! A repository's summary: written anew, as `ostree summary --update` does, or taken over by a mirror.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsFd as _;

use rustix::fs::{AtFlags, Mode as Permissions, OFlags, fchmod, fdatasync, fsync, renameat, unlinkat};
use rustix::io::Errno;
use sealift_format::RepositoryFile;
use sealift_format::name::is_collection_id;
use sealift_format::ostree::{Checksum, Summary, SummaryRef, SummaryRefs};

use super::carried::Carried;
use super::object::ObjectType;
use super::refs::RefPlace;
use super::repo::Repo;
use super::stage::Stage;
use super::transaction::{make_directory, take_lock};
use crate::Error;
use crate::beneath::open_name;

/// Writes the summary of all refs that the repository has, as of `now`, in seconds since 1970.
///
/// # Errors
/// A ref or a commit cannot be read, or the repository cannot be written to.
pub(super) fn write_summary(repo: &Repo, now: u64) -> Result<(), Error> {
    let _lock = if repo.config().locking { Some(take_lock(repo)?) } else { None };
    replace(repo, &encode(repo, now)?, None)
}

/// Gives a mirror the summary that the bundle carries, with its signature, as `ostree pull --mirror` does: if all that it names is in the
/// bundle, and it is of a repository of the same mode. Returns whether it was.
///
/// # Errors
/// The repository cannot be written to.
pub(super) fn mirror_summary(repo: &Repo, carried: &Carried<'_>) -> Result<bool, Error> {
    let file =
        |wanted| carried.bundle.index.repository_files().find(|(kind, _)| *kind == wanted).map(|(_, bytes)| bytes);
    let Some(bytes) = file(RepositoryFile::Summary) else { return Ok(false) };
    let Some(summary) = Summary::parse(bytes).ok().filter(|summary| summary.mode == repo.config().mode.name()) else {
        return Ok(false);
    };
    let mut commits: BTreeMap<(&str, &str), Checksum> = BTreeMap::new();
    for from in carried.bundle.index.refs() {
        if let Some(ostree) = &from.ostree {
            commits.insert((&ostree.collection, &from.name), carried.tip(from)?.checksum);
        }
    }
    let own = summary.collection_id.unwrap_or_default();
    let mut all = std::iter::once((own, &summary.refs)).chain(summary.collections.iter().map(|(id, refs)| (*id, refs)));
    let is_carried = |id, refs: &SummaryRefs<'_>| {
        refs.iter().all(|(name, commit)| commits.get(&(id, *name)) == Some(&commit.commit()))
    };
    if !all.all(|(id, refs)| is_carried(id, refs)) {
        return Ok(false);
    }
    let signature = file(RepositoryFile::SummarySignature);
    let there = |name| repo.top_file(name);
    if there(SUMMARY)?.as_deref() != Some(bytes) || there(SIGNATURE)?.as_deref() != signature {
        let _lock = if repo.config().locking { Some(take_lock(repo)?) } else { None };
        replace(repo, bytes, signature)?;
    }
    Ok(true)
}

const SUMMARY: &str = "summary";
const SIGNATURE: &str = "summary.sig";

fn encode(repo: &Repo, now: u64) -> Result<Vec<u8>, Error> {
    let refs = repo.refs()?;
    let mut commits: BTreeMap<Checksum, Vec<u8>> = BTreeMap::new();
    for (_, checksum) in &refs {
        if !commits.contains_key(checksum) {
            commits.insert(*checksum, repo.load_metadata(ObjectType::Commit, checksum)?);
        }
    }
    let own = repo.config().collection_id.as_deref();
    let mut summary = Summary {
        mode: repo.config().mode.name(),
        collection_id: own,
        has_tombstones: repo.config().tombstones,
        last_modified: now,
        refs: SummaryRefs::new(),
        collections: BTreeMap::new(),
    };
    for (name, checksum) in &refs {
        let bytes = commits.get(checksum).map_or(&[][..], Vec::as_slice);
        let commit =
            SummaryRef::new(*checksum, bytes).map_err(|fault| repo.wrong(ObjectType::Commit, checksum, fault))?;
        let collection = match name.place() {
            RefPlace::Heads => None,
            RefPlace::Mirror(id) => Some(id.as_str()),
            RefPlace::Remote(remote) => {
                let remote = repo.config().remotes.iter().find(|known| known.name == *remote);
                let id = remote.and_then(|remote| remote.collection_id.as_deref());
                let Some(id) = id.filter(|id| is_collection_id(id)) else { continue };
                Some(id)
            }
        };
        let of = match collection.filter(|id| own != Some(id)) {
            Some(id) => summary.collections.entry(id).or_default(),
            None if collection.is_some() => continue,
            None => &mut summary.refs,
        };
        // Mirrors are the last of the refs, and stand above what a remote had.
        of.insert(name.name(), commit);
    }
    Ok(summary.encode())
}

/// Writes both files aside, and renames them over those that are there.
fn replace(repo: &Repo, summary: &[u8], signature: Option<&[u8]>) -> Result<(), Error> {
    let failed = |name: &str| {
        let path = repo.path().join(name);
        move |error: Errno| Error::io("write", path.clone(), error)
    };
    let stage = make_directory(repo, "tmp").and_then(Stage::create).map_err(failed("tmp"))?;
    // A signature is one of the bytes that were there.
    match unlinkat(repo.root(), SIGNATURE, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(failed(SIGNATURE)(error)),
    }
    for (name, bytes) in std::iter::once((SUMMARY, summary)).chain(signature.map(|bytes| (SIGNATURE, bytes))) {
        put(repo, &stage, name, bytes).map_err(failed(name))?;
    }
    if repo.config().fsync { fsync(repo.root().as_fd()).map_err(failed(SUMMARY)) } else { Ok(()) }
}

fn put(repo: &Repo, stage: &Stage, name: &str, bytes: &[u8]) -> Result<(), Errno> {
    let mode = Permissions::from_raw_mode(0o644);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let mut file = File::from(open_name(stage.directory(), name.as_bytes(), flags, mode)?);
    file.write_all(bytes).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    fchmod(&file, mode)?;
    if repo.config().fsync {
        fdatasync(&file)?;
    }
    renameat(stage.directory(), name, repo.root(), name)
}
