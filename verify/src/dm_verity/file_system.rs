//! How long the file system in an image is, and so where a hash tree behind it begins. Each superblock has a field for that.

use std::ops::Range;

use sealift_format::num::wide;

use super::{Superblock, le};

/// Bytes at the start of an image that hold the file system's superblock.
pub const HEAD_LEN: u64 = 2048;

/// Superblocks of dm-verity lie at multiples of this (veritysetup(8), `--hash-offset`).
const SECTOR: u64 = 512;
/// What file systems are padded to.
const PADDING: u64 = 4096;

/// Linux: fs/squashfs/squashfs_fs.h, at the start of the image.
const SQUASHFS: u64 = 0x7371_7368;
/// Linux: fs/erofs/erofs_fs.h and Documentation/filesystems/ext4, after 1024 bytes.
const SUPERBLOCK: usize = 1024;
const EROFS: u64 = 0xe0f5_e1e2;
const EROFS_48_BIT: u64 = 0x80;
const EXT4: u64 = 0xef53;
const EXT4_64_BIT: u64 = 0x80;

/// Returns the bytes of an image in which a superblock of dm-verity lies, if a hash tree was appended to the file system. `head` are the first
/// [`HEAD_LEN`] bytes of the image, and `image_len` is its length. `None` if it has no squashfs, EROFS or ext4, or nothing behind it.
#[must_use]
pub fn superblock_range(head: &[u8], image_len: u64) -> Option<Range<u64>> {
    let start = file_system_len(head)?.checked_next_multiple_of(SECTOR)?;
    let end = image_len.min(start.checked_next_multiple_of(PADDING)?.checked_add(SECTOR)?);
    (start > 0 && end.checked_sub(start)? >= wide(Superblock::LEN)).then_some(start..end)
}

/// Returns where in the bytes of [`superblock_range`] the superblock begins.
#[must_use]
pub fn find_superblock(range: &[u8]) -> Option<usize> {
    (0..range.len()).step_by(Superblock::LEN).find(|at| Superblock::is_at(&range[*at..]))
}

fn file_system_len(head: &[u8]) -> Option<u64> {
    if le::<4>(head, 0) == SQUASHFS {
        return Some(le::<8>(head, 40));
    }
    let superblock = head.get(SUPERBLOCK..)?;
    let (blocks, block_log) = if le::<4>(superblock, 0) == EROFS {
        // Images whose blocks need more than 32 bits have the upper bits where others have the number of the root.
        let upper = if le::<4>(superblock, 80) & EROFS_48_BIT != 0 { le::<2>(superblock, 14) } else { 0 };
        (upper << 32 | le::<4>(superblock, 36), le::<1>(superblock, 12))
    } else if le::<2>(superblock, 56) == EXT4 {
        let upper = if le::<4>(superblock, 96) & EXT4_64_BIT != 0 { le::<4>(superblock, 0x150) } else { 0 };
        (upper << 32 | le::<4>(superblock, 4), le::<4>(superblock, 24).checked_add(10)?)
    } else {
        return None;
    };
    let block_len = 1_u64.checked_shl(u32::try_from(block_log).ok()?).filter(|_| block_log <= 16)?;
    blocks.checked_mul(block_len)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the start of an image with these fields.
    fn head(fields: &[(usize, &[u8])]) -> Vec<u8> {
        let mut head = vec![0; 2048];
        fields.iter().for_each(|(at, bytes)| head[*at..*at + bytes.len()].copy_from_slice(bytes));
        head
    }

    fn squashfs(len: u64) -> Vec<u8> {
        head(&[(0, b"hsqs"), (40, &len.to_le_bytes())])
    }

    fn erofs(blocks: u32, block_log: u8, upper: Option<u16>) -> Vec<u8> {
        let (features, root) = (u32::from(upper.is_some()) << 7, upper.unwrap_or(36));
        let magic: (usize, &[u8]) = (1024, &[0xe2, 0xe1, 0xf5, 0xe0]);
        let fields =
            [(1036, vec![block_log]), (1038, root.to_le_bytes().to_vec()), (1060, blocks.to_le_bytes().to_vec())];
        let fields = fields.iter().map(|(at, bytes)| (*at, &bytes[..]));
        head(&fields.chain([magic, (1104, &features.to_le_bytes())]).collect::<Vec<_>>())
    }

    fn ext4(blocks: u32, block_log: u32, upper: Option<u32>) -> Vec<u8> {
        let (features, upper) = (u32::from(upper.is_some()) << 7, upper.unwrap_or(0));
        head(&[
            (1028, &blocks.to_le_bytes()),
            (1048, &block_log.to_le_bytes()),
            (1080, &[0x53, 0xef]),
            (1120, &features.to_le_bytes()),
            (1360, &upper.to_le_bytes()),
        ])
    }

    #[test]
    fn a_tree_begins_where_the_file_system_ends() {
        let far = 1 << 60;
        for (head, range) in [
            (squashfs(8192), Some(8192..8704)),
            (squashfs(8193), Some(8704..12_800)),
            (erofs(3, 12, None), Some(12_288..12_800)),
            (erofs(3, 9, None), Some(1536..4608)),
            (erofs(3, 12, Some(1)), Some((1 << 44) + 12_288..(1 << 44) + 12_800)),
            (ext4(64, 0, None), Some(65_536..66_048)),
            (ext4(64, 2, None), Some(262_144..262_656)),
            (ext4(64, 2, Some(1)), Some((1 << 44) + 262_144..(1 << 44) + 262_656)),
            // What no image has.
            (squashfs(0), None),
            (squashfs(u64::MAX), None),
            (squashfs(far), None),
            (erofs(3, 64, None), None),
            (ext4(3, u32::MAX, None), None),
            (ext4(u32::MAX, 6, Some(u32::MAX)), None),
            (head(&[]), None),
            (Vec::new(), None),
        ] {
            assert_eq!(superblock_range(&head, far), range);
        }
        assert_eq!(superblock_range(&squashfs(8193), 9216), Some(8704..9216));
        assert_eq!(superblock_range(&squashfs(8193), 9215), None, "nothing is behind it");
        assert_eq!(superblock_range(&squashfs(8192), 4096), None, "it was cut");
    }

    proptest! {
        /// The range is short, and within the image, whatever the image begins with.
        #[test]
        fn ranges_are_short(
            magic in 0..4_usize,
            mut bytes in proptest::collection::vec(any::<u8>(), 0..2100),
            len in any::<u64>(),
        ) {
            let (at, mark): (usize, &[u8]) =
                [(0, &b"hsqs"[..]), (1024, &[0xe2, 0xe1, 0xf5, 0xe0]), (1080, &[0x53, 0xef]), (0, &[])][magic];
            if let Some(place) = bytes.get_mut(at..at + mark.len()) {
                place.copy_from_slice(mark);
            }
            if let Some(range) = superblock_range(&bytes, len) {
                prop_assert!(range.end <= len && (512..=4608).contains(&(range.end - range.start)));
            }
            let _ = find_superblock(&bytes);
        }
    }
}
