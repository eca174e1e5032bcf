//! The kinds of failure.

/// What is wrong with a bundle, in one word: the same in the vectors' `expect:`,
/// the CLI's `--json` and JavaScript's `error.code` (core 11.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// Preamble, root or signature area do not conform to the spec.
    Header,
    /// The layout does not conform to the spec.
    Layout,
    /// The index does not conform to the spec.
    Index,
    /// A name in the index cannot be a path component.
    Path,
    /// A stored chunk does not match its digest or cannot be decoded.
    Chunk,
    /// An object does not match its id.
    Object,
    /// A base of a delta bundle is missing, or is another one.
    Base,
    /// The input ends before the bundle does.
    Truncated,
    /// The input continues after the bundle's end.
    Trailing,
    /// This reader does not know a version, section, codec or key type.
    Unsupported,
    /// A declared size exceeds the reader's limits.
    Limit,
    /// A signature is malformed or does not verify.
    Signature,
    /// Too few keys that are trusted for the bundle's name signed it.
    Untrusted,
    /// A key that signed is revoked.
    Revoked,
    /// The bundle has expired.
    Expired,
    /// The version is below this device's floor.
    Downgrade,
    /// None of the bundle's compatible tags is this device's.
    Incompatible,
}

impl Kind {
    /// Returns the word for this kind.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Layout => "layout",
            Self::Index => "index",
            Self::Path => "path",
            Self::Chunk => "chunk",
            Self::Object => "object",
            Self::Base => "base",
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
