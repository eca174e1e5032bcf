//! Reads a tar archive's headers block by block.

use sealift_container::tar::Block;
use sealift_format::num;

use crate::Error;
use crate::source::archive::{Archive, ArchiveFault};

/// Bytes read at once at a header: the extended header's blocks and the member's own.
const WINDOW_LEN: usize = 4096;

/// The bytes around the last header that was read, so that small members take less than one call each.
#[derive(Debug, Default)]
pub(super) struct Window {
    at: u64,
    bytes: Vec<u8>,
}

impl Window {
    /// Returns a block of the archive, or `None` at its end.
    pub(super) fn block(&mut self, archive: &Archive, at: u64) -> Result<Option<Block>, Error> {
        if at == archive.len() {
            return Ok(None);
        }
        if let Some(block) = self.held(at) {
            return Ok(Some(block));
        }
        let left = archive.len().saturating_sub(at);
        self.bytes.resize(num::up_to(left, WINDOW_LEN), 0);
        self.at = at;
        archive.read_at(&mut self.bytes, at)?;
        self.held(at).map(Some).ok_or_else(|| archive.fault(at, ArchiveFault::Truncated))
    }

    fn held(&self, at: u64) -> Option<Block> {
        let from = usize::try_from(at.checked_sub(self.at)?).ok()?;
        self.bytes.get(from..)?.first_chunk().copied()
    }
}
