//! Why an OSTree repository cannot be used.

use std::path::PathBuf;

use sealift_format::ostree::Malformed;

/// The reason why an OSTree repository, or something in it, cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepoFault {
    /// The directory does not exist.
    #[error("no such directory")]
    NoDirectory,
    /// Its `config` or `objects` is missing.
    #[error("not an OSTree repository: it has no {missing}")]
    NotARepository {
        /// The missing name.
        missing: &'static str,
    },
    /// An unknown or invalid setting.
    #[error("its config has {key} = {value:?}, which sealift does not support")]
    Config {
        /// The setting.
        key: &'static str,
        /// Its value.
        value: String,
    },
    /// Objects may be in a parent repository.
    #[error("objects are missing; they may be in its parent {parent:?} (core.parent), which sealift does not read")]
    Parent {
        /// The parent repository.
        parent: String,
    },
    /// A line of the config is malformed.
    #[error("line {line} of its config is neither [section] nor key=value")]
    ConfigLine {
        /// The line number, from 1.
        line: usize,
    },
    /// An object cannot get its owner.
    #[error("its mode \"bare\" keeps owners, and an object cannot be given to {uid}:{gid}: {source}")]
    Owner {
        /// The user.
        uid: u32,
        /// The group.
        gid: u32,
        /// The system's reason.
        source: std::io::Error,
    },
    /// An object is missing.
    #[error("it has no object {object}")]
    Missing {
        /// Checksum and type.
        object: String,
    },
    /// An object does not match its checksum.
    #[error("its object {object} is damaged: it does not match its checksum")]
    Damaged {
        /// Checksum and type.
        object: String,
    },
    /// An object matches its checksum, but is invalid.
    #[error("its object {object} is invalid: {fault}")]
    Wrong {
        /// Checksum and type.
        object: String,
        /// The violated rule.
        fault: Malformed,
    },
    /// The content of a new object does not match its checksum.
    #[error("the new object {object} does not match its checksum")]
    Mismatch {
        /// Checksum and type.
        object: String,
    },
    /// The repository's mode cannot store all attributes of a file.
    #[error("its mode, {mode}, cannot hold {object}: {why}")]
    CannotHold {
        /// The mode.
        mode: &'static str,
        /// Checksum and type.
        object: String,
        /// What it cannot store.
        why: &'static str,
    },
    /// A metadata object has more than 128 MiB.
    #[error("its object {object} has {len} bytes, but metadata can have at most 134217728")]
    TooLong {
        /// Checksum and type.
        object: String,
        /// The object's length.
        len: u64,
    },
    /// A name is not valid for a ref, remote or collection.
    #[error("{name:?} is not a valid {what} name")]
    Name {
        /// The kind of name.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A text names several refs.
    #[error("it has several refs: {}", refs.join(", "))]
    SeveralRefs {
        /// Their names.
        refs: Vec<String>,
    },
    /// It has no refs, and one is needed.
    #[error("it has no refs")]
    NoRefs,
    /// A ref does not exist.
    #[error("it has no ref {name:?}")]
    NoRef {
        /// The name as it was given.
        name: String,
    },
    /// A commit is named by its checksum, where its ref is needed.
    #[error("{commit} is a commit and not a ref, and a bundle has its commits by the names of refs")]
    Unnamed {
        /// The checksum as it was given.
        commit: String,
    },
    /// A ref's file conflicts with a directory of other refs, or the other way round.
    #[error("the ref {name:?} conflicts with {other:?}")]
    RefConflict {
        /// The file of the ref.
        name: String,
        /// The conflicting path.
        other: String,
    },
    /// A ref's file does not hold a checksum.
    #[error("its ref {name:?} does not hold a checksum")]
    RefContent {
        /// The ref.
        name: String,
    },
    /// A ref's file is a link that does not lead to a ref.
    #[error("its ref {name:?} is, or is below, {}, a symbolic link that does not point to a ref", path.display())]
    RefLink {
        /// The ref.
        name: String,
        /// The link.
        path: PathBuf,
    },
    /// The ref may not name this commit.
    #[error("refused commit {commit} as {name}: {why}")]
    Refused {
        /// The commit.
        commit: String,
        /// The ref.
        name: String,
        /// The repository's requirement.
        why: String,
    },
    /// A remote does not exist.
    #[error("it has no remote {name:?}")]
    NoRemote {
        /// The name as it was given.
        name: String,
    },
    /// A remote's signature settings cannot be applied.
    #[error("remote {remote:?} is misconfigured: {why}")]
    Remote {
        /// The remote.
        remote: String,
        /// What is wrong.
        why: String,
    },
    /// Another program has the repository locked.
    #[error("still locked by another program after {seconds} seconds")]
    Locked {
        /// How long the lock was waited for.
        seconds: u64,
    },
}
