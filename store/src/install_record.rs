//! The install record: what each kind of target keeps of the last bundle that was installed in it.
//!
//! A record is a directory with the bundle's `head` and `index`, byte for byte, and with `index.p7s`, the signature for the kernel that the index
//! is sealed with. Each kind of target adds files of its own. A record is a shortcut, not an authority: head and index are checked whenever they are
//! read, and objects are checked by their ids.
//!
//! A directory has its record beside it ([`crate::directory::state`]); repositories and stores have a folder of `Records`, one for each name of a
//! bundle.

use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    Mode, RenameFlags, Stat, Timespec, Timestamps, UTIME_OMIT, fstat, fsync, futimens, mkdirat, renameat, renameat_with,
};
use rustix::io::Errno;
use sealift_format::num;
use sealift_format::{Bundle, Error as FormatError, Head, Index, Limits, Part, verity};
use sealift_verify::fsverity::{self, KernelError};

use crate::fs::confined::names_below;
use crate::fs::rename::{lacks_flag, moves_no_directory};
use crate::kept_order::KeptOrder;
use crate::seal::{KernelSignature, WantedSignature, has_signature, seal_index};
use crate::{Error, OwnDir, Record, RecordFault};

/// The last installed bundle.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "it has nothing else")]
pub struct InstallRecord {
    /// The bundle's head, with its signatures.
    pub head: Head,
    /// The bundle's index.
    pub index: Index,
    /// The order in which its contents are read, if it is known.
    pub order: Option<KeptOrder>,
}

/// The bundle's head.
pub(crate) const HEAD: &str = "head";
/// The bundle's index.
const INDEX: &str = "index";
/// The signature for the kernel that the index is sealed with.
const SIGNATURE: &str = "index.p7s";

impl InstallRecord {
    /// Reads the head and the index in a record's directory: verified, then parsed.
    ///
    /// # Errors
    /// Returns an error if something cannot be read or is damaged.
    pub fn read(dir: &OwnDir, limits: Limits) -> Result<Self, Error> {
        Self::read_index(dir, Self::read_head(dir, limits)?)
    }

    /// Reads the head in a record's directory.
    pub fn read_head(dir: &OwnDir, limits: Limits) -> Result<Head, Error> {
        let head = Head::parse(&read_file(dir, HEAD, Head::LEN_MAX.into())?)?;
        limits.check(head.root())?;
        Ok(head)
    }

    /// Reads the index of this head.
    pub fn read_index(dir: &OwnDir, head: Head) -> Result<Self, Error> {
        let contents = head.root().contents.clone();
        let index = read_file(dir, INDEX, contents.index_len)?;
        if verity::digest(&index) != contents.index_digest {
            return Err(FormatError::Digest { part: Part::Index }.into());
        }
        let index = Index::parse(index, head.root().maxima.entries)?;
        let order = dir.read(KeptOrder::FILE, KeptOrder::LEN_MAX).map_err(of_sealed)?;
        let order = order.and_then(|bytes| KeptOrder::parse(&bytes, &contents.index_digest, &index));
        Ok(Self { order, index, head })
    }

    /// Returns the digest of the index.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        self.head.root().contents.index_digest
    }
}

/// Returns whether the record in a directory belongs to the bundle with this head.
pub(crate) fn is_of(dir: &OwnDir, head: &Head) -> bool {
    read_file(dir, HEAD, Head::LEN_MAX.into()).is_ok_and(|bytes| bytes == head.encode())
}

/// Returns whether the index in a record's directory is sealed with a signature for the kernel, according to the record.
pub(crate) fn is_signed(dir: &OwnDir) -> Result<bool, Error> {
    dir.has(SIGNATURE)
}

/// As [`is_signed`], but according to the kernel if the file system supports the query.
pub(crate) fn is_index_signed(dir: &OwnDir) -> Result<bool, Error> {
    let Some(index) = dir.open_file(INDEX).map_err(of_sealed)? else { return Ok(false) };
    let said = has_signature(index.as_fd()).map_err(|error| Error::kernel(dir.path().join(INDEX), error))?;
    said.map_or_else(|| is_signed(dir), Ok)
}

