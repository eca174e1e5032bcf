//! Parameters of zlib.

use alloc::vec::Vec;

const RAW: u8 = 128;

/// The parameters of `deflateInit2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_structs, reason = "recipes 5 lists them")]
pub struct Zlib {
    /// 1 to 9.
    pub level: u8,
    /// 9 to 15.
    pub window_bits: u8,
    /// Without zlib's header and checksum.
    pub is_raw: bool,
    /// 1 to 9.
    pub mem_level: u8,
    /// 0 to 4.
    pub strategy: u8,
}

impl Zlib {
    pub(super) fn parse(params: &[u8]) -> Option<Self> {
        let &[level, bits, mem_level, strategy] = params else { return None };
        let window_bits = bits & !RAW;
        let is_known = (1..=9).contains(&level)
            && (9..=15).contains(&window_bits)
            && (1..=9).contains(&mem_level)
            && strategy <= 4;
        is_known.then_some(Self { level, window_bits, is_raw: bits & RAW != 0, mem_level, strategy })
    }

    pub(super) fn params(&self) -> Vec<u8> {
        let bits = self.window_bits | if self.is_raw { RAW } else { 0 };
        [self.level, bits, self.mem_level, self.strategy].into()
    }

    pub(super) fn memory(&self) -> u64 {
        (1 << (self.window_bits + 2)) + (1 << (self.mem_level + 9))
    }
}
