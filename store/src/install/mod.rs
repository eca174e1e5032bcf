//! What bundles are installed into: one folder for each kind of target; none depends on another.

pub mod archive;
#[cfg_attr(not(feature = "composefs"), path = "no_composefs.rs")]
pub mod composefs;
pub mod directory;
mod options;
pub mod ostree;
mod resume;
pub mod slot;
mod stats;

pub use options::{
    Destination, Durability, ExpectedPartition, InstallOptions, OsTreeOptions, SlotOptions, TreeOptions,
};
pub use resume::{discard_imports, import_at, import_may_go_on};
pub use stats::{ImportStats, InstallStats, RefValue, SetRef};
