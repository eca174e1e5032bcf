//! Images and compressed files that are stored as recipes: as the files in them, of which they are made again.
#![allow(clippy::unwrap_used, reason = "tests")]

mod damaged;
mod deltas;
mod desk;
mod inside;
mod stores;
mod targets;
