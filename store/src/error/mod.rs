//! Why an operation fails.

mod archive;
mod repository;

use std::ffi::OsStr;
use std::fmt::Display;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sealift_format::verity::{Algorithm, FileDigest};
use sealift_format::{Base, Delta, Kind, Root};
use sealift_verify::kernel::KernelError;
use sealift_verify::kernel_signature::sign::KernelSignError;
use sealift_verify::trust::sign::SignError;
use sealift_verify::trust::{SignatureError, TrustFileError};

pub use archive::ArchiveFault;
pub(crate) use archive::shown;
pub use repository::RepoFault;

/// Why an operation did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A system call failed.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// What was being done: "read", "create".
        doing: &'static str,
        /// To which file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A source's file is not what it was when its directory was read.
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
        /// Where the member's header begins.
        offset: u64,
        /// Why.
        fault: Box<ArchiveFault>,
    },
    /// The bundle's bytes are not as the format says.
    #[error(transparent)]
    Format(#[from] sealift_format::Error),
    /// The bundle's content is damaged.
    #[error(transparent)]
    Content(#[from] sealift_verify::content::ContentError),
    /// The bundle is not to be used on this device.
    #[error(transparent)]
    Trust(#[from] sealift_verify::Error),
    /// Something is wrong with one of several bundles.
    #[error("{}: {source}", path.display())]
    Bundle {
        /// The bundle.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<Error>,
    },
    /// A delta bundle does not say which full bundle it stands for.
    #[error("{} does not name the full bundle it can be joined to", path.display())]
    NoFull {
        /// The delta bundle.
        path: PathBuf,
    },
    /// A full bundle that a delta bundle stands for cannot be made here.
    #[error("{}: {own} compresses differently from {packed}, which packed the full bundle", path.display())]
    OtherEncoder {
        /// The delta bundle.
        path: PathBuf,
        /// The encoder that packed the full bundle.
        packed: String,
        /// The one that is here.
        own: String,
    },
    /// A delta bundle was given where a bundle is needed that carries all of its objects.
    #[error("{} is a delta, which needs {bases}", path.display())]
    IsDelta {
        /// The bundle.
        path: PathBuf,
        /// What it is relative to.
        bases: String,
    },
    /// A delta bundle's base, or some of its objects, are not there.
    #[error("{}: {problem}", path.display())]
    MissingBase {
        /// The target, or the base that was given.
        path: PathBuf,
        /// What is missing, and what to do.
        problem: String,
    },
    /// The target took another bundle first.
    #[error("{} contains {bound:?}; refusing to replace it with {name:?}", target.display())]
    OtherName {
        /// The target.
        target: PathBuf,
        /// The name that it is bound to.
        bound: String,
        /// The bundle's name.
        name: String,
    },
    /// The target is a directory that this program did not make.
    #[error("{} {}", target.display(), whose(*is_of_another))]
    NotOurs {
        /// The target.
        target: PathBuf,
        /// Whether there is an install record, of another directory.
        is_of_another: bool,
    },
    /// The target's file system takes two names for one.
    #[error(
        "{}: this file system does not distinguish two names of the bundle that differ in case or normalization",
        path.display()
    )]
    FoldedName {
        /// The second of the names.
        path: PathBuf,
    },
    /// Somebody changes the target while it is updated.
    #[error("another process is changing {}", target.display())]
    Changing {
        /// The target.
        target: PathBuf,
    },
    /// An update was interrupted, and what it had staged is damaged.
    #[error("{} has files of two bundles after an interrupted update", target.display())]
    HalfUpdated {
        /// The target.
        target: PathBuf,
    },
    /// A file of the administrator cannot be used as it is.
    #[error("{}: {source}", path.display())]
    TrustFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: TrustFileError,
    },
    /// What was kept between bundles cannot be used as it is.
    #[error("{} is damaged: {problem}", path.display())]
    State {
        /// The file.
        path: PathBuf,
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
    /// A composefs store, or something in it, cannot be used.
    #[error("{}: {problem}", path.display())]
    Store {
        /// The store.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        problem: String,
    },
    /// An object of a composefs store is not what its name says.
    #[error("{}: its content has the fs-verity digest {found} instead of {expected}, its name", path.display())]
    StoreObject {
        /// The object.
        path: PathBuf,
        /// What its name says.
        expected: Box<FileDigest>,
        /// What its content has.
        found: Box<FileDigest>,
    },
    /// The kernel did not seal a file, or says another digest of it.
    #[error("{}: {source}", path.display())]
    Kernel {
        /// The file, or the directory on whose file system it is.
        path: PathBuf,
        /// What the kernel said.
        source: Box<KernelError>,
    },
    /// The kernel does not take the signature for it that the bundle carries, and was to.
    #[error("{}: {source}", path.display())]
    SignatureRefused {
        /// The index.
        path: PathBuf,
        /// What the kernel said.
        source: Box<KernelError>,
    },
    /// A key file cannot be used, or made no signature.
    #[error("{}: {source}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: SignError,
    },
    /// A key or certificate that signs for the kernel cannot be used, or made no signature.
    #[error("{}: {source}", path.display())]
    KernelKey {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: KernelSignError,
    },
    /// ssh-agent made no signature.
    #[error("ssh-agent cannot sign with {}: {problem}", key.display())]
    Agent {
        /// The public key's file.
        key: PathBuf,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// A signature that was to be added is none of this bundle.
    #[error("{}: {source}", path.display())]
    Attach {
        /// The file of the signature.
        path: PathBuf,
        /// What is wrong with it.
        source: SignatureError,
    },
    /// A signature for the kernel that was to be added is none, or none of this bundle.
    #[error("{}: {source}", path.display())]
    AttachKernel {
        /// The file of the signature.
        path: PathBuf,
        /// What is wrong with it.
        source: KernelSignError,
    },
    /// The signature area is too small.
    #[error("the signatures need {needed} bytes, but this bundle has room for {room}")]
    NoRoom {
        /// Bytes that all signatures together need.
        needed: u64,
        /// Bytes that there are.
        room: u64,
    },
    /// What was to be a new file is there already.
    #[error("{} exists already", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The bundle has several refs, and which one is wanted was not said.
    #[error("the bundle has several refs: {}", refs.join(", "))]
    SeveralRefs {
        /// Their names.
        refs: Vec<String>,
    },
    /// A directory that is to be made is there, and is not empty.
    #[error("{} exists and is not empty", path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// A directory that is not empty stands where the bundle has a file.
    #[error("{} is a non-empty directory here and a file in the bundle", path.display())]
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
        /// Of which ref; `None` for all.
        of: Option<String>,
        /// The hash with which the store names objects.
        algorithm: Algorithm,
    },
    /// Something that is to be packed is more than readers accept by default.
    #[error("{what}; readers accept {limit} by default")]
    OverLimit {
        /// What, and how much it is.
        what: String,
        /// The limit's name.
        name: String,
        /// What would have to be accepted.
        number: u64,
        /// What readers accept.
        limit: u64,
    },
    /// A composefs store lacks an object, or has it with other content.
    #[error("{}: {problem}", path.display())]
    DamagedStore {
        /// The store.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// There is no place for the state of this device.
    #[error("no state directory for rollback protection")]
    NoStateDirectory,
    /// Something that was asked for cannot be done so.
    #[error("{0}")]
    Usage(String),
    /// Another user owns something that is relied on, or may write to it.
    #[error("{} {problem}", path.display())]
    Foreign {
        /// The file or directory.
        path: PathBuf,
        /// Whose it is, as the end of a sentence.
        problem: String,
    },
    /// A name does not lead any more to what was opened under it.
    #[error("{} was replaced during this run: nothing was written elsewhere", path.display())]
    Exchanged {
        /// The name.
        path: PathBuf,
    },
    /// A path cannot be a target.
    #[error("{} {problem}", path.display())]
    Unusable {
        /// The path.
        path: PathBuf,
        /// Why, as the end of a sentence.
        problem: &'static str,
    },
    /// Another run is at work there.
    #[error("another sealift run is using {}", path.display())]
    Busy {
        /// What it holds.
        path: PathBuf,
    },
    /// The target's file system can take too few files.
    #[error("not enough inodes at {}: {needed} needed, {free} free", path.display())]
    NoInodes {
        /// The target.
        path: PathBuf,
        /// Inodes that unpacking needs.
        needed: u64,
        /// Inodes that the file system has.
        free: u64,
    },
    /// The target has too little room.
    #[error("not enough disk space at {}: {needed} bytes needed, {free} free", path.display())]
    NoSpace {
        /// The target.
        path: PathBuf,
        /// Bytes that unpacking needs.
        needed: u64,
        /// Bytes that the file system has.
        free: u64,
    },
    /// The caller wished to stop.
    #[error("cancelled")]
    Cancelled,
}

