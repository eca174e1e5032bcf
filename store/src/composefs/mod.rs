//! composefs: trees as images of names and metadata, over a store that has each content once, named by its fs-verity digest.
//!
//! Stores are those of composefs-rs (`cfsctl`, bootc), in their documented form: `meta.json`, `objects`, `images`, and `images/refs`. What
//! Sealift records of the installed bundles is in `sealift`, which composefs ignores.
//! [`crate::install::composefs`] imports the trees of a bundle into a store.

pub(crate) mod check;
pub(crate) mod image;
pub(crate) mod left;
pub(crate) mod link;
pub(crate) mod records;
pub(crate) mod repo;
pub(crate) mod transaction;

pub use image::{ImageContent, make as make_image};
pub(crate) use records::KnownObjects;
pub(crate) use repo::Repo;
