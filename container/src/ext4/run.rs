//! Blocks of an ext4 file that follow each other.

/// A run of blocks.
pub(super) struct Run {
    /// The number of its first block in the file.
    pub(super) logical: u64,
    /// The number of its first block in the file system.
    pub(super) block: u64,
    pub(super) count: u64,
}