impl Error {
    /// A system call that failed on `path`.
    pub fn io(doing: &'static str, path: impl AsRef<Path>, source: impl Into<io::Error>) -> Self {
        Self::Io { doing, path: path.as_ref().to_owned(), source: source.into() }
    }

    /// The error of a delta bundle where a bundle is needed that carries all of its objects.
    #[must_use]
    pub fn is_delta(path: &Path, delta: &Delta) -> Self {
        Self::IsDelta { path: path.to_owned(), bases: listed(delta.bases()) }
    }

    /// The error of `found`, which is not what a delta bundle needs.
    #[must_use]
    pub fn wrong_base(path: &Path, delta: &Delta, found: &Root) -> Self {
        let problem = wrong_base(delta.bases(), format_args!("it is {}", found.as_base()));
        Self::MissingBase { path: path.to_owned(), problem }
    }

    /// Something at `path` that is not this user's alone.
    pub(crate) fn foreign(path: impl AsRef<Path>, problem: impl Into<String>) -> Self {
        Self::Foreign { path: path.as_ref().to_owned(), problem: problem.into() }
    }

    pub(crate) fn kernel(path: impl AsRef<Path>, source: KernelError) -> Self {
        Self::Kernel { path: path.as_ref().to_owned(), source: source.into() }
    }

