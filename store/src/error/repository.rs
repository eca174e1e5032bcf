//! Why an OSTree repository cannot be used.

use std::path::PathBuf;

use sealift_format::ostree::Malformed;

/// Why an OSTree repository, or something in it, cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepoFault {
    /// It is not there.
    #[error("there is no such directory; `ostree init` makes a repository")]
    NoDirectory,
    /// Its `config` or `objects` is missing.
    #[error("this is not an OSTree repository: it has no {missing}; `ostree init` makes one")]
    NotARepository {
        /// What there is to be.
        missing: &'static str,
    },
    /// A setting that this version does not know, or that makes no sense.
    #[error("its config has {key} = {value:?}, which sealift does not support")]
    Config {
        /// The setting.
        key: &'static str,
        /// Its value.
        value: String,
    },
    /// It lacks what another repository has.
    #[error(
        "objects are missing that may be in its parent {parent:?} (core.parent), which sealift does not read: use the parent, or a repository without one into which \
         `ostree pull-local` brought its commits"
    )]
    Parent {
        /// The other.
        parent: String,
    },
    /// A line of the config is none.
    #[error("line {line} of its config is neither [section] nor key=value")]
    ConfigLine {
        /// Counted from 1.
        line: usize,
    },
    /// An object is not there.
    #[error("it has no object {object}")]
    Missing {
        /// Checksum and type.
        object: String,
    },
    /// An object is not what its name says.
    #[error("its object {object} is damaged: it does not match its checksum")]
    Damaged {
        /// Checksum and type.
        object: String,
    },
    /// An object has the bytes that its name says, but breaks a rule.
    #[error("its object {object} is wrong: {fault}")]
    Wrong {
        /// Checksum and type.
        object: String,
        /// The rule.
        fault: Malformed,
    },
    /// What was to become an object has not the checksum that it is to have.
    #[error("the new object {object} does not match its checksum")]
    Mismatch {
        /// Checksum and type.
        object: String,
    },
    /// The repository's mode does not keep all that a file has.
    #[error("its mode, {mode}, cannot hold {object}: {why}")]
    CannotHold {
        /// The mode.
        mode: &'static str,
        /// Checksum and type.
        object: String,
        /// What it does not keep.
        why: &'static str,
    },
    /// A metadata object has more than 128 MiB.
    #[error("its object {object} has {len} bytes, and metadata has at most 134217728")]
    TooLong {
        /// Checksum and type.
        object: String,
        /// Bytes that it has.
        len: u64,
    },
    /// A name cannot be one of a ref, remote or collection.
    #[error("{name:?} is not the name of a {what}")]
    Name {
        /// Of what it was to be the name.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A ref is not there.
    #[error("it has no ref {name:?}")]
    NoRef {
        /// As it was asked for.
        name: String,
    },
    /// A ref's file would have to be where a directory of others is, or the other way round.
    #[error("the ref {name:?} conflicts with {other:?}")]
    RefConflict {
        /// The file of the ref.
        name: String,
        /// What is in its way.
        other: String,
    },
    /// A ref's file holds no checksum.
    #[error("its ref {name:?} does not hold a checksum")]
    RefContent {
        /// The ref.
        name: String,
    },
    /// A ref's file is a link, and not to a ref.
    #[error("its ref {name:?} is, or is below, a symbolic link that does not lead to a ref: remove {}", path.display())]
    RefLink {
        /// The ref.
        name: String,
        /// The link.
        path: PathBuf,
    },
    /// A commit is not one that the ref may name.
    #[error("refused commit {commit} as {name}: {why}")]
    Refused {
        /// The commit.
        commit: String,
        /// The ref.
        name: String,
        /// What the repository asks for.
        why: String,
    },
    /// A remote is not there.
    #[error("it has no remote {name:?}: name one that `ostree remote list` shows, or add it with `ostree remote add`")]
    NoRemote {
        /// As it was asked for.
        name: String,
    },
    /// A remote's settings do not say what to ask of a commit.
    #[error("remote {remote:?} is misconfigured: {why}")]
    Remote {
        /// The remote.
        remote: String,
        /// What is wrong, and what helps.
        why: String,
    },
    /// Another program has the repository locked.
    #[error("still locked by another program after {seconds} seconds: try again later")]
    Locked {
        /// As long it was waited for.
        seconds: u64,
    },
}
