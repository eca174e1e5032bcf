//! Decides what of a Sealift bundle may be trusted.
#![deny(missing_docs)]

pub mod content;
