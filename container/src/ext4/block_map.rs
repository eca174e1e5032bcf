//! The block map of an ext2 or ext3 file: twelve blocks, and one, two and three levels of blocks that list others.

use super::run::Run;
use crate::fault::ContainerFault;
use crate::reader::{Reader, le32, size};

/// The blocks that the inode itself lists.
const DIRECT: usize = 12;

pub(super) struct BlockMap<'a> {
    pub(super) reader: &'a Reader<'a>,
    pub(super) block_len: u64,
    /// The number of blocks of the file, holes included.
    pub(super) blocks: u64,
}

impl BlockMap<'_> {
    /// Gives the blocks of a file, whose inode has this map, to `take`. The number 0 is a hole.
    pub(super) fn visit(
        &self,
        map: &[u8],
        take: &mut dyn FnMut(Run) -> Result<(), ContainerFault>,
    ) -> Result<(), ContainerFault> {
        let mut logical = 0;
        for (number, record) in map.chunks_exact(4).enumerate() {
            let level = u32::try_from((number + 1).saturating_sub(DIRECT)).unwrap_or(0);
            self.visit_level(le32(record, 0), level, &mut logical, take)?;
        }
        Ok(())
    }

    fn visit_level(
        &self,
        block: u32,
        level: u32,
        logical: &mut u64,
        take: &mut dyn FnMut(Run) -> Result<(), ContainerFault>,
    ) -> Result<(), ContainerFault> {
        let covered = (self.block_len / 4).saturating_pow(level);
        if *logical >= self.blocks || block == 0 {
            *logical = logical.saturating_add(covered);
            return Ok(());
        }
        if level == 0 {
            take(Run { logical: *logical, block: block.into(), count: 1 })?;
            *logical += 1;
            return Ok(());
        }
        let place = u64::from(block).saturating_mul(self.block_len);
        for record in self.reader.bytes(place, size(self.block_len))?.chunks_exact(4) {
            self.visit_level(le32(record, 0), level - 1, logical, take)?;
        }
        Ok(())
    }
}
