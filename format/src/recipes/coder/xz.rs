//! Parameters of liblzma.

use alloc::vec::Vec;

const EXTREME: u8 = 128;
const BARE: u8 = 255;

/// The parameters of `lzma_stream_buffer_encode` and `lzma_raw_buffer_encode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_structs, reason = "recipes 5 lists them")]
pub struct Xz {
    /// 0 to 9.
    pub preset: u8,
    /// With liblzma's flag for presets that take longer.
    pub is_extreme: bool,
    /// The length of the dictionary in bytes: 2^12 to 2^26.
    pub dictionary_len: u32,
    /// Bits of the literal context: `lc` and `lp` are together at most 4.
    pub lc: u8,
    /// Bits of the position for literals.
    pub lp: u8,
    /// Bits of the position, 0 to 4.
    pub pb: u8,
    /// The filter before LZMA2 by its number in the xz format: 4 to 11, or 0 for none.
    pub filter: u8,
    /// The check of a whole stream by its number in the xz format: 0, 1, 4 or 10; `None` for LZMA2 chunks alone.
    pub check: Option<u8>,
}

impl Xz {
    pub(super) fn parse(params: &[u8]) -> Option<Self> {
        let &[level, a, b, c, d, lc, lp, pb, filter, check] = params else { return None };
        let (preset, dictionary_len) = (level & !EXTREME, u32::from_le_bytes([a, b, c, d]));
        let is_known = preset <= 9
            && (1 << 12..=1 << 26).contains(&dictionary_len)
            && lc <= 4
            && lp <= 4
            && lc + lp <= 4
            && pb <= 4
            && matches!(filter, 0 | 4..=11)
            && matches!(check, 0 | 1 | 4 | 10 | BARE);
        let check = (check != BARE).then_some(check);
        is_known.then_some(Self { preset, is_extreme: level & EXTREME != 0, dictionary_len, lc, lp, pb, filter, check })
    }

    pub(super) fn params(&self) -> Vec<u8> {
        let mut params = Vec::from([self.preset | if self.is_extreme { EXTREME } else { 0 }]);
        params.extend(self.dictionary_len.to_le_bytes());
        params.extend([self.lc, self.lp, self.pb, self.filter, self.check.unwrap_or(BARE)]);
        params
    }

    pub(super) fn memory(&self) -> u64 {
        let len = u64::from(self.dictionary_len);
        // Chains have a number for each byte of the dictionary, trees have two.
        let links = if self.preset <= 3 && !self.is_extreme { 4 } else { 8 };
        len + len / 2 + links * len + 2 * len.next_power_of_two().clamp(1 << 17, 1 << 25) + (1 << 21)
    }
}
