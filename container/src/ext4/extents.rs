//! The extent tree of an ext4 file.

use super::run::Run;
use crate::fault::ContainerFault;
use crate::reader::{Reader, le16, le32, size};

const MAGIC: u16 = 0xf30a;
/// Levels of a tree.
const DEEPEST: u16 = 5;
/// A length above this marks an extent that was allocated but not written; its length is the excess. It reads as zeros.
const UNWRITTEN: u16 = 32_768;

/// Gives the written extents of a tree to `take`.
pub(super) fn visit(
    reader: &Reader<'_>,
    block_len: u64,
    (node, place): (&[u8], u64),
    depth: Option<u16>,
    take: &mut dyn FnMut(Run) -> Result<(), ContainerFault>,
) -> Result<(), ContainerFault> {
    let (count, own) = (le16(node, 2), le16(node, 6));
    // Each level is one less deep, so that the tree ends.
    if le16(node, 0) != MAGIC || own > DEEPEST || depth.is_some_and(|depth| own != depth) {
        return Err(reader.damaged(place, "an ext4 extent tree is damaged"));
    }
    for record in node.get(12..).unwrap_or_default().chunks_exact(12).take(usize::from(count)) {
        if own > 0 {
            let block = u64::from(le16(record, 8)) << 32 | u64::from(le32(record, 4));
            let place = block.saturating_mul(block_len);
            let node = reader.bytes(place, size(block_len))?;
            visit(reader, block_len, (&node, place), Some(own - 1), take)?;
            continue;
        }
        let (logical, len) = (u64::from(le32(record, 0)), le16(record, 4));
        let block = u64::from(le16(record, 6)) << 32 | u64::from(le32(record, 8));
        if len <= UNWRITTEN {
            take(Run { logical, block, count: len.into() })?;
        }
    }
    Ok(())
}