    /// The same error, of the bundle at `path`, where it is the bundle's and does not say so itself.
    pub fn of_bundle(self, path: &Path) -> Self {
        match self {
            Self::Bundle { .. } => self,
            _ if self.kind().is_some() => Self::Bundle { path: path.to_owned(), source: Box::new(self) },
            _ => self,
        }
    }

    /// The bundle's fault, in one word; `None` where it is not the bundle's.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        match self {
            Self::Format(error) => Some(error.kind()),
            Self::Content(error) => Some(error.kind()),
            Self::Trust(error) => Some(error.kind()),
            Self::Bundle { source, .. } => source.kind(),
            Self::Attach { .. } | Self::AttachKernel { .. } => Some(Kind::Signature),
            _ => None,
        }
    }

    /// The error in one word, the same in JSON, in the format's vectors and in JavaScript: that of its [`Kind`] where the bundle is at
    /// fault, else one of `usage`, `exists`, `io`, `busy`, `space`, `room`, `changed`, `other-name`, `not-ours`, `half-updated`, `folded-name`, `trust-file`, `state`, `repository`, `verity`, `not-sealed`,
    /// `other-digest`, `key`, `tar`, `delta`, `full`, `encoder`, `base` and `cancelled`.
    #[must_use]
    pub fn word(&self) -> &'static str {
        if let Some(kind) = self.kind() {
            return kind.word();
        }
        match self {
            Self::Usage(_)
            | Self::Unusable { .. }
            | Self::SeveralRefs { .. }
            | Self::NotEmpty { .. }
            | Self::DirectoryInPlace { .. }
            | Self::NoImages
            | Self::NoImage { .. }
            | Self::OverLimit { .. }
            | Self::NoStateDirectory => "usage",
            Self::Exists { .. } => "exists",
            Self::Busy { .. } => "busy",
            Self::Foreign { .. } => "foreign",
            Self::NoSpace { .. } | Self::NoInodes { .. } => "space",
            Self::NoRoom { .. } => "room",
            Self::Changed { .. } | Self::Changing { .. } | Self::Exchanged { .. } => "changed",
            Self::OtherName { .. } => "other-name",
            Self::NotOurs { .. } => "not-ours",
            Self::FoldedName { .. } => "folded-name",
            Self::HalfUpdated { .. } => "half-updated",
            Self::TrustFile { .. } => "trust-file",
            Self::State { .. } => "state",
            Self::Repository { .. } | Self::Store { .. } | Self::DamagedStore { .. } => "repository",
            Self::Kernel { source, .. } => match **source {
                KernelError::NotSealed => "not-sealed",
                KernelError::OtherDigest { .. } => "other-digest",
                _ => "verity",
            },
            Self::StoreObject { .. } => "other-digest",
            Self::SignatureRefused { .. } => "verity",
            Self::Key { .. } | Self::KernelKey { .. } | Self::Agent { .. } => "key",
            Self::Archive { .. } => "archive",
            Self::IsDelta { .. } => "delta",
            Self::NoFull { .. } => "full",
            Self::OtherEncoder { .. } => "encoder",
            Self::MissingBase { .. } => "base",
            Self::Cancelled => "cancelled",
            _ => "io",
        }
    }

    /// How a program that met this error ends:
    ///
    /// | status | what it means |
    /// | --- | --- |
    /// | 1 | the bundle or the target is damaged, or is not what it is to be |
    /// | 2 | it could not be told or done: a wrong option, input or output, a full disk, a malformed trust file, a state that cannot be kept |
    /// | 3 | policy refuses it: the signer, the name, the version, the expiry, a tag, what a repository asks for |
    /// | 4 | a delta bundle's base is not here |
    #[must_use]
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Bundle { source, .. } => source.exit_status(),
            Self::MissingBase { .. } | Self::IsDelta { .. } => 4,
            Self::OtherName { .. } => 3,
            Self::Repository { fault, .. } if matches!(**fault, RepoFault::Refused { .. }) => 3,
            Self::HalfUpdated { .. } | Self::StoreObject { .. } => 1,
            Self::Kernel { source, .. }
                if matches!(**source, KernelError::NotSealed | KernelError::OtherDigest { .. }) =>
            {
                1
            }
            _ => match self.kind() {
                Some(Kind::Untrusted | Kind::Revoked | Kind::Incompatible | Kind::Expired | Kind::Downgrade) => 3,
                Some(_) => 1,
                None => 2,
            },
        }
    }
}

/// Why a target is not this program's.
fn whose(is_of_another: bool) -> &'static str {
    match is_of_another {
        true => {
            "is not the directory that sealift unpacked: it was restored from a backup, copied, or put in the other's place, \
             and its install record is the other's"
        }
        false => "was not unpacked by sealift, or its install record is gone",
    }
}

/// A path from bytes.
pub(crate) fn path_of(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// The bases of a delta bundle, for people.
pub(crate) fn listed(bases: &[Base]) -> String {
    bases.iter().map(Base::to_string).collect::<Vec<_>>().join(" and ")
}

/// Says that something else is there than a delta bundle needs.
pub fn wrong_base(bases: &[Base], held: impl Display) -> String {
    format!("wrong base: this delta needs {}; {held}", listed(bases))
}
