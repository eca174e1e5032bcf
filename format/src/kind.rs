//! The one list of words for what can be wrong with a bundle.

/// What is wrong, in one word: the same in the vectors' `expect:`, the CLI's
/// `--json` and JavaScript's `error.code` (spec, "Kinds of failure").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// Preamble, root or signature area are not as the spec says.
    Header,
    /// The layout is not as the spec says.
    Layout,
    /// The index is not as the spec says.
    Index,
    /// A name in the index cannot be a path component.
    Path,
    /// A stored chunk does not match its digest or cannot be decoded.
    Chunk,
    /// An object does not match its id.
    Object,
    /// The input ends before the bundle does.
    Truncated,
    /// The input goes on after the bundle's end.
    Trailing,
    /// A version, section, codec or key type that this reader does not know.
    Unsupported,
    /// A declared size passes the reader's limits.
    Limit,
    /// A signature is malformed or does not verify.
    Signature,
    /// No sufficient number of trusted keys signed this name.
    Untrusted,
    /// A key that signed is revoked.
    Revoked,
    /// The bundle's expiry has passed.
    Expired,
    /// The version is below the floor that this device committed.
    Downgrade,
    /// None of the bundle's compatible tags is this device's.
    Incompatible,
}

impl Kind {
    /// Returns the word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Layout => "layout",
            Self::Index => "index",
            Self::Path => "path",
            Self::Chunk => "chunk",
            Self::Object => "object",
            Self::Truncated => "truncated",
            Self::Trailing => "trailing",
            Self::Unsupported => "unsupported",
            Self::Limit => "limit",
            Self::Signature => "signature",
            Self::Untrusted => "untrusted",
            Self::Revoked => "revoked",
            Self::Expired => "expired",
            Self::Downgrade => "downgrade",
            Self::Incompatible => "incompatible",
        }
    }
}

impl core::fmt::Display for Kind {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.word())
    }
}
