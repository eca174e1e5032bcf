//! A plugin of nbdkit: serves one file of a bundle, such as a disk image, as a read-only network block device.
//!
//! Nothing is unpacked: what is read is decoded, and every chunk is compared with its digest before a byte of it is handed out.
//! `nbdkit-sealift-plugin(1)` describes its parameters.

mod calls;
mod interface;
mod parameters;
mod plugin;
mod served;
