//! Parameters of libbz2.

use alloc::vec::Vec;

/// The parameter of `BZ2_bzCompressInit`; its work factor is the usual one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_structs, reason = "recipes 5 lists them")]
pub struct Bzip2 {
    /// The length of a block in units of 100,000 bytes: 1 to 9.
    pub level: u8,
}

impl Bzip2 {
    pub(super) fn parse(params: &[u8]) -> Option<Self> {
        let &[level] = params else { return None };
        (1..=9).contains(&level).then_some(Self { level })
    }

    pub(super) fn params(self) -> Vec<u8> {
        [self.level].into()
    }

    pub(super) fn memory(self) -> u64 {
        800_000 * u64::from(self.level) + (1 << 19)
    }
}
