//! Mounted bundles: what is in them, and what happens to their medium.
#![allow(clippy::unwrap_used, reason = "tests")]

mod desk;
mod endings;
mod faults;
mod memory;
mod recorded;
mod trees;
