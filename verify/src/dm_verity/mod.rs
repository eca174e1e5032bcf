//! dm-verity of disk images (Linux: Documentation/admin-guide/device-mapper/verity.rst): the superblock that `veritysetup` writes, where the hash tree
//! lies, and its hashes. The root hash is what a kernel gets as `roothash=`.
//!
//! Nothing here reads: callers pass the bytes that [`HashTree`] and [`superblock_range`] name. The bytes may come from anyone.

mod file_system;
mod partitions;
mod superblock;
mod tree;

pub use file_system::{HEAD_LEN, find_superblock, superblock_range};
pub use partitions::{Partition, TABLE_LEN, partitions};
pub use superblock::{Superblock, SuperblockError};
pub use tree::{HashTree, Layer, Mismatch};

/// Returns a little-endian number of a structure; 0 beyond its end.
fn le<const N: usize>(bytes: &[u8], at: usize) -> u64 {
    let field: [u8; N] = bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N]);
    field.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
