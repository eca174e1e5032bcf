//! What reading a bundle in an order takes from a device, as it is computed.
#![allow(clippy::unwrap_used, reason = "tests")]

mod deltas;
mod desk;
mod kept;
mod orders;
mod pictures;
mod refusals;
