//! Targets, into which bundles are installed: one folder for each kind, none of which knows another.

#[cfg(feature = "composefs")]
pub mod composefs;
pub mod directory;
pub mod ostree;
