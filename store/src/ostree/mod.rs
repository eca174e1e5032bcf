//! OSTree repositories, as libostree 2022.7 reads and writes them: a folder of objects, named by SHA-256, and of refs that name commits.
//!
//! A repository may have been written by others: paths are opened beneath it without following links, an object counts only
//! if its checksum is its name, and parsers accept only normal forms.
//!
//! [`crate::install::ostree`] imports the commits of a bundle into a repository, and [`crate::source::Source::open_ostree`] packs those of one.

pub(crate) mod carried;
pub(crate) mod config;
pub(crate) mod create;
mod deflate;
pub(crate) mod folders;
pub(crate) mod keyfile;
mod left;
mod lock;
pub(crate) mod look;
pub(crate) mod object;
pub(crate) mod read;
pub(crate) mod records;
pub(crate) mod refs;
pub(crate) mod remote;
pub(crate) mod repo;
mod room;
pub(crate) mod signatures;
mod spec;
pub(crate) mod stage;
pub(crate) mod system;
pub(crate) mod transaction;
pub(crate) mod wanted;

#[cfg(test)]
mod tests;

#[cfg(feature = "composefs")]
pub(crate) use folders::Folders;
pub(crate) use object::{ObjectType, object_name, parse_checksum};
pub(crate) use read::{FileBytes, FileContent};
pub(crate) use refs::{RefName, RefOwner};
pub(crate) use repo::Repo;
pub(crate) use room::Room;
pub use spec::CommitSpec;
#[cfg(feature = "composefs")]
pub(crate) use stage::{LeftFile, ObjectStage};
pub(crate) use stage::{LeftStages, look_for_stages};
