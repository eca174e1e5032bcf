//! Block devices, and files given as `image:FILE`, as targets and as bases.
#![allow(clippy::unwrap_used, reason = "tests")]

mod desk;
mod failing;
mod killed;
mod power;
mod refused;
mod remembered;
mod written;
