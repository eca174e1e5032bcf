//! Why an operation fails.

mod archive;
mod class;
mod file;
mod image;
mod order;
mod record;
mod recovery;
mod repository;
mod slot;
mod volume;
mod word;

use std::ffi::OsStr;
use std::fmt::Display;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sealift_format::verity::{Algorithm, FileDigest};
use sealift_format::{Delta, Ref, RootBase};
use sealift_verify::fsverity::KernelError;
use sealift_verify::trust::KeyId;

pub use archive::ArchiveFault;
pub(crate) use archive::shown;
pub use class::Class;
pub use file::FileFault;
pub use image::ImageFault;
pub use order::OrderFault;
pub use record::RecordFault;
pub use recovery::RecoveryFault;
pub use repository::RepoFault;
pub use slot::SlotFault;
pub use volume::VolumeFault;
pub(crate) use volume::numbers;

/// The reason why an operation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A system call failed.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// The action that failed: "read", "create".
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A part of a device or an image cannot be read.
    #[error("cannot read {} at byte {offset}: {source}", path.display())]
    Unreadable {
        /// The device or file.
        path: PathBuf,
        /// Where the part begins.
        offset: u64,
        /// The system's reason.
        source: io::Error,
    },
    /// A file system on a device may be written to while the device is read.
    #[error("{} is mounted read-write at {}", path.display(), place.display())]
    Mounted {
        /// The device.
        path: PathBuf,
        /// Where it, or a part of it, is mounted.
        place: PathBuf,
    },
    /// A source's file has changed since its directory was read.
    #[error("{} changed while it was being read", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// An archive cannot be packed.
    #[error("{}, at offset {offset}: {fault}", path.display())]
    Archive {
        /// The archive.
        path: PathBuf,
        /// The offset of the member's header.
        offset: u64,
        /// The fault.
        fault: Box<ArchiveFault>,
    },
    /// A container image cannot be packed or written.
    #[error("{}: {fault}", path.display())]
    Image {
        /// The layout or archive.
        path: PathBuf,
        /// The fault.
        fault: Box<ImageFault>,
    },
    /// A file that was given is not what it has to be.
    #[error("{}: {fault}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What it was to be, and what is wrong with it.
        fault: FileFault,
    },
    /// An archive format cannot hold a member of the tree.
    #[error("{member}: {scheme} archives cannot hold {what}")]
    Unfit {
        /// The format.
        scheme: &'static str,
        /// The member's path.
        member: String,
        /// What it cannot hold.
        what: &'static str,
    },
    /// The bundle does not follow the format.
    #[error(transparent)]
    Format(#[from] sealift_format::Error),
    /// Recovery files cannot make a bundle whole again.
    #[error(transparent)]
    Recovery(Box<RecoveryFault>),
    /// The bundle's content is damaged.
    #[error(transparent)]
    Content(#[from] sealift_verify::content::ContentError),
    /// The bundle must not be used on this device.
    #[error(transparent)]
    Trust(#[from] sealift_verify::Error),
    /// One of several bundles has an error.
    #[error("{}: {source}", path.display())]
    Bundle {
        /// The bundle.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<Error>,
    },
    /// A delta bundle was given where a complete bundle is needed.
    #[error("{} is a delta, which needs {bases}", path.display())]
    IsDelta {
        /// The bundle.
        path: PathBuf,
        /// The delta's bases.
        bases: String,
    },
    /// A delta bundle's base, or some of its objects, are missing.
    #[error("{}: {problem}", path.display())]
    MissingBase {
        /// The target, or the base that was given.
        path: PathBuf,
        /// What is missing.
        problem: String,
    },
    /// The target holds a bundle of another name.
    #[error("{} contains {bound:?}; refusing to replace it with {name:?}", target.display())]
    OtherName {
        /// The target.
        target: PathBuf,
        /// The name that it is bound to.
        bound: String,
        /// The bundle's name.
        name: String,
    },
    /// The target is not shown to be this program's.
    #[error("{} {why}", target.display())]
    NotOurs {
        /// The target.
        target: PathBuf,
        /// What is wrong with its record.
        why: Box<RecordFault>,
    },
    /// The target's file system treats two names as equal.
    #[error(
        "{}: this file system does not distinguish two names of the bundle that differ in case or normalization",
        path.display()
    )]
    FoldedName {
        /// The second of the names.
        path: PathBuf,
    },
    /// The target is being changed by others during an update.
    #[error("another process is changing {}", target.display())]
    Changing {
        /// The target.
        target: PathBuf,
    },
    /// An update was interrupted, and its staged data is damaged.
    #[error("{} has files of two bundles, because an update was interrupted", target.display())]
    HalfUpdated {
        /// The target.
        target: PathBuf,
    },
    /// An update that had begun to change its target could not be completed, and was given up.
    #[error("{} has files of two bundles, because an interrupted update was given up: {why}", target.display())]
    GivenUp {
        /// The target.
        target: PathBuf,
        /// Why it could not be completed.
        why: Box<Self>,
    },
    /// A file of the device's state is invalid.
    #[error("{} is damaged: {problem}", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The device's state for a name is invalid.
    #[error("{} is damaged: {problem}", path.display())]
    Floor {
        /// The file.
        path: PathBuf,
        /// The bundles' name.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// An OSTree repository, or something in it, cannot be used.
    #[error("{}: {fault}", path.display())]
    Repository {
        /// The repository.
        path: PathBuf,
        /// What is wrong with it.
        fault: Box<RepoFault>,
    },
    /// There is no composefs store.
    #[error("{}: there is no composefs store", path.display())]
    NoStore {
        /// The place.
        path: PathBuf,
    },
    /// A composefs store, or something in it, cannot be used.
    #[error("{}: {problem}", path.display())]
    Store {
        /// The store.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// An object of a composefs store does not match its name.
    #[error("{}: the fs-verity digest of its content is {found}, not {expected} as its name says", path.display())]
    StoreObject {
        /// The object.
        path: PathBuf,
        /// The digest in its name.
        expected: Box<FileDigest>,
        /// The digest of its content.
        found: Box<FileDigest>,
    },
    /// The kernel did not seal a file, or reports another digest.
    #[error("{}: {source}", path.display())]
    Kernel {
        /// The file, or the directory whose file system was used.
        path: PathBuf,
        /// The kernel's error.
        source: Box<KernelError>,
    },
    /// The kernel refuses the bundle's signature, which is required.
    #[error("{}: {source}", path.display())]
    SignatureRefused {
        /// The index.
        path: PathBuf,
        /// The kernel's error.
        source: Box<KernelError>,
    },
    /// ssh-agent made no signature.
    #[error("ssh-agent cannot sign with {}: {problem}", key.display())]
    Agent {
        /// The public key's file.
        key: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The signatures are too many for any bundle.
    #[error("the signatures need {needed} bytes, but a bundle has room for {room} at most")]
    NoRoom {
        /// Bytes that all signatures together need.
        needed: u64,
        /// Bytes that are available.
        room: u64,
    },
    /// A new file already exists.
    #[error("{} already exists", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The bundle has several refs, and none was chosen.
    #[error("the bundle has several refs: {}", refs.join(", "))]
    SeveralRefs {
        /// Their names.
        refs: Vec<String>,
    },
    /// The bundle has no ref of a name.
    #[error("the bundle has no {what} {}; it has {}", name.escape_debug(), refs.join(", "))]
    NoRef {
        /// The kind of ref.
        what: &'static str,
        /// The name.
        name: String,
        /// The names of its refs that could be meant.
        refs: Vec<String>,
    },
    /// The bundle has no file at a path.
    #[error("the bundle has no file {}", path_of(path).display())]
    NoFile {
        /// The path.
        path: Vec<u8>,
    },
    /// A path could mean two files of the bundle.
    #[error("{written} could mean the file {one} or, as an escaped name, {other}")]
    Ambiguous {
        /// The path.
        written: String,
        /// A file.
        one: String,
        /// Another file.
        other: String,
    },
    /// Two sources have one ref.
    #[error("two sources have the ref {name}")]
    SameRef {
        /// The ref.
        name: String,
    },
    /// A ref has no collection id.
    #[error("the ref {name} has no collection id, which clients need to find it on a medium")]
    NoCollection {
        /// The ref.
        name: String,
        /// Refs of the bundle that have one.
        others: Vec<String>,
    },
    /// The bundle has no OSTree commit.
    #[error("the bundle has no OSTree commit")]
    NoCommit,
    /// There is no install record to compare with.
    #[error("no install record for {}", path.display())]
    NoRecord {
        /// The target.
        path: PathBuf,
    },
    /// This build cannot make, read or mount composefs images.
    #[error("this sealift was built without composefs")]
    NoComposefs,
    /// Only the fingerprint of a key is known.
    #[error("{} has no key with the fingerprint {id}", path.display())]
    UnlistedKey {
        /// The allowed signers.
        path: PathBuf,
        /// The fingerprint.
        id: KeyId,
    },
    /// A new directory already exists, and is not empty.
    #[error("{} exists and is not empty", path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// A non-empty directory is in the place of a file of the bundle.
    #[error("{} is a non-empty directory, but a file in the bundle", path.display())]
    DirectoryInPlace {
        /// The directory.
        path: PathBuf,
    },
    /// The bundle states no composefs image at all.
    #[error("the bundle has no composefs image")]
    NoImages,
    /// The bundle states no composefs image for a store.
    #[error("the bundle has no composefs image{} with {algorithm}, which the store uses", of.as_ref().map_or(String::new(), |name| format!(" of {name}")))]
    NoImage {
        /// The ref; `None` for all.
        of: Option<String>,
        /// The hash that the store names objects with.
        algorithm: Algorithm,
    },
    /// Something to pack exceeds the default limit of readers.
    #[error("{what}, which exceeds the readers' default limit of {limit}")]
    OverLimit {
        /// The thing and its amount.
        what: String,
        /// The limit's name.
        name: String,
        /// The limit that readers would need.
        number: u64,
        /// The default limit of readers.
        limit: u64,
    },
    /// A composefs store lacks an object, or has it with wrong content.
    #[error("{}: {problem}", path.display())]
    DamagedStore {
        /// The store.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The location of this device's state is unknown.
    #[error("no state directory for rollback protection")]
    NoStateDirectory,
    /// The request is not possible.
    #[error("{0}")]
    Usage(String),
    /// A file or directory is not what is needed there.
    #[error("{} {problem}", path.display())]
    Unexpected {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong with it, worded as the end of a sentence.
        problem: String,
    },
    /// Another user owns a required file, or may write to it.
    #[error("{} {problem}", path.display())]
    Foreign {
        /// The file or directory.
        path: PathBuf,
        /// The owner, worded as the end of a sentence.
        problem: String,
    },
    /// An update would give its rights to a directory that was not installed there, with what it holds.
    #[error(
        "{} is not the directory that was installed there: it belongs to user {owner}, has mode {mode:04o}, and holds what the bundle does not",
        path.display()
    )]
    OtherDirectory {
        /// The directory.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// Its permissions.
        mode: u16,
    },
    /// An update would delete what the run itself needs.
    #[error("{} would be deleted, and {} is in use by this very run", path.display(), needed.display())]
    Needed {
        /// What would be deleted.
        path: PathBuf,
        /// What is in use: the same, or something in it.
        needed: PathBuf,
    },
    /// A name no longer leads to what was opened under it.
    #[error("{} was replaced while sealift was running; no other path was written to", path.display())]
    Exchanged {
        /// The name.
        path: PathBuf,
    },
    /// A block device or a file cannot be used as a slot.
    #[error("{} {fault}", path.display())]
    Slot {
        /// The device or file.
        path: PathBuf,
        /// What is wrong with it.
        fault: Box<SlotFault>,
    },
    /// Volumes cannot be used together, or one of them not at all.
    #[error("{} {fault}", path.display())]
    Volumes {
        /// The volume, or the directory of the volumes.
        path: PathBuf,
        /// What is wrong.
        fault: Box<VolumeFault>,
    },
    /// A path cannot be a target.
    #[error("{} {problem}", path.display())]
    Unusable {
        /// The path.
        path: PathBuf,
        /// The reason, worded as the end of a sentence.
        problem: &'static str,
    },
    /// Another run is working on it.
    #[error("another sealift run is using {}", path.display())]
    Busy {
        /// The locked path.
        path: PathBuf,
    },
    /// The target's file system has too few inodes.
    #[error("not enough inodes at {}: {needed} needed, {free} free", path.display())]
    NoInodes {
        /// The target.
        path: PathBuf,
        /// Inodes that unpacking needs.
        needed: u64,
        /// Inodes that are free.
        free: u64,
    },
    /// The target's file system has too little space.
    #[error("not enough disk space at {}: {needed} bytes needed, {free} free{}", path.display(), beyond(*reserved))]
    NoSpace {
        /// The target.
        path: PathBuf,
        /// Bytes that unpacking needs.
        needed: u64,
        /// Bytes that are free, without those that are reserved.
        free: u64,
        /// Bytes that an OSTree repository keeps free (`core.min-free-space-percent` and `core.min-free-space-size` of ostree.repo-config(5)).
        reserved: u64,
    },
    /// A file system cannot hold something of the bundle.
    #[error("{}: {system} cannot hold {what}", path.display())]
    Unstorable {
        /// The file.
        path: PathBuf,
        /// What it cannot hold.
        what: String,
        /// The file system.
        system: String,
    },
    /// An extended attribute cannot be set.
    #[error("{}: cannot set {what}: {source}", path.display())]
    Xattr {
        /// The file.
        path: PathBuf,
        /// The attribute, with its size.
        what: String,
        /// The system's reason.
        source: io::Error,
    },
    /// A target cannot keep what the options require.
    #[error("{} cannot keep {what}: {why}", path.display())]
    NotKept {
        /// The target.
        path: PathBuf,
        /// What it cannot keep.
        what: &'static str,
        /// Why.
        why: String,
    },
    /// The caller requested a stop.
    #[error("cancelled")]
    Cancelled,
}

impl Error {
    /// Returns the error for a system call that failed on `path`.
    pub fn io(doing: &'static str, path: impl AsRef<Path>, source: impl Into<io::Error>) -> Self {
        Self::Io { doing, path: path.as_ref().to_owned(), source: source.into() }
    }

    /// Returns the error for a file that is not what it has to be.
    pub fn file(path: impl AsRef<Path>, fault: FileFault) -> Self {
        Self::File { path: path.as_ref().to_owned(), fault }
    }

    /// Returns the error for a delta bundle where a complete bundle is needed.
    #[must_use]
    pub fn is_delta(path: &Path, delta: &Delta) -> Self {
        Self::IsDelta { path: path.to_owned(), bases: listed(delta.bases()) }
    }

    /// Returns the error for something other than these bases of a delta bundle: `held` says what is there.
    pub fn wrong_base(path: impl AsRef<Path>, bases: &[RootBase], held: impl Display) -> Self {
        Self::missing_base(path, format!("wrong base: this delta needs {}; {held}", listed(bases)))
    }

    /// Returns the error for a base, or a part of it, that is missing.
    pub(crate) fn missing_base(path: impl AsRef<Path>, problem: impl Into<String>) -> Self {
        Self::MissingBase { path: path.as_ref().to_owned(), problem: problem.into() }
    }

    /// Returns the error for a file or directory that is not what is needed there.
    pub fn unexpected(path: impl AsRef<Path>, problem: impl Into<String>) -> Self {
        Self::Unexpected { path: path.as_ref().to_owned(), problem: problem.into() }
    }

    /// Returns the error for a name that none of these refs has.
    pub(crate) fn no_ref<'r>(what: &'static str, name: &str, refs: impl Iterator<Item = &'r Ref>) -> Self {
        Self::NoRef { what, name: name.to_owned(), refs: refs.map(|of| of.name.clone()).collect() }
    }

    /// Returns the error for something at `path` that is not this user's alone.
    pub(crate) fn foreign(path: impl AsRef<Path>, problem: impl Into<String>) -> Self {
        Self::Foreign { path: path.as_ref().to_owned(), problem: problem.into() }
    }

    pub(crate) fn volumes(path: impl AsRef<Path>, fault: VolumeFault) -> Self {
        Self::Volumes { path: path.as_ref().to_owned(), fault: Box::new(fault) }
    }

    pub(crate) fn slot(path: impl AsRef<Path>, fault: SlotFault) -> Self {
        Self::Slot { path: path.as_ref().to_owned(), fault: Box::new(fault) }
    }

    pub(crate) fn kernel(path: impl AsRef<Path>, source: KernelError) -> Self {
        Self::Kernel { path: path.as_ref().to_owned(), source: source.into() }
    }
}

/// Returns what an error about lack of space adds about reserved space.
fn beyond(reserved: u64) -> String {
    let text = || format!(" beyond the {reserved} that the repository's configuration reserves");
    (reserved > 0).then(text).unwrap_or_default()
}

/// Converts bytes to a path.
pub(crate) fn path_of(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// Lists the bases of a delta bundle, for messages.
pub(crate) fn listed(bases: &[RootBase]) -> String {
    bases.iter().map(RootBase::to_string).collect::<Vec<_>>().join(" and ")
}
