//! Bundles that are split into volumes, and read as what they were.
#![allow(clippy::unwrap_used, reason = "tests")]

mod bad;
mod desk;
mod media;
mod read;
mod split;
