//! The blocks of a squashfs file system that belong to no file: inodes, names, and the tables of fragments, ids, exports and attributes.

use sealift_format::num::wide;

use super::Superblock;
use super::metadata::{BLOCK_LEN, Metadata};
use crate::block::{Block, PlainLen};
use crate::draft::Draft;
use crate::fault::ContainerFault;
use crate::reader::{Reader, le32, le64};

/// An offset of what a file system does not have.
const ABSENT: u64 = u64::MAX;

/// Adds the compressed blocks of all tables to a draft. What does not look like a table is left out, and stays part of the structure.
pub(super) fn add(
    reader: &Reader<'_>,
    superblock: &Superblock,
    metadata: &mut Metadata<'_>,
    draft: &mut Draft<'_>,
) -> Result<(), ContainerFault> {
    let mut pointers = Vec::new();
    let mut starts = vec![superblock.names_at];
    let mut list = |at: u64, bytes: u64| -> Result<(), ContainerFault> {
        starts.push(at);
        pointers.extend(listed(reader, at, bytes)?);
        Ok(())
    };
    list(superblock.fragments_at, u64::from(superblock.fragments) * 16)?;
    list(superblock.export_at, u64::from(superblock.inodes) * 8)?;
    list(superblock.ids_at, u64::from(superblock.ids) * 4)?;
    let mut chains = vec![superblock.inodes_at, superblock.names_at];
    if superblock.xattrs_at != ABSENT && superblock.xattrs_at.saturating_add(16) <= reader.len() {
        let header = reader.bytes(superblock.xattrs_at, 16)?;
        list(superblock.xattrs_at + 16, u64::from(le32(&header, 8)) * 16)?;
        starts.push(superblock.xattrs_at);
        chains.push(le64(&header, 0));
    }
    starts.extend(&pointers);
    starts.extend(&chains);
    starts.push(reader.len());
    starts.sort_unstable();
    for pointer in pointers {
        add_block(pointer, metadata, draft)?;
    }
    for chain in chains {
        // It ends where something else begins.
        let end = starts.get(starts.partition_point(|start| *start <= chain)).copied().unwrap_or(chain);
        let mut at = chain;
        while at < end
            && let Some(next) = add_block(at, metadata, draft)?.filter(|next| *next <= end)
        {
            at = next;
        }
    }
    Ok(())
}

/// Returns the offsets of the blocks of a table of so many bytes.
fn listed(reader: &Reader<'_>, at: u64, bytes: u64) -> Result<Vec<u64>, ContainerFault> {
    let len = usize::try_from(bytes.div_ceil(wide(BLOCK_LEN)) * 8).ok();
    let len = len.filter(|len| at.checked_add(wide(*len)).is_some_and(|end| end <= reader.len()));
    let Some(len) = len else { return Ok(Vec::new()) };
    Ok(reader.bytes(at, len)?.chunks_exact(8).map(|record| le64(record, 0)).collect())
}

/// Adds a block, and returns where the next one begins; `None` if there is no block.
fn add_block(at: u64, metadata: &mut Metadata<'_>, draft: &mut Draft<'_>) -> Result<Option<u64>, ContainerFault> {
    let block = match metadata.block(at) {
        Ok(block) => block,
        Err(ContainerFault::Damaged { .. }) => return Ok(None),
        Err(fault) => return Err(fault),
    };
    if block.is_compressed {
        let plain = PlainLen::Exactly(wide(block.bytes.len()));
        draft.block(Block { offset: at + 2, stored_len: block.stored_len, codec: metadata.codec(), plain })?;
    }
    Ok(Some(block.next))
}
