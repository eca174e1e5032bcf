//! The simulated time to read files from a bundle on a device.
#![allow(clippy::unwrap_used, reason = "tests")]

mod deltas;
mod kept;
mod orders;
mod pictures;
mod refusals;
mod scattered;
