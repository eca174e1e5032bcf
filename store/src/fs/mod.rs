//! The file system, through descriptors: opening without following links, staging, durable renames, records and state.

pub mod confined;
pub(crate) mod mount;
mod own_dir;
pub mod partial;
mod place;
mod record;
pub(crate) mod rename;
mod site;
pub mod stage;
pub mod stat_cache;
mod state_dir;
pub mod unnamed;
pub mod writeback;

pub use own_dir::{OwnDir, check_owner};
pub use place::{InodeId, Place, inode_id};
pub use record::Record;
pub use site::Site;
pub use stage::Stage;
pub use stat_cache::{FileStat, StatCache};
pub use state_dir::{StateDir, StateLock, check_may_create};
