//! composefs: trees as images of names and metadata, over a store of contents that each are there once, named by their fs-verity digests.
//!
//! Stores are those of composefs-rs (`cfsctl`, bootc), in their documented form: `meta.json`, `objects`, `images`, and `images/refs`. What
//! Sealift keeps of the bundles that a store took is in `sealift`, of which composefs knows nothing.
//!
//! [`import`] takes the trees of a bundle into a store, [`mount`] mounts one of them, if all of it is what the bundle says, and [`audit`] finds out
//! whether all that a store took still is.
//! [`crate::pack::PackOptions::images`] states images when a bundle is packed.

mod audit;
mod check;
mod delta;
mod image;
mod import;
mod kept;
mod link;
mod mount;
mod objects;
mod repo;
mod transaction;

pub use audit::audit;
pub(crate) use image::{ImageContent, WITHIN_LEN_MAX, make as make_image};
pub use import::{ImportOptions, ImportStats, import};
pub(crate) use kept::Found;
pub use mount::{Checked, MountOptions, MountStats, mount};
pub(crate) use repo::Repo;
