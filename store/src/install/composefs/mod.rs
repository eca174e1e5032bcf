//! composefs stores as targets.
//!
//! [`import`] imports the trees of a bundle into a store, [`mount`] mounts one of them if all of it matches the bundle, and [`audit`] checks
//! whether everything that a store imported still does.

mod audit;
mod check;
mod delta;
mod import;
mod link;
mod mount;
mod objects;
mod stats;

pub use audit::audit;
pub use import::import;
pub use mount::mount;
pub use stats::{ComposefsStats, ImageChecked, MountStats};
