//! A slot: a block device, or a regular file given as `image:FILE`, that holds one image, the content of one file of a bundle.
//!
//! A slot has no room for a record of its own: the state keeps it ([`SlotFolder`]), bound to the partition, its size, and the digest of what was
//! written.

mod address;
mod device;
mod direct;
mod fingerprint;
mod found;
mod geometry;
mod partition;
mod queue;
mod record;
mod users;
mod writer;

pub use address::SlotAddress;
pub use device::Slot;
pub(crate) use fingerprint::{Fingerprint, Fingerprints, ranges, value_of};
pub(crate) use geometry::Geometry;
pub use partition::Partition;
pub(crate) use queue::Written;
pub use record::{SlotFolder, SlotImage, SlotRecord};
pub(crate) use writer::{BLOCK_LEN, HEAD_LEN, SlotWriter, overwrite_head};
