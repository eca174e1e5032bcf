//! Decides what of a Sealift bundle may be trusted.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod trust;
