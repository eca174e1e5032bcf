//! What can be wrong with the bytes of a bundle.

use core::fmt;

use crate::Kind;

/// A part of the file, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Bytes 0 to 32 (core 3).
    Preamble,
    /// The signed statement (core 4).
    Root,
    /// Envelopes and their checksum (core 5).
    SignatureArea,
    /// Where each object lies (core 7).
    Layout,
    /// What is installed (core 6).
    Index,
    /// The chunk of this number (core 7.2).
    Chunk(u32),
    /// The index of a base, as the target holds it (delta 3).
    Base,
    /// What a target says that it holds (requests.md).
    Request,
}

impl Part {
    /// Returns the word under which a failure of this part is reported (core 11.1).
    #[must_use]
    pub fn kind(self) -> Kind {
        match self {
            Self::Preamble | Self::Root | Self::SignatureArea | Self::Request => Kind::Header,
            Self::Layout => Kind::Layout,
            Self::Index | Self::Base => Kind::Index,
            Self::Chunk(_) => Kind::Chunk,
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Preamble => f.write_str("preamble"),
            Self::Root => f.write_str("root"),
            Self::SignatureArea => f.write_str("signature area"),
            Self::Layout => f.write_str("layout"),
            Self::Index => f.write_str("index"),
            Self::Chunk(number) => write!(f, "chunk {number}"),
            Self::Base => f.write_str("base"),
            Self::Request => f.write_str("request"),
        }
    }
}

/// A fact about the bytes that makes the bundle unusable. Never about I/O.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The first eight bytes are not Sealift's.
    #[error("not a Sealift bundle: it does not begin with the magic bytes")]
    Magic,
    /// A request where a bundle is wanted.
    #[error("this is a request, not a bundle")]
    IsRequest,
    /// A version, section, codec or kind that only a later reader knows.
    #[error("{part}: unknown {what} {found}; a newer version of Sealift may support it")]
    Unsupported {
        /// Where it stands.
        part: Part,
        /// What it is a value of.
        what: &'static str,
        /// The value.
        found: u64,
    },
    /// A structure breaks a rule of the spec.
    #[error("{part}: {what} (near byte {at})")]
    Malformed {
        /// The structure.
        part: Part,
        /// The rule.
        what: &'static str,
        /// About how far into the structure, in bytes.
        at: u64,
    },
    /// A rule about a row of a table is broken.
    #[error("{part}: {what} (row {row})")]
    Row {
        /// The structure.
        part: Part,
        /// The rule.
        what: &'static str,
        /// The row's number in its table.
        row: u64,
    },
    /// A name cannot be a path component.
    #[error("index: the name of entry {entry} {what}")]
    Path {
        /// The entry's number.
        entry: u32,
        /// What is wrong with it.
        what: &'static str,
    },
    /// Stored bytes do not match the digest that the root or layout gives.
    #[error("{part}: the bytes do not match their digest; the file is damaged or was tampered with")]
    Digest {
        /// What was hashed.
        part: Part,
    },
    /// A zstd frame is not as core 8.1 says.
    #[error("{part}: {what}")]
    Frame {
        /// Whose frame it is.
        part: Part,
        /// What is wrong.
        what: &'static str,
    },
    /// A declared size is more than this reader takes.
    #[error("the bundle declares {what} = {declared}, which exceeds the limit of {limit}")]
    Limit {
        /// Which size.
        what: &'static str,
        /// As the bundle declares it.
        declared: u64,
        /// What this reader takes.
        limit: u64,
    },
    /// What is to be written does not fit into its field.
    #[error("{what}: {len} is more than the format can store, which is {max}")]
    TooLarge {
        /// The length or count.
        what: &'static str,
        /// Its value.
        len: u64,
        /// The largest that fits.
        max: u64,
    },
    /// A number in the root is not the one that layout and index give.
    #[error("root: declares {what} = {declared}, but layout and index have {found}")]
    Maximum {
        /// The field of core 4.3.
        what: &'static str,
        /// As the root declares it.
        declared: u64,
        /// As it is.
        found: u64,
    },
    /// The input ends too early.
    #[error("the bundle is truncated: {len} of {expected} bytes")]
    Truncated {
        /// Bytes there are.
        len: u64,
        /// Bytes that there have to be, as far as is known.
        expected: u64,
    },
    /// The input goes on.
    #[error("the file continues after the end of the bundle, at byte {expected}")]
    Trailing {
        /// The bundle's length.
        expected: u64,
    },
}

impl Error {
    /// Returns the word for it (core 11.1).
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Magic | Self::IsRequest | Self::Maximum { .. } => Kind::Header,
            Self::Unsupported { .. } => Kind::Unsupported,
            Self::Malformed { part, .. }
            | Self::Row { part, .. }
            | Self::Digest { part }
            | Self::Frame { part, .. } => part.kind(),
            Self::Path { .. } => Kind::Path,
            Self::Limit { .. } | Self::TooLarge { .. } => Kind::Limit,
            Self::Truncated { .. } => Kind::Truncated,
            Self::Trailing { .. } => Kind::Trailing,
        }
    }
}
