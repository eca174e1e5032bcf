//! Mounted bundles: what is in them, and what happens to their medium.
#![allow(clippy::unwrap_used, reason = "tests")]

mod endings;
mod faults;
mod memory;
mod mounted;
mod recorded;
mod trees;
