//! The plugin in nbdkit itself, read by libnbd's programs.
#![allow(clippy::unwrap_used, reason = "tests")]

mod faults;
mod reads;
mod refusals;
mod scratch;
mod served;
