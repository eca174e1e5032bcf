//! Bundles between OSTree repositories, which libostree's own program makes and judges.

mod circumstances;
mod crafted;
mod damage;
mod desk;
mod killed;
mod modes;
mod remotes;
mod shared;
mod update;
