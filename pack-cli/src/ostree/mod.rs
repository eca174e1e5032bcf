//! OSTree repositories, as libostree 2022.7 reads and writes them: a folder of objects, named by SHA-256, and of refs that name commits.
//!
//! Whatever a repository holds may have been written by others: paths are opened beneath it without following links, an object counts
//! when it has the checksum that names it, and parsers take normal forms alone.
//!
//! [`import`] takes the commits of a bundle into a repository, and [`write_usb`] into one on a medium for those who have OSTree alone;
//! [`audit`] finds out whether what it took still is what is signed, and
//! [`crate::source::Source::open_ostree`] packs those of one.

mod armor;
mod audit;
mod carried;
mod closure;
mod config;
mod create;
mod deflate;
mod delta;
mod ed25519;
mod fault;
mod files;
mod folders;
mod import;
mod kept;
mod key_list;
mod keyfile;
mod lock;
mod look;
mod object;
mod openpgp;
mod plan;
mod policy;
mod read;
mod refs;
mod remote;
mod repo;
mod room;
mod sealing;
mod skeleton;
mod spec;
mod stage;
mod summary;
mod system;
mod transaction;
mod usb;
mod wanted;

#[cfg(test)]
mod tests;

pub use audit::audit;
pub use fault::RepoFault;
#[cfg(feature = "composefs")]
pub(crate) use folders::Folders;
pub use import::{Destination, ImportOptions, ImportStats, import};
#[cfg(feature = "composefs")]
pub(crate) use object::hex;
pub(crate) use object::{ObjectType, object_name};
pub(crate) use read::{Content, FileContent};
pub(crate) use refs::{RefName, RefPlace};
pub(crate) use repo::Repo;
pub use spec::CommitSpec;
#[cfg(feature = "composefs")]
pub(crate) use stage::Stage;
pub use usb::{UsbOptions, write_usb};
