//! The file system, through descriptors: opening without following links, staging, durable renames, records and state.

pub mod confined;
mod free_space;
pub(crate) mod heritage;
mod keeps;
mod kind;
pub(crate) mod mount;
pub(crate) mod mount_id;
pub(crate) mod own_dir;
mod own_file;
pub(crate) mod own_store;
pub mod partial;
mod place;
mod record;
pub(crate) mod rename;
mod rights;
mod site;
pub mod sparse;
pub mod stage;
pub mod stat_cache;
mod state_dir;
pub mod unnamed;
pub mod unset;
pub mod writeback;

pub use free_space::FreeSpace;
pub use keeps::{Aspect, Keeps, Times};
pub use kind::kind_of;
pub use own_dir::{OwnDir, check_own};
pub use own_file::{check_secret, read_own_file};
pub use place::{InodeId, Place, inode_id};
pub use record::Record;
pub use rights::Rights;
pub use site::Site;
pub use stage::{LeftRun, Stage};
pub use stat_cache::{FileStat, StatCache};
pub use state_dir::{StateDir, StateLock, check_may_create};
pub use unset::Unset;
