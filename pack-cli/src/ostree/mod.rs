//! OSTree repositories, as libostree 2022.7 reads and writes them: a folder of objects, named by SHA-256, and of refs that name commits.
//!
//! Whatever a repository holds may have been written by others: paths are opened beneath it without following links, an object counts
//! when it has the checksum that names it, and parsers take normal forms alone.

mod config;
mod create;
mod fault;
mod lock;
mod object;
mod read;
mod refs;
mod repo;
mod room;
mod stage;
mod transaction;

#[cfg(test)]
mod tests;

pub use fault::RepoFault;
pub(crate) use object::ObjectType;
pub(crate) use read::{Content, FileContent};
pub(crate) use refs::{RefName, RefPlace};
pub(crate) use repo::Repo;
