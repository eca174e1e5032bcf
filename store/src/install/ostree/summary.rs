//! A repository's summary: updated, as `ostree summary --update` does, or copied by a mirror.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsFd as _;

use rustix::fs::{AtFlags, Mode as Permissions, OFlags, fchmod, fdatasync, fsync, renameat, unlinkat};
use rustix::io::Errno;
use sealift_format::RepositoryFile;
use sealift_format::name::is_collection_id;
use sealift_format::ostree::{Checksum, Summary, SummaryRef, SummaryRefs};

use crate::Error;
use crate::fs::confined::open_name;
use crate::ostree::carried::Carried;
use crate::ostree::object::ObjectType;
use crate::ostree::refs::{RefName, RefOwner};
use crate::ostree::repo::Repo;
use crate::ostree::stage::ObjectStage;
use crate::ostree::transaction::{make_directory, take_lock};

/// Writes the summary of all refs in the repository, as of `now`, in seconds since 1970.
///
/// # Errors
/// Returns an error if a ref or a commit cannot be read, or if the repository cannot be written to.
pub(super) fn write_summary(repo: &Repo, now: u64) -> Result<(), Error> {
    let _lock = if repo.config().locking { Some(take_lock(repo)?) } else { None };
    replace(repo, &encode(repo, now)?, None)
}

/// What happened to the summary of a repository that is not on a medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Renewed {
    /// It listed other commits, and was rewritten.
    pub(super) is_updated: bool,
    /// The old one was signed; only the key's owner can sign it again.
    pub(super) has_lost_signature: bool,
    /// The old one was Flatpak's, which says more about each ref.
    pub(super) was_flatpak: bool,
}

/// Rewrites the summary of a repository that has one, if it does not list the commits that these refs now name. Flatpak's index of summaries is
/// then removed: without it, Flatpak clients read the summary.
pub(super) fn renew_summary(repo: &Repo, names: &[RefName], now: u64) -> Result<Renewed, Error> {
    let Some(there) = repo.top_file(SUMMARY)? else { return Ok(Renewed::default()) };
    let _lock = if repo.config().locking { Some(take_lock(repo)?) } else { None };
    let new = encode(repo, now)?;
    let listed = Summary::parse(&new).map(|summary| listed(&summary, names)).unwrap_or_default();
    // An unreadable one lists none.
    let before = Summary::parse(&there).map(|summary| self::listed(&summary, names)).unwrap_or_default();
    if listed == before && Summary::parse(&there).is_ok() {
        return Ok(Renewed::default());
    }
    let has = |name| Ok::<_, Error>(repo.top_file(name)?.is_some());
    let renewed = Renewed {
        is_updated: true,
        has_lost_signature: has(SIGNATURE)? || has(INDEX_SIGNATURE)?,
        was_flatpak: has(INDEX)? || there.windows(FLATPAK.len()).any(|window| window == FLATPAK),
    };
    replace(repo, &new, None)?;
    Ok(renewed)
}

/// Returns which of these refs a summary lists, by their collections and names, and their commits.
fn listed(summary: &Summary<'_>, names: &[RefName]) -> Vec<(String, String, Checksum)> {
    let own = summary.collection_id.unwrap_or_default();
    let all = std::iter::once((own, &summary.refs)).chain(summary.collections.iter().map(|(id, refs)| (*id, refs)));
    let refs = all.flat_map(|(id, refs)| refs.iter().map(move |(name, commit)| (id, *name, commit.commit())));
    let is_asked = |name: &str| names.iter().any(|asked| asked.name() == name);
    refs.filter(|(_, name, _)| is_asked(name)).map(|(id, name, commit)| (id.into(), name.into(), commit)).collect()
}

/// Gives a mirror the bundle's summary with its signature, as `ostree pull --mirror` does, if the bundle has all commits that the summary names, and
/// the summary is of a repository with the same mode. Returns whether the mirror has it now.
pub(super) fn mirror_summary(repo: &Repo, carried: &Carried<'_>) -> Result<bool, Error> {
    let file =
        |wanted| carried.bundle.layout.repository.iter().find(|(kind, _)| *kind == wanted).map(|(_, bytes)| &bytes[..]);
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
/// Flatpak's list of summaries, which its clients look for first.
const INDEX: &str = "summary.idx";
const INDEX_SIGNATURE: &str = "summary.idx.sig";
/// A key that only Flatpak's summaries have.
const FLATPAK: &[u8] = b"xa.cache\0";

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
            RefOwner::Heads => None,
            RefOwner::Mirror(id) => Some(id.as_str()),
            RefOwner::Remote(remote) => {
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
        // Mirrors are the last of the refs, and override those of a remote.
        of.insert(name.name(), commit);
    }
    Ok(summary.encode())
}

/// Writes both files under temporary names, and renames them over the existing ones.
fn replace(repo: &Repo, summary: &[u8], signature: Option<&[u8]>) -> Result<(), Error> {
    let failed = |name: &str| {
        let path = repo.path().join(name);
        move |error: Errno| Error::io("write", path.clone(), error)
    };
    let stage = make_directory(repo, "tmp").and_then(ObjectStage::create).map_err(failed("tmp"))?;
    // A signature covers the old bytes, and an index lists them.
    for name in [INDEX_SIGNATURE, INDEX, SIGNATURE] {
        match unlinkat(repo.root(), name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(failed(name)(error)),
        }
    }
    for (name, bytes) in std::iter::once((SUMMARY, summary)).chain(signature.map(|bytes| (SIGNATURE, bytes))) {
        put(repo, &stage, name, bytes).map_err(failed(name))?;
    }
    if repo.config().fsync { fsync(repo.root().as_fd()).map_err(failed(SUMMARY)) } else { Ok(()) }
}

fn put(repo: &Repo, stage: &ObjectStage, name: &str, bytes: &[u8]) -> Result<(), Errno> {
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
