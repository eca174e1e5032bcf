//! Errors in the bytes of a bundle.

use alloc::format;
use alloc::string::String;
use core::fmt;

use crate::Kind;

/// A part of the file, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The first 32 bytes (core 3).
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
    /// A request, which states what a target has (requests.md).
    Request,
    /// The signed list of a channel (channel.md).
    #[cfg(not(target_arch = "wasm32"))]
    List,
    /// The header of a volume (volumes.md).
    #[cfg(not(target_arch = "wasm32"))]
    Volume,
    /// Header or geometry of a recovery file (recovery.md).
    #[cfg(not(target_arch = "wasm32"))]
    Recovery,
}

impl Part {
    /// Returns the kind of failure for errors in this part (core 11.1).
    #[must_use]
    pub fn kind(self) -> Kind {
        match self {
            Self::Preamble | Self::Root | Self::SignatureArea | Self::Request => Kind::Header,
            #[cfg(not(target_arch = "wasm32"))]
            Self::List | Self::Volume | Self::Recovery => Kind::Header,
            Self::Layout => Kind::Layout,
            Self::Index => Kind::Index,
            Self::Base => Kind::Base,
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
            #[cfg(not(target_arch = "wasm32"))]
            Self::List => f.write_str("list"),
            #[cfg(not(target_arch = "wasm32"))]
            Self::Volume => f.write_str("volume"),
            #[cfg(not(target_arch = "wasm32"))]
            Self::Recovery => f.write_str("recovery file"),
        }
    }
}

/// Why the bytes are not a usable bundle. I/O errors are not among these.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The first eight bytes are not Sealift's.
    #[error("not a Sealift bundle: it does not begin with the magic bytes")]
    Magic,
    /// It is a request, not a bundle.
    #[error("this is a request, not a bundle")]
    IsRequest,
    /// It is a volume, not a bundle.
    #[error("this is a volume of a bundle that was split, not a bundle")]
    IsVolume,
    /// A version, section, codec or kind that only a later reader knows.
    #[error("{part}: unknown {what} {found}; a newer version of Sealift may support it")]
    Unsupported {
        /// The part that contains it.
        part: Part,
        /// What the value stands for.
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
        /// The approximate position in the structure, in bytes.
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
        /// The part that was hashed.
        part: Part,
    },
    /// A zstd frame does not conform to core 8.1.
    #[error("{part}: {what}")]
    Frame {
        /// The part that contains the frame.
        part: Part,
        /// What is wrong.
        what: &'static str,
    },
    /// A declared size exceeds this reader's limit.
    #[error("the bundle declares {what} = {declared}, which exceeds the limit of {limit}")]
    Limit {
        /// The name of the size.
        what: &'static str,
        /// The declared value.
        declared: u64,
        /// The limit.
        limit: u64,
    },
    /// The system has no memory for the trees of the refs.
    #[error("there is not enough memory for its {entries} entries")]
    OutOfMemory {
        /// How many there are.
        entries: u64,
    },
    /// A value to be written does not fit into its field.
    #[error("{what}: {len} is more than the format can store, which is {max}")]
    TooLarge {
        /// The length or count.
        what: &'static str,
        /// Its value.
        len: u64,
        /// The largest value that fits.
        max: u64,
    },
    /// A bundle cannot be split into volumes of a size.
    #[cfg(not(target_arch = "wasm32"))]
    #[error(
        "volumes of {size} bytes are too small for this bundle: it needs {needed} bytes in one of them, since chunks are not cut"
    )]
    VolumeSize {
        /// The size, in bytes.
        size: u64,
        /// The smallest size into which it can be split.
        needed: u64,
    },
    /// A number in the root differs from the one that layout and index give.
    #[error("root: declares {what} = {declared}, but layout and index have {found}")]
    Maximum {
        /// The field of core 4.3.
        what: &'static str,
        /// The declared value.
        declared: u64,
        /// The value that layout and index give.
        found: u64,
    },
    /// The input ends too early.
    #[error("{}", ends_early(*len, *expected))]
    Truncated {
        /// The input's length in bytes.
        len: u64,
        /// The bundle's length in bytes; `None` if the input ends inside the head, which states it.
        expected: Option<u64>,
    },
    /// The input continues after the end of the bundle.
    #[error("the file continues after the end of the bundle, at byte {expected}")]
    Trailing {
        /// The bundle's length.
        expected: u64,
    },
}

/// Returns where the input ends.
fn ends_early(len: u64, expected: Option<u64>) -> String {
    match (len, expected) {
        (0, _) => "the file is empty".into(),
        (_, None) => format!("the file ends at byte {len}, inside the bundle's head"),
        (_, Some(expected)) => format!("the bundle is truncated: {len} of {expected} bytes"),
    }
}

impl Error {
    /// Returns the kind of failure (core 11.1).
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Magic | Self::IsRequest | Self::IsVolume | Self::Maximum { .. } => Kind::Header,
            Self::Unsupported { .. } => Kind::Unsupported,
            Self::Malformed { part, .. }
            | Self::Row { part, .. }
            | Self::Digest { part }
            | Self::Frame { part, .. } => part.kind(),
            Self::Path { .. } => Kind::Path,
            Self::Limit { .. } | Self::OutOfMemory { .. } | Self::TooLarge { .. } => Kind::Limit,
            #[cfg(not(target_arch = "wasm32"))]
            Self::VolumeSize { .. } => Kind::Limit,
            Self::Truncated { .. } => Kind::Truncated,
            Self::Trailing { .. } => Kind::Trailing,
        }
    }
}

/// Compares fields, each given as its name, the declared value and the found value.
pub(crate) fn compare(fields: &[(&'static str, u64, u64)]) -> Result<(), Error> {
    match fields.iter().find(|(_, declared, found)| declared != found) {
        Some(&(what, declared, found)) => Err(Error::Maximum { what, declared, found }),
        None => Ok(()),
    }
}

/// Returns an error about a row of a layout.
pub(crate) fn layout_row(what: &'static str, row: usize) -> Error {
    Error::Row { part: Part::Layout, what, row: u64::try_from(row).unwrap_or(u64::MAX) }
}
