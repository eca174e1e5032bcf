//! What a repository keeps of the bundles that it took: the head and the index of the last one of each name, one after the other, as
//! `extensions/sealift/NAME`. libostree leaves `extensions` to others. What is kept is of use only where its index is the base of a delta
//! bundle, or what that makes; objects are looked at, whatever it says.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::{Mode as Permissions, OFlags, fchmod, fdatasync, fsync, renameat};
use rustix::io::Errno;
use sealift_format::{
    Bundle, Error as FormatError, Head, Index, IndexBuilder, InodeKind, Limits, Node, Object, Part, Preamble, verity,
};

use super::repo::Repo;
use super::stage::Stage;
use super::transaction::{make_directory, take_lock};
use crate::Error;
use crate::beneath::{names_in, open_beneath, open_name};
use crate::seal::{Parameters, seal_open};

/// What a repository took last of the bundles of a name.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) head: Head,
    pub(super) index: Index,
}

/// Where it lies in a repository.
pub(super) const KEPT: &str = "extensions/sealift";

impl Kept {
    /// The names of the bundles of which something is kept.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(super) fn names(repo: &Repo) -> Result<Vec<String>, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let names = match open_beneath(repo.root(), KEPT.as_bytes(), flags, Permissions::empty()) {
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Vec::new()),
            Err(error) => Err(error),
            Ok(folder) => names_in(folder.as_fd()),
        };
        let names = names.map_err(|error| Error::io("read", repo.path().join(KEPT), error))?;
        Ok(names.into_iter().filter_map(|(name, _)| String::from_utf8(name).ok()).collect())
    }

    /// Reads what is kept of the bundles of a name. What is damaged counts as not there: it is made anew.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn load(repo: &Repo, name: &str) -> Result<Option<Self>, Error> {
        let path = format!("{KEPT}/{name}");
        let Some(bytes) = read(repo, &path)? else { return Ok(None) };
        match Self::parse(bytes) {
            Ok(kept) => Ok(Some(kept)),
            Err(error) => {
                let path = repo.path().join(path);
                tracing::warn!(%error, path = %path.display(), "what the repository kept is damaged, and counts as not there");
                Ok(None)
            }
        }
    }

    fn parse(mut bytes: Vec<u8>) -> Result<Self, FormatError> {
        let at = |len: u32| usize::try_from(len).unwrap_or(usize::MAX);
        let preamble = Preamble::parse(bytes.get(..at(Preamble::LEN)).unwrap_or(&bytes))?;
        let index = bytes.split_off(at(preamble.head_len()).min(bytes.len()));
        let head = Head::parse(&bytes)?;
        Limits::default().check(head.root())?;
        if verity::digest(&index) != head.root().contents.index_digest {
            return Err(FormatError::Digest { part: Part::Index });
        }
        let index = Index::parse(index, head.root().maxima.entries)?;
        Ok(Self { head, index })
    }

    pub(super) fn digest(&self) -> [u8; 32] {
        self.head.root().contents.index_digest
    }

    /// The index as it is without files of the repository that the commits came from; `None` where it has none, or has trees that are no
    /// commits.
    pub(super) fn without_repository_files(&self) -> Result<Option<Index>, Error> {
        let index = &self.index;
        let are_commits = index.refs().iter().all(|from| from.ostree.is_some());
        let Some(ostree) = index.ostree().filter(|_| are_commits && index.repository_files().next().is_some()) else {
            return Ok(None);
        };
        let mut builder = IndexBuilder::default();
        for from in index.refs() {
            let Some(own) = &from.ostree else { continue };
            builder.commit_ref(&from.name, own.is_known.then_some(own.commit), &own.collection);
        }
        for object in ostree.objects() {
            builder.ostree_object(object.kind, index.ostree_bytes(object));
        }
        for file in ostree.files() {
            let node = match file.kind {
                InodeKind::Regular(content) => Node::Regular { content },
                InodeKind::Symlink(link) => Node::Symlink(index.symlink_target(link)),
                _ => continue,
            };
            builder.ostree_file(index.ostree_attributes(file), node);
        }
        let rows: Vec<Object> = builder.contents().iter().map(|object| *index.object(*object)).collect();
        Ok(Some(Index::parse(builder.finish(rows.into_iter(), index.verity()), u64::MAX)?))
    }
}

/// Keeps what a repository took of a bundle, unless it is just that which is kept. It is sealed if the objects are.
///
/// # Errors
/// The repository cannot be written to.
pub(super) fn keep(repo: &Repo, bundle: &Bundle, is_sealed: bool) -> Result<(), Error> {
    let name = &bundle.head.root().identity.name;
    let bytes = [&bundle.head.encode(), bundle.index.bytes()].concat();
    let path = format!("{KEPT}/{name}");
    if read(repo, &path)?.is_some_and(|kept| kept == bytes) {
        return Ok(());
    }
    let _lock = if repo.config().locking { Some(take_lock(repo)?) } else { None };
    let path = repo.path().join(path);
    let kept = write(repo, name, &bytes).map_err(|error| Error::io("write", &path, error))?;
    if is_sealed {
        seal_open(kept.as_fd(), &Parameters::default(), None).map_err(|error| Error::kernel(path, error))?;
    }
    Ok(())
}

/// Reads a file of ours, of any length that a bundle's head and index may have.
fn read(repo: &Repo, path: &str) -> Result<Option<Vec<u8>>, Error> {
    let failed = |error: std::io::Error| Error::io("read", repo.path().join(path), error);
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    let file = match open_beneath(repo.root(), path.as_bytes(), flags, Permissions::empty()) {
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        opened => File::from(opened.map_err(|error| failed(error.into()))?),
    };
    let head = Preamble::LEN + Preamble::ROOT_LEN_MAX + Preamble::AREA_LEN_MAX;
    let mut bytes = Vec::new();
    file.take(Limits::default().index_len + u64::from(head)).read_to_end(&mut bytes).map_err(failed)?;
    Ok(Some(bytes))
}

/// Writes it aside, and renames it over what is there. Returns it, open for reading.
fn write(repo: &Repo, name: &str, bytes: &[u8]) -> Result<OwnedFd, Errno> {
    let stage = make_directory(repo, "tmp").and_then(Stage::create)?;
    let mode = Permissions::from_raw_mode(0o644);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let mut file = File::from(open_name(stage.directory(), b"kept", flags, mode)?);
    file.write_all(bytes).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    fchmod(&file, mode)?;
    if repo.config().fsync {
        fdatasync(&file)?;
    }
    let folder = make_directory(repo, KEPT)?;
    drop(file);
    renameat(stage.directory(), "kept", &folder, name)?;
    if repo.config().fsync {
        fsync(folder.as_fd())?;
    }
    open_name(folder.as_fd(), name.as_bytes(), OFlags::RDONLY | OFlags::NONBLOCK, Permissions::empty())
}
