//! What bundles are installed into: one folder for each kind of target, of which none knows another.

#[cfg(feature = "composefs")]
pub mod composefs;
pub mod directory;
pub mod ostree;
