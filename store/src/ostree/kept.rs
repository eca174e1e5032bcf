//! The install records of a repository: the head of the last bundle of each name, `extensions/sealift/NAME/head`, and beside it its
//! index, `index-DIGEST`, with the kernel signature it is sealed with, `index-DIGEST.p7s`. libostree leaves `extensions` to others.
//! A record is used only if its index is the base or the result of a delta bundle; objects are checked whatever it states.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{
    Mode as Permissions, OFlags, Stat, Timespec, Timestamps, UTIME_OMIT, fchmod, fdatasync, fstat, fsync, futimens,
    mkdirat, renameat,
};
use rustix::io::Errno;
use sealift_format::{
    Bundle, Error as FormatError, Head, Index, IndexBuilder, InodeKind, Limits, Node, Object, Part, verity,
};
use sealift_verify::kernel::KernelError;

use super::object::hex;
use super::repo::Repo;
use super::stage::ObjectStage;
use super::transaction::{make_directory, take_lock};
use crate::Error;
use crate::check_owner;
use crate::fs::confined::{names_below, names_in, open_beneath, open_name, remove_tree};
use crate::seal::{KernelSignature, Parameters, WantedSignature, seal_index, seal_open};
use crate::trust::{Guard, Judged};

/// The record of the last imported bundle of a name.
#[derive(Debug)]
pub(crate) struct InstallRecord {
    pub(crate) head: Head,
    pub(crate) index: Index,
}

/// The folder of records in a repository.
const KEPT: &str = "extensions/sealift";
/// The bundle's head.
pub(crate) const HEAD: &str = "head";

impl InstallRecord {
    /// Returns the names of the bundles with a record.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be read.
    pub(crate) fn names(repo: &Repo) -> Result<Vec<String>, Error> {
        names_below(repo.root(), KEPT).map_err(|error| Error::io("read", repo.path().join(KEPT), error))
    }

    /// Reads the record of a name. A damaged one counts as missing: it is rebuilt.
    ///
    /// # Errors
    /// Returns an error if it cannot be read.
    pub(crate) fn load(repo: &Repo, name: &str) -> Result<Option<Self>, Error> {
        let Some(head) = read(repo, name, HEAD, Head::LEN_MAX.into())? else { return Ok(None) };
        match Self::parse(repo, name, &head)? {
            Ok(kept) => Ok(Some(kept)),
            Err(error) => {
                let path = repo.path().join(path(name, HEAD));
                tracing::warn!(%error, path = %path.display(), "ignored the damaged record of this repository");
                Ok(None)
            }
        }
    }

    /// Reads the record of a name if `guard` accepts the head. Returns `None` if a run was killed before the record was complete.
    ///
    /// # Errors
    /// Returns an error if it is refused or damaged, or cannot be read.
    pub(crate) fn load_judged(repo: &Repo, name: &str, guard: &Guard) -> Result<Option<(Judged, Self)>, Error> {
        let shown = repo.path().join(path(name, HEAD));
        let of_it = |error: Error| error.of_bundle(&shown);
        let Some(bytes) = read(repo, name, HEAD, Head::LEN_MAX.into())? else { return Ok(None) };
        let head = parse_head(name, &bytes).map_err(|error| of_it(error.into()))?;
        let judged = guard.judge_taken(&head).map_err(of_it)?;
        let kept = Self::parse(repo, name, &bytes)?.map_err(|error| of_it(error.into()))?;
        Ok(Some((judged, kept)))
    }

    fn parse(repo: &Repo, name: &str, head: &[u8]) -> Result<Result<Self, FormatError>, Error> {
        let head = match parse_head(name, head).and_then(|head| Limits::NONE.check(head.root()).map(|()| head)) {
            Ok(head) => head,
            Err(error) => return Ok(Err(error)),
        };
        let contents = &head.root().contents;
        let index = read(repo, name, &index_name(&head), contents.index_len)?.unwrap_or_default();
        if verity::digest(&index) != contents.index_digest {
            return Ok(Err(FormatError::Digest { part: Part::Index }));
        }
        Ok(Index::parse(index, head.root().maxima.entries).map(|index| Self { head, index }))
    }

    /// Returns the indexes that all records have, and where the source repository's files are in one, that without them.
    ///
    /// # Errors
    /// Returns an error if one cannot be read.
    pub(crate) fn indexes(repo: &Repo) -> Result<Vec<Index>, Error> {
        let mut indexes = Vec::new();
        for name in Self::names(repo)? {
            let Some(kept) = Self::load(repo, &name)? else { continue };
            indexes.extend(kept.without_repository_files()?);
            indexes.push(kept.index);
        }
        Ok(indexes)
    }

