//! A compressed block.

/// A range of a container that is the compressed form of other bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Where it begins, in bytes from the container's start.
    pub offset: u64,
    /// Its compressed length in bytes: what an encoder writes, without padding around it.
    pub stored_len: u64,
    /// The form of compression.
    pub codec: BlockCodec,
    /// The length of what it decodes to.
    pub plain: PlainLen,
}

impl Block {
    /// Returns the first offset after it.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.stored_len)
    }
}

/// The length in bytes of what a block decodes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainLen {
    /// So many, as the container states. A block that decodes to another length is damaged.
    Exactly(u64),
    /// Known once it is decoded; a block that decodes to more is damaged.
    AtMost(u64),
}

impl PlainLen {
    /// Returns the most that the block may decode to.
    #[must_use]
    pub fn most(self) -> u64 {
        match self {
            Self::Exactly(len) | Self::AtMost(len) => len,
        }
    }
}

/// How a block is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum BlockCodec {
    /// Deflate with zlib's header and Adler-32 (RFC 1950).
    Zlib,
    /// Deflate alone (RFC 1951).
    Deflate,
    /// A member of a gzip file, with its header and CRC (RFC 1952).
    Gzip,
    /// An xz stream, from its header to its footer.
    Xz,
    /// An lz4 block, without any frame.
    Lz4Block,
    /// An lz4 frame, or one of the older format that the kernel reads.
    Lz4Frame,
    /// A zstd frame.
    Zstd,
    /// A bzip2 stream.
    Bzip2,
}

/// What a container states of how its blocks were compressed, for whoever makes them again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hint {
    /// Nothing, or not the same for all blocks.
    #[default]
    None,
    /// squashfs with gzip.
    Zlib {
        /// From 1 to 9.
        level: u32,
        /// The window's length as a power of two.
        window_bits: u16,
        /// The strategies that were tried, by bits of the squashfs format; 0 if only the usual one.
        strategies: u16,
    },
    /// squashfs with xz.
    Xz {
        /// The dictionary's length in bytes.
        dictionary_len: u32,
        /// The branch filters that were tried, by bits of the squashfs format; 0 if none.
        filters: u32,
    },
    /// squashfs with lz4.
    Lz4 {
        /// Whether the slower compressor was used (`-Xhc`).
        is_high: bool,
    },
    /// squashfs with zstd.
    Zstd {
        /// From 1 to 22.
        level: u32,
    },
}
