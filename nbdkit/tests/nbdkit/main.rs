//! The plugin in nbdkit itself, read by libnbd's programs.
#![allow(clippy::unwrap_used, reason = "tests")]

mod desk;
mod faults;
mod reads;
mod refusals;
mod scratch;
