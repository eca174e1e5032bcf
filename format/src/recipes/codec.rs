//! The forms that are decoded (recipes 5).

use crate::{Error, Part};

/// The form of bytes that are decoded (recipes 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Codec {
    /// A zlib stream (RFC 1950).
    Zlib,
    /// A deflate stream (RFC 1951).
    Deflate,
    /// An xz stream whose dictionaries have at most 1 MiB.
    XzSmall,
    /// An xz stream whose dictionaries have at most 8 MiB.
    Xz,
    /// An xz stream whose dictionaries have at most 64 MiB.
    XzLarge,
    /// An lz4 block.
    Lz4Block,
    /// A zstd frame (RFC 8878).
    Zstd,
    /// A bzip2 stream.
    Bzip2,
}

impl Codec {
    /// Returns the bytes of memory that its decoder takes besides input and output.
    #[must_use]
    pub fn memory(self) -> u64 {
        match self {
            Self::Zlib | Self::Deflate => 1 << 16,
            Self::Lz4Block => 0,
            Self::Zstd => 1 << 18,
            Self::Bzip2 => 1 << 22,
            Self::XzSmall => (1 << 20) + (1 << 17),
            Self::Xz => (1 << 23) + (1 << 17),
            Self::XzLarge => (1 << 26) + (1 << 17),
        }
    }

    pub(super) fn number(self) -> u8 {
        match self {
            Self::Zlib => 1,
            Self::Deflate => 2,
            Self::XzSmall => 3,
            Self::Xz => 4,
            Self::XzLarge => 5,
            Self::Lz4Block => 6,
            Self::Zstd => 7,
            Self::Bzip2 => 8,
        }
    }

    pub(super) fn of(number: u8) -> Result<Self, Error> {
        match number {
            1 => Ok(Self::Zlib),
            2 => Ok(Self::Deflate),
            3 => Ok(Self::XzSmall),
            4 => Ok(Self::Xz),
            5 => Ok(Self::XzLarge),
            6 => Ok(Self::Lz4Block),
            7 => Ok(Self::Zstd),
            8 => Ok(Self::Bzip2),
            _ => Err(Error::Unsupported { part: Part::Layout, what: "codec of a recipe", found: number.into() }),
        }
    }
}
