//! What bundles are installed into: one folder for each kind of target; none depends on another.

pub mod archive;
#[cfg_attr(not(feature = "composefs"), path = "no_composefs.rs")]
pub mod composefs;
pub mod directory;
mod options;
pub mod ostree;
mod stats;

pub use options::{Destination, Durability, InstallOptions, OsTreeOptions, TreeOptions};
pub use stats::{ImportStats, InstallStats, RefValue, SetRef};
