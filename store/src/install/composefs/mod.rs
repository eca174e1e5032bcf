//! composefs stores as targets.
//!
//! [`import`] imports the trees of a bundle into a store; [`crate::audit::composefs`] checks whether everything that was imported still matches it.

mod delta;
mod import;
mod objects;
mod stats;

pub use import::import;
pub use stats::ComposefsStats;
