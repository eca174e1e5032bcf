//! What a squashfs file system states of its compressor.

use super::Superblock;
use crate::block::{BlockCodec, Hint};
use crate::fault::ContainerFault;
use crate::reader::{Reader, le16, le32};

/// Returns the options, which follow the superblock as an uncompressed block; mksquashfs's defaults if there are none.
pub(super) fn hint(reader: &Reader<'_>, superblock: &Superblock) -> Result<Hint, ContainerFault> {
    let options = match superblock.has_options {
        true => reader.up_to(98, 8)?,
        false => Vec::new(),
    };
    let or = |at: usize, usual: u32| if options.is_empty() { usual } else { le32(&options, at) };
    Ok(match superblock.codec {
        BlockCodec::Zlib if options.is_empty() => Hint::Zlib { level: 9, window_bits: 15, strategies: 0 },
        BlockCodec::Zlib => {
            Hint::Zlib { level: le32(&options, 0), window_bits: le16(&options, 4), strategies: le16(&options, 6) }
        }
        BlockCodec::Xz => {
            let usual = u32::try_from(superblock.block_len).unwrap_or(0);
            Hint::Xz { dictionary_len: or(0, usual), filters: or(4, 0) }
        }
        BlockCodec::Lz4Block => Hint::Lz4 { is_high: or(4, 0) & 1 != 0 },
        _ => Hint::Zstd { level: or(0, 15) },
    })
}
