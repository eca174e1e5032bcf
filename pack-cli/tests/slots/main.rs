//! Block devices, and files given as `image:FILE`, as targets and as bases.
#![allow(clippy::unwrap_used, reason = "tests")]

mod apart;
mod boot_loaders;
mod desk;
mod failing;
mod killed;
mod memory;
mod page;
mod power;
mod rauc;
mod refused;
mod remembered;
mod written;