/// Returns whether the error says that a record is damaged: it is then rebuilt.
pub(crate) fn is_damage(error: &Error) -> bool {
    matches!(error, Error::State { .. } | Error::Format(_))
}

/// Returns what is wrong with the record at `path`, if the error says that it is damaged.
pub(crate) fn damage_of(error: Error, path: &Path) -> Result<RecordFault, Error> {
    match error {
        Error::State { path, problem } => Ok(RecordFault::Damaged { path, problem }),
        Error::Format(error) => Ok(RecordFault::Damaged { path: path.to_owned(), problem: error.to_string() }),
        error => Err(error),
    }
}

/// A record, as far as it can be used.
#[derive(Debug)]
pub(crate) enum Kept<T> {
    /// There is none.
    None,
    /// It is damaged.
    Damaged(RecordFault),
    /// It is sound.
    Whole(T),
}

impl<T> Kept<T> {
    /// Returns the record if it is sound.
    pub(crate) fn whole(self) -> Option<T> {
        match self {
            Self::Whole(record) => Some(record),
            Self::None | Self::Damaged(_) => None,
        }
    }
}

/// What to write into a new record.
pub(crate) struct NewRecord<'a> {
    pub(crate) bundle: &'a Bundle,
    /// The files that this kind of target adds.
    pub(crate) files: Vec<(&'static str, Vec<u8>)>,
    /// The order in which the contents are read, if it is known.
    pub(crate) order: Option<&'a KeptOrder>,
    /// Whether to seal all of these files, as the objects are.
    pub(crate) is_sealed: bool,
    /// The signature for the kernel to seal the index with.
    pub(crate) signature: Option<WantedSignature<'a>>,
    /// Whether its content has to be durable before its name.
    pub(crate) durable: bool,
}

impl NewRecord<'_> {
    /// Writes the record to an empty directory, and returns what happened to the signature for the kernel.
    pub(crate) fn write(&self, dir: &OwnDir) -> Result<KernelSignature, Error> {
        let head = self.bundle.head.encode();
        let order = self.order.and_then(|order| {
            let encoded = order.encode(&self.bundle.head.root().contents.index_digest);
            if encoded.is_none() {
                let (contents, len_max) = (order.parts().len(), KeptOrder::LEN_MAX);
                tracing::warn!(contents, len_max, "the order of access is too long to be kept");
            }
            encoded
        });
        let others = || {
            let files = self.files.iter().map(|(name, bytes)| (*name, bytes));
            [(HEAD, &head)].into_iter().chain(order.iter().map(|order| (KeptOrder::FILE, order))).chain(files)
        };
        dir.write_new(INDEX, self.bundle.index.bytes(), self.durable)?;
        for (name, bytes) in others() {
            dir.write_new(name, bytes, self.durable)?;
        }
        if !self.is_sealed {
            return Ok(KernelSignature::None);
        }
        for (name, bytes) in others() {
            seal_file(dir, name, verity::digest(bytes), None)?;
        }
        let outcome = seal_file(dir, INDEX, self.bundle.head.root().contents.index_digest, self.signature)?;
        if let (KernelSignature::Taken, Some(signature)) = (&outcome, self.signature) {
            dir.write_new(SIGNATURE, signature.body, self.durable)?;
        }
        Ok(outcome)
    }
}