    /// Returns the index without files of the source repository; `None` if it has none, or has trees that are not commits.
    pub(crate) fn without_repository_files(&self) -> Result<Option<Index>, Error> {
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

/// Parses the recorded head of a name: one that was copied from another name's record does not count.
fn parse_head(name: &str, bytes: &[u8]) -> Result<Head, FormatError> {
    let head = Head::parse(bytes)?;
    if head.root().identity.name == name {
        Ok(head)
    } else {
        Err(FormatError::Malformed { part: Part::Root, what: "it is of a bundle of another name", at: 0 })
    }
}

/// Returns the recorded head of a name; `None` if none is readable.
///
/// # Errors
/// Returns an error if it is another user's or cannot be opened.
pub(crate) fn head(repo: &Repo, name: &str) -> Result<Option<Head>, Error> {
    let bytes = read(repo, name, HEAD, Head::LEN_MAX.into())?;
    Ok(bytes.and_then(|bytes| parse_head(name, &bytes).ok()))
}

/// Returns when the record of a name was written, in nanoseconds since 1970.
pub(crate) fn written(repo: &Repo, name: &str) -> Option<i128> {
    let folder = folder(repo, name).ok().flatten()?;
    let file = open_name(folder.as_fd(), HEAD.as_bytes(), OFlags::PATH, Permissions::empty()).ok()?;
    fstat(file).ok().map(|stat| written_at(&stat))
}

/// Returns a moment after all writes so far: file times advance in steps.
pub(crate) fn now() -> Timespec {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timespec { tv_sec: i64::try_from(now.as_secs()).unwrap_or(i64::MAX).saturating_sub(1), tv_nsec: 0 }
}

/// Records that all objects of a recorded bundle were known to be correct at `then`.
///
/// # Errors
/// Returns an error if the record is another user's or cannot be written to.
pub(crate) fn touch(repo: &Repo, bundle: &Bundle, then: Timespec) -> Result<(), Error> {
    let name = &bundle.head.root().identity.name;
    let failed = |error: Errno| Error::io("write", repo.path().join(path(name, HEAD)), error);
    let Some(folder) = folder(repo, name)? else { return Ok(()) };
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    let file = open_name(folder.as_fd(), HEAD.as_bytes(), flags, Permissions::empty()).map_err(failed)?;
    let stat = fstat(&file).map_err(failed)?;
    if (stat.st_mtime, stat.st_mtime_nsec) >= (then.tv_sec, then.tv_nsec.cast_unsigned()) {
        return Ok(());
    }
    let omit = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    futimens(file, &Timestamps { last_access: omit, last_modification: then }).map_err(failed)
}

/// Opens the folder of a name's record; `None` if there is none.
///
/// # Errors
/// Returns an error if it is another user's, who may have put anything into it, or if it cannot be opened.
fn folder(repo: &Repo, name: &str) -> Result<Option<OwnedFd>, Error> {
    let mut at = None;
    for path in [KEPT.to_owned(), format!("{KEPT}/{name}")] {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let shown = repo.path().join(&path);
        let failed = |error: Errno| Error::io("open", &shown, error);
        let folder = match open_beneath(repo.root(), path.as_bytes(), flags, Permissions::empty()) {
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            opened => opened.map_err(failed)?,
        };
        let stat = fstat(&folder).map_err(failed)?;
        check_owner(stat.st_uid, stat.st_mode, &shown)?;
        at = Some(folder);
    }
    Ok(at)
}

/// Creates the folder of a name's record, which no other user may write to.
fn make_folder(repo: &Repo, name: &str) -> Result<OwnedFd, Errno> {
    let mut at = make_directory(repo, "extensions")?;
    for name in ["sealift", name] {
        match mkdirat(&at, name, Permissions::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
        at = open_name(at.as_fd(), name.as_bytes(), OFlags::RDONLY | OFlags::DIRECTORY, Permissions::empty())?;
    }
    Ok(at)
}

/// Returns the path of a file in a name's record.
pub(crate) fn path(name: &str, file: &str) -> String {
    format!("{KEPT}/{name}/{file}")
}

fn index_name(head: &Head) -> String {
    format!("index-{}", hex(&head.root().contents.index_digest))
}

/// Returns the name of the file with the index's signature for the kernel.
fn signature_name(head: &Head) -> String {
    format!("{}.p7s", index_name(head))
}

/// Returns whether the index of the last bundle of a name is sealed with a signature for the kernel, according to the repository.
pub(crate) fn is_signed(repo: &Repo, name: &str) -> bool {
    let signature = head(repo, name).ok().flatten().map(|head| path(name, &signature_name(&head)));
    let open = |path: String| open_beneath(repo.root(), path.as_bytes(), OFlags::PATH, Permissions::empty());
    signature.is_some_and(|path| open(path).is_ok())
}

/// Checks whether the kernel accepts a signature of a bundle's index, by sealing an index that is removed again.
///
/// # Errors
/// Returns an error if it does not.
pub(crate) fn try_signature(repo: &Repo, bundle: &Bundle, signature: WantedSignature<'_>) -> Result<(), Error> {
    let path = repo.path().join(path(&bundle.head.root().identity.name, &index_name(&bundle.head)));
    let failed = |error: Errno| Error::io("write", &path, error);
    let stage = make_directory(repo, "tmp").and_then(ObjectStage::create).map_err(failed)?;
    let index = write(repo, &stage, "index", bundle.index.bytes()).map_err(failed)?;
    seal_index(index.as_fd(), &path, bundle.head.root().contents.index_digest, Some(signature)).map(drop)
}

/// Writes the record of an imported bundle, unless it is unchanged. It is sealed if the objects are, and the index with the signature for the
/// kernel. Returns what happened to that signature.
///
/// # Errors
/// Returns an error if the repository cannot be written to, or if the kernel refuses a required signature.
pub(crate) fn keep(
    repo: &Repo,
    bundle: &Bundle,
    is_sealed: bool,
    signature: Option<WantedSignature<'_>>,
) -> Result<KernelSignature, Error> {
    let (name, head) = (&bundle.head.root().identity.name, bundle.head.encode());
    let is_signature_missing = signature.is_some_and(|signature| signature.is_required) && !is_signed(repo, name);
    let is_kept = read(repo, name, HEAD, Head::LEN_MAX.into())?.is_some_and(|kept| kept == head);
    let shown = repo.path().join(KEPT).join(name);
    let failed = |error: Errno| Error::io("write", &shown, error);
    if is_kept && !is_signature_missing && InstallRecord::load(repo, name)?.is_some() {
        // A run killed in between leaves the old index.
        let folder = make_folder(repo, name);
        folder.and_then(|folder| remove_others(folder.as_fd(), &bundle.head)).map_err(failed)?;
        return Ok(KernelSignature::None);
    }
    let _lock = if repo.config().locking { Some(take_lock(repo)?) } else { None };
    let stage = make_directory(repo, "tmp").and_then(ObjectStage::create).map_err(failed)?;
    let index = write(repo, &stage, "index", bundle.index.bytes()).map_err(failed)?;
    let head = write(repo, &stage, HEAD, &head).map_err(failed)?;
    let mut outcome = KernelSignature::None;
    if is_sealed {
        outcome = seal_index(index.as_fd(), &shown, bundle.head.root().contents.index_digest, signature)?;
        seal_open(head.as_fd(), &Parameters::default(), None).map_err(|error| Error::kernel(&shown, error))?;
    }
    let signature = signature.filter(|_| outcome == KernelSignature::Taken);
    move_in(repo, &stage, &bundle.head, signature).map_err(failed)?;
    Ok(outcome)
}

/// Moves the staged files to their names: first the index, which no head names yet, and last the head. The old index is then removed.
fn move_in(repo: &Repo, stage: &ObjectStage, head: &Head, signature: Option<WantedSignature<'_>>) -> Result<(), Errno> {
    let folder = make_folder(repo, &head.root().identity.name)?;
    let (index, signature_name) = (index_name(head), signature_name(head));
    // The same index may have been sealed with a signature before.
    remove_tree(folder.as_fd(), signature_name.as_bytes())?;
    renameat(stage.directory(), "index", &folder, &index)?;
    if let Some(signature) = signature {
        write(repo, stage, "signature", signature.body)?;
        renameat(stage.directory(), "signature", &folder, &signature_name)?;
    }
    renameat(stage.directory(), HEAD, &folder, HEAD)?;
    if repo.config().fsync {
        fsync(folder.as_fd())?;
    }
    remove_others(folder.as_fd(), head)
}

/// Removes what a head does not name.
fn remove_others(folder: BorrowedFd<'_>, head: &Head) -> Result<(), Errno> {
    let own = [HEAD.to_owned(), index_name(head), signature_name(head)];
    let names = names_in(folder)?;
    let mut others = names.iter().filter(|(name, _)| !own.iter().any(|own| own.as_bytes() == name));
    others.try_for_each(|(name, _)| remove_tree(folder, name))
}

/// Reads at most `len` bytes of a file in a name's record, and one more if it is longer.
fn read(repo: &Repo, name: &str, file: &str, len: u64) -> Result<Option<Vec<u8>>, Error> {
    let path_of = || repo.path().join(path(name, file));
    let failed = |error: std::io::Error| match KernelError::of_open(&error) {
        Some(source) => Error::kernel(path_of(), source),
        None => Error::io("read", path_of(), error),
    };
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    let Some(folder) = folder(repo, name)? else { return Ok(None) };
    let file = match open_name(folder.as_fd(), file.as_bytes(), flags, Permissions::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        opened => File::from(opened.map_err(|error| failed(error.into()))?),
    };
    let mut bytes = Vec::new();
    file.take(len.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
    Ok(Some(bytes))
}

/// Writes a file to the stage, and returns it open for reading.
fn write(repo: &Repo, stage: &ObjectStage, name: &str, bytes: &[u8]) -> Result<OwnedFd, Errno> {
    let mode = Permissions::from_raw_mode(0o644);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let mut file = File::from(open_name(stage.directory(), name.as_bytes(), flags, mode)?);
    file.write_all(bytes).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    fchmod(&file, mode)?;
    if repo.config().fsync {
        fdatasync(&file)?;
    }
    drop(file);
    open_name(stage.directory(), name.as_bytes(), OFlags::RDONLY | OFlags::NONBLOCK, Permissions::empty())
}

/// Returns when its content was written, in nanoseconds since 1970.
pub(crate) fn written_at(stat: &Stat) -> i128 {
    i128::from(stat.st_mtime) * 1_000_000_000 + i128::from(stat.st_mtime_nsec)
}
