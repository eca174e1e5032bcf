//! composefs: trees as images of names and metadata, over a store of contents that each are there once, named by their fs-verity digests.
//!
//! Stores are those of composefs-rs (`cfsctl`, bootc), in their documented form: `meta.json`, `objects`, `images`, and `images/refs`. What
//! Sealift keeps of the bundles that a store took is in `sealift`, of which composefs knows nothing.
//! [`crate::target::composefs`] takes the trees of a bundle into a store.

pub(crate) mod image;
pub(crate) mod kept;
pub(crate) mod repo;
pub(crate) mod transaction;

pub use image::{ImageContent, WITHIN_LEN_MAX, make as make_image};
pub(crate) use kept::KnownObjects;
pub(crate) use repo::Repo;