/// Checks whether the kernel accepts a signature of the index, by sealing an index in an empty directory.
///
/// # Errors
/// Returns an error if it does not.
pub(crate) fn try_signature(dir: &OwnDir, bundle: &Bundle, signature: WantedSignature<'_>) -> Result<(), Error> {
    dir.write_new(INDEX, bundle.index.bytes(), false)?;
    seal_file(dir, INDEX, bundle.head.root().contents.index_digest, Some(signature)).map(drop)
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

/// Reads at most `len_max` bytes of a file in a record's directory, and one more if it is longer.
pub(crate) fn read_file(dir: &OwnDir, name: &str, len_max: u64) -> Result<Vec<u8>, Error> {
    match dir.read(name, len_max).map_err(of_sealed)? {
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

/// The records of a place that holds several bundles: the directory `NAME` is the record of the last bundle of this name.
#[derive(Debug)]
pub(crate) struct Records<'a> {
    root: BorrowedFd<'a>,
    folder: &'static str,
    /// The folder's path, for messages.
    path: PathBuf,
}

/// A record's name in the stage; also that of the record which it replaces, until the stage is removed.
const STAGED: &str = "record";

impl<'a> Records<'a> {
    /// The folder in an OSTree repository: libostree leaves `extensions` to other programs.
    pub(crate) const OSTREE: &'static str = "extensions/sealift";
    /// The folder in a composefs store.
    pub(crate) const COMPOSEFS: &'static str = "sealift/state";

    /// Returns the records in this folder of an open place.
    pub(crate) fn new(root: BorrowedFd<'a>, place: &Path, folder: &'static str) -> Self {
        Self { root, folder, path: place.join(folder) }
    }

    /// Returns the path of the recorded head of a name, for messages.
    pub(crate) fn head_path(&self, name: &str) -> PathBuf {
        self.path.join(name).join(HEAD)
    }

    /// Returns the names of the bundles with a record.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be read.
    pub(crate) fn names(&self) -> Result<Vec<String>, Error> {
        names_below(self.root, self.folder).map_err(|error| Error::io("read", &self.path, error))
    }

    /// Reads the records of all names.
    pub(crate) fn load_all(&self) -> Result<Vec<InstallRecord>, Error> {
        self.names()?.iter().filter_map(|name| self.load(name).transpose()).collect()
    }

    /// Opens the record of a name; `None` if there is none.
    ///
    /// # Errors
    /// Returns an error if it is another user's, who may have put anything into it, or if it cannot be opened.
    pub(crate) fn open(&self, name: &str) -> Result<Option<OwnDir>, Error> {
        let Some(folder) = OwnDir::beneath(self.root, self.folder, &self.path)? else { return Ok(None) };
        folder.directory(name)
    }

    /// Reads the record of a name. A damaged one counts as missing: it is rebuilt.
    pub(crate) fn load(&self, name: &str) -> Result<Option<InstallRecord>, Error> {
        self.load_with(name, |_, record| Ok(record))
    }

    /// As [`Records::load`], but `more` adds what this kind of place has recorded besides head and index.
    pub(crate) fn load_with<T>(
        &self,
        name: &str,
        more: impl FnOnce(&OwnDir, InstallRecord) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let kept = self.look(name, more)?;
        if let Kept::Damaged(fault) = &kept {
            tracing::warn!(%fault, name, "ignored the damaged install record");
        }
        Ok(kept.whole())
    }

    /// Reads the record of a name, and tells a damaged one from a missing one.
    pub(crate) fn look<T>(
        &self,
        name: &str,
        more: impl FnOnce(&OwnDir, InstallRecord) -> Result<T, Error>,
    ) -> Result<Kept<T>, Error> {
        self.look_with(name, |dir| more(dir, InstallRecord::read_index(dir, read_head_of(dir, name)?)?))
    }

    /// As [`Records::look`], but reads only the head.
    pub(crate) fn look_at_head(&self, name: &str) -> Result<Kept<Head>, Error> {
        self.look_with(name, |dir| read_head_of(dir, name))
    }

    fn look_with<T>(&self, name: &str, read: impl FnOnce(&OwnDir) -> Result<T, Error>) -> Result<Kept<T>, Error> {
        let Some(dir) = self.open(name)? else { return Ok(Kept::None) };
        match read(&dir) {
            Ok(record) => Ok(Kept::Whole(record)),
            Err(error) => damage_of(error, dir.path()).map(Kept::Damaged),
        }
    }

    /// Reads the record of a name if `judge` accepts the head, with what it returned; `None` if there is none.
    ///
    /// # Errors
    /// Returns an error if it is refused or damaged, or cannot be read.
    pub(crate) fn load_judged<J, T>(
        &self,
        name: &str,
        judge: impl FnOnce(&Head) -> Result<J, Error>,
        more: impl FnOnce(&OwnDir, InstallRecord) -> Result<T, Error>,
    ) -> Result<Option<(J, T)>, Error> {
        let Some(dir) = self.open(name)? else { return Ok(None) };
        let read = || {
            let head = read_head_of(&dir, name)?;
            let judged = judge(&head)?;
            Ok((judged, more(&dir, InstallRecord::read_index(&dir, head)?)?))
        };
        read().map(Some).map_err(|error: Error| error.of_bundle(&self.head_path(name)))
    }

    /// Returns whether the record of a name is sealed, as its objects then are.
    pub(crate) fn is_sealed(&self, name: &str) -> bool {
        self.open_head(name).is_some_and(|file| fsverity::measure(file).is_ok())
    }

    /// Returns whether the index of the last bundle of a name is sealed with a signature for the kernel, according to the record.
    pub(crate) fn is_signed(&self, name: &str) -> bool {
        self.open(name).is_ok_and(|dir| dir.is_some_and(|dir| is_signed(&dir).unwrap_or(false)))
    }

    /// Returns when the record of a name was written or last touched, in nanoseconds since 1970.
    pub(crate) fn written(&self, name: &str) -> Option<i128> {
        fstat(self.open_head(name)?).ok().map(|stat| written_at(&stat))
    }

    /// Records that all objects of the last bundle of a name were known to be correct at `then`.
    ///
    /// # Errors
    /// Returns an error if the record is another user's or cannot be changed.
    pub(crate) fn touch(&self, name: &str, then: Timespec) -> Result<(), Error> {
        let failed = |error: Errno| Error::io("write", self.head_path(name), error);
        let Some(dir) = self.open(name)? else { return Ok(()) };
        let Some(file) = dir.open_file(HEAD)? else { return Ok(()) };
        let stat = fstat(&file).map_err(failed)?;
        if (stat.st_mtime, stat.st_mtime_nsec) >= (then.tv_sec, then.tv_nsec.cast_unsigned()) {
            return Ok(());
        }
        let omit = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
        futimens(file, &Timestamps { last_access: omit, last_modification: then }).map_err(failed)
    }

    /// Notes in the record of a bundle's name, durably, that another bundle of this name begins to change the place; [`Records::put`] then replaces
    /// it.
    ///
    /// # Errors
    /// Returns an error if the record is another user's or cannot be written.
    pub(crate) fn begin(&self, head: &Head) -> Result<(), Error> {
        match self.open(&head.root().identity.name)? {
            Some(dir) if !is_of(&dir, head) => dir.replace(Record::MIXED, b"", true),
            _ => Ok(()),
        }
    }

    /// Removes that note: the place holds just the recorded bundle.
    pub(crate) fn end(&self, name: &str) -> Result<(), Error> {
        self.open(name)?.map_or(Ok(()), |dir| dir.remove(Record::MIXED))
    }

    fn open_head(&self, name: &str) -> Option<File> {
        self.open(name).ok()??.open_file(HEAD).ok()?
    }

    /// Returns whether the existing record of the same name is undamaged and has the same content.
    pub(crate) fn has(&self, new: &NewRecord<'_>) -> Result<bool, Error> {
        let name = &new.bundle.head.root().identity.name;
        let is_same = |dir: &OwnDir, record: InstallRecord| {
            let has = |(file, bytes): &(&'static str, Vec<u8>)| {
                read_file(dir, file, num::wide(bytes.len())).is_ok_and(|found| found == *bytes)
            };
            let has_order = record.order.as_ref() == new.order;
            Ok(record.head == new.bundle.head && has_order && new.files.iter().all(has))
        };
        Ok(self.load_with(name, is_same)?.unwrap_or(false))
    }

    /// Writes the record to an empty directory in `stage`, and gives it its name in `folder`. The record that it replaces is removed with the stage.
    ///
    /// # Errors
    /// Returns an error if the place cannot be written to, or if the kernel refuses a required signature.
    pub(crate) fn put(
        &self,
        stage: BorrowedFd<'_>,
        folder: &OwnedFd,
        new: &NewRecord<'_>,
    ) -> Result<KernelSignature, Error> {
        let name = &*new.bundle.head.root().identity.name;
        let path = self.path.join(name);
        let dir = self.staged(stage, name)?;
        let outcome = new.write(&dir)?;
        let rename = || {
            if new.durable {
                fsync(dir.fd())?;
            }
            match renameat_with(stage, STAGED, folder, name, RenameFlags::EXCHANGE) {
                Err(Errno::NOENT) => renameat(stage, STAGED, folder, name)?,
                // A file system without this kind of rename: a run that is killed in between leaves no record.
                Err(error) if lacks_flag(error) => {
                    match renameat(folder, name, stage, format!("{STAGED}-before")) {
                        Err(Errno::NOENT) => {}
                        moved => moved?,
                    }
                    renameat(stage, STAGED, folder, name)?;
                }
                renamed => renamed?,
            }
            if new.durable { fsync(folder) } else { Ok(()) }
        };
        match rename() {
            Err(error) if moves_no_directory(error) => replace_files(&dir, folder, name, new.durable)?,
            renamed => renamed.map_err(|error| Error::io("write", path, error))?,
        }
        Ok(outcome)
    }

    /// As [`try_signature`], in `stage`.
    pub(crate) fn try_signature(
        &self,
        stage: BorrowedFd<'_>,
        bundle: &Bundle,
        signature: WantedSignature<'_>,
    ) -> Result<(), Error> {
        try_signature(&self.staged(stage, &bundle.head.root().identity.name)?, bundle, signature)
    }

    /// Creates an empty directory for a record in a stage. Messages name the record's final path.
    fn staged(&self, stage: BorrowedFd<'_>, name: &str) -> Result<OwnDir, Error> {
        let stage = OwnDir::beneath(stage, "", &self.path)?;
        let stage = stage.ok_or_else(|| Error::io("open", &self.path, Errno::NOENT))?;
        Ok(stage.new_directory(STAGED)?.shown_as(self.path.join(name)))
    }
}

/// Gives the record of a name in `folder` the files of the staged one. Its head goes first and comes last: a run that is killed
/// in between leaves no record.
fn replace_files(staged: &OwnDir, folder: &OwnedFd, name: &str, durable: bool) -> Result<(), Error> {
    let failed = |error| Error::io("write", staged.path(), error);
    match mkdirat(folder, name, Mode::from_raw_mode(0o755)) {
        Err(Errno::EXIST) => {}
        made => made.map_err(failed)?,
    }
    let record = OwnDir::beneath(folder.as_fd(), name, staged.path())?.ok_or_else(|| failed(Errno::NOENT))?;
    record.remove(HEAD)?;
    record.take_files(staged, HEAD, durable)?;
    if durable { fsync(folder).map_err(failed) } else { Ok(()) }
}

/// Reads the recorded head of a name. A head of another name, such as one copied from another record, counts as damage.
fn read_head_of(dir: &OwnDir, name: &str) -> Result<Head, Error> {
    let head = InstallRecord::read_head(dir, Limits::NONE)?;
    if head.root().identity.name == name {
        return Ok(head);
    }
    let what = "it belongs to a bundle of another name";
    Err(FormatError::Malformed { part: Part::Root, what, at: 0 }.into())
}

/// Returns when a file's content was written, in nanoseconds since 1970.
pub(crate) fn written_at(stat: &Stat) -> i128 {
    i128::from(stat.st_mtime) * 1_000_000_000 + i128::from(stat.st_mtime_nsec)
}
