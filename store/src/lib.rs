//! Places on a machine: what every kind of target needs to be changed safely.
//!
//! Everything here works by descriptors that are held, never by paths that somebody may exchange meanwhile. A path that a user gives is
//! resolved once, as a [`Place`]; from then on it is for messages alone.
#![deny(missing_docs)]

pub mod confined;
mod error;
mod own_dir;
mod place;
mod record;
mod site;
pub mod stage;
pub mod stat_cache;
mod state_dir;
pub mod unnamed;

pub use error::Error;
pub use own_dir::{OwnDir, check_owner};
pub use place::{Identity, Place, identity};
pub use record::Record;
pub use site::Site;
pub use stage::Stage;
pub use stat_cache::{FileStat, StatCache};
pub use state_dir::{StateDir, StateLock, check_may_create};
