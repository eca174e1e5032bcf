//! A plugin of nbdkit: serves one file of a bundle, such as a disk image, as a read-only network block device.
//!
//! Nothing is unpacked: chunks are decoded when they are read, after each was compared with its digest.
//! `nbdkit-sealift-plugin(1)` describes its parameters.

mod calls;
mod interface;
mod parameters;
mod plugin;
mod served;
