//! The first 32 bytes (core 3).

use crate::bytes::Reader;
use crate::{Error, Part};

/// The preamble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preamble {
    /// The length of the root in bytes, 1 to 65,536.
    pub root_len: u32,
}

impl Preamble {
    /// The length of a preamble in bytes.
    pub const LEN: u32 = 32;
    /// The first eight bytes of every bundle.
    pub const MAGIC: [u8; 8] = [0x89, 0x53, 0x4c, 0x46, 0x54, 0x0d, 0x0a, 0x1a];
    /// The first eight bytes of a request (requests.md), which is not a bundle.
    pub(crate) const REQUEST_MAGIC: [u8; 8] = *b"\x89SLRQ\r\n\x1a";
    /// The first eight bytes of a volume (volumes.md), which is a part of a bundle.
    pub(crate) const VOLUME_MAGIC: [u8; 8] = *b"\x89SLVL\r\n\x1a";
    /// The format version that this crate reads and writes.
    pub const VERSION: u32 = 0;
    /// The length in bytes of the longest root.
    pub const ROOT_LEN_MAX: u32 = 65_536;

    /// Compares the first bytes of a file, as many as there are, with the magic.
    ///
    /// # Errors
    /// Returns an error if they are not the beginning of a bundle.
    pub(crate) fn check_start(bytes: &[u8]) -> Result<(), Error> {
        let start = bytes.get(..Self::MAGIC.len()).unwrap_or(bytes);
        match () {
            () if Self::MAGIC.starts_with(start) => Ok(()),
            () if start == Self::REQUEST_MAGIC => Err(Error::IsRequest),
            () if start == Self::VOLUME_MAGIC => Err(Error::IsVolume),
            () => Err(Error::Magic),
        }
    }

    /// Parses exactly 32 bytes.
    ///
    /// # Errors
    /// Returns an error if magic, version, lengths or reserved bytes do not conform to core 3.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(Part::Preamble, bytes);
        Self::check_start(&reader.array::<8>()?)?;
        let version = reader.u32()?;
        if version != Self::VERSION {
            return Err(Error::Unsupported { part: Part::Preamble, what: "format version", found: version.into() });
        }
        let root_len = reader.u32()?;
        if !(1..=Self::ROOT_LEN_MAX).contains(&root_len) {
            return Err(reader.malformed("the root's length is not between 1 and 65536"));
        }
        if reader.array::<16>()? != [0; 16] {
            return Err(reader.malformed("reserved bytes are not zero"));
        }
        reader.finish()?;
        Ok(Self { root_len })
    }

    /// Returns the 32 bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&Self::MAGIC);
        bytes[8..12].copy_from_slice(&Self::VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.root_len.to_le_bytes());
        bytes
    }

    /// Returns the length of the signed bytes: preamble and root.
    #[must_use]
    pub fn signed_len(&self) -> u32 {
        Self::LEN + self.root_len
    }
}
