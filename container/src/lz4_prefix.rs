//! Decodes the first bytes of an lz4 block, of which libraries decode all or nothing (lz4's `doc/lz4_Block_format.md`).

/// The first bytes of what an lz4 block decodes to.
pub(super) struct Prefix {
    pub(super) bytes: Vec<u8>,
    /// The length of the block, if these are all bytes that it decodes to.
    pub(super) block_len: Option<usize>,
}

impl Prefix {
    /// Decodes `len` bytes of the block at the start of `stored`, behind which other bytes may follow.
    pub(super) fn decoded(stored: &[u8], len: usize) -> Option<Self> {
        let mut left = stored;
        let mut bytes: Vec<u8> = Vec::new();
        loop {
            let token = next(&mut left)?;
            let count = length(token >> 4, &mut left)?;
            let (literals, rest) = left.split_at_checked(count)?;
            left = rest;
            if bytes.len() + count >= len {
                // Only the last sequence ends with its literals.
                let block_len = (bytes.len() + count == len).then_some(stored.len() - left.len());
                bytes.extend(literals.get(..len - bytes.len())?);
                return Some(Self { bytes, block_len });
            }
            bytes.extend(literals);
            let (distance, rest) = left.split_first_chunk()?;
            left = rest;
            let count = length(token & 0xf, &mut left)?.checked_add(4)?;
            let from = bytes.len().checked_sub(usize::from(u16::from_le_bytes(*distance)))?;
            for at in from..from + count.min(len - bytes.len()) {
                // A match may reach into its own bytes; none is at distance 0.
                bytes.push(*bytes.get(at)?);
            }
            if bytes.len() == len {
                return Some(Self { bytes, block_len: None });
            }
        }
    }
}

fn next(left: &mut &[u8]) -> Option<u8> {
    let (first, rest) = left.split_first()?;
    *left = rest;
    Some(*first)
}

/// Returns a length, which goes on in further bytes if all four bits are set.
fn length(bits: u8, left: &mut &[u8]) -> Option<usize> {
    let mut len = usize::from(bits);
    if bits == 0xf {
        loop {
            let byte = next(left)?;
            len = len.checked_add(byte.into())?;
            if byte != 0xff {
                break;
            }
        }
    }
    Some(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_of_a_padded_block() {
        // Two literals, a match of 4 + 15 + 255 + 1 bytes, and five literals.
        let block = b"\x2fab\x02\x00\xff\x01\x50vwxyz";
        let whole = lz4_flex::block::decompress(block, 300).expect("it is a block");
        let padded = [&block[..], &[0; 9]].concat();
        for len in 1..=whole.len() {
            let prefix = Prefix::decoded(&padded, len).expect("it is as long");
            assert_eq!(prefix.bytes, whole[..len]);
            assert_eq!(
                prefix.block_len,
                (len == whole.len() || len == 2).then_some(if len == 2 { 3 } else { block.len() })
            );
        }
        for cut in [&block[..12], &block[..6], &block[..4], &block[..0], b"\x10a\x00\x00", b"\x10a\x02\x00"] {
            assert!(Prefix::decoded(cut, whole.len()).is_none(), "{}", cut.escape_ascii());
        }
    }
}
