//! composefs stores as targets.
//!
//! [`import`] takes the trees of a bundle into a store, [`mount`] mounts one of them, if all of it is what the bundle says, and [`audit`] finds out
//! whether all that a store took still is.

mod audit;
mod check;
mod delta;
mod import;
mod link;
mod mount;
mod objects;
mod stats;

pub use audit::audit;
pub use import::{ImportOptions, import};
pub use mount::{Checked, MountOptions, MountStats, mount};
pub use stats::ImportStats;
