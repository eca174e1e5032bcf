//! Writing a repository's summary anew, as `ostree summary --update` does.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsFd as _;

use rustix::fs::{AtFlags, Mode as Permissions, OFlags, fchmod, fdatasync, fsync, renameat, unlinkat};
use rustix::io::Errno;
use sealift_format::name::is_collection_id;
use sealift_format::ostree::{Checksum, Summary, SummaryRef, SummaryRefs};

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
    let bytes = encode(repo, now)?;
    replace(repo, &bytes).map_err(|error| Error::io("write", repo.path().join("summary"), error))
}

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

/// Writes the file aside, and renames it over the one that is there.
fn replace(repo: &Repo, bytes: &[u8]) -> Result<(), Errno> {
    const NAME: &str = "summary";
    let stage = Stage::create(make_directory(repo, "tmp")?)?;
    let mode = Permissions::from_raw_mode(0o644);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let mut file = File::from(open_name(stage.directory(), NAME.as_bytes(), flags, mode)?);
    file.write_all(bytes).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    fchmod(&file, mode)?;
    if repo.config().fsync {
        fdatasync(&file)?;
    }
    // A signature is one of the bytes that were there.
    match unlinkat(repo.root(), "summary.sig", AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error),
    }
    renameat(stage.directory(), NAME, repo.root(), NAME)?;
    if repo.config().fsync { fsync(repo.root().as_fd()) } else { Ok(()) }
}
