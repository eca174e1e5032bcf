//! Bundles between OSTree repositories, which libostree's own program creates and checks.

mod aliases;
mod audited;
mod beside;
mod circumstances;
mod commitmeta;
mod crafted;
mod damage;
mod deltas;
mod ed25519;
mod keys;
mod killed;
mod looked;
mod mirrors;
mod modes;
mod ordered;
mod remotes;
mod repos;
mod resumed;
mod shared;
mod signed;
mod specs;
mod state;
mod sticks;
mod summaries;
mod update;
mod usb;
