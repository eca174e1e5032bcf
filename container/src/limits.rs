//! What taking a container apart may cost.

/// The limits within which a container is taken apart; beyond them it is opaque.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The bytes of tables that are read, and some for each further piece of work.
    pub work: u64,
    /// The memory in bytes, approximately, of the anatomy and of names on the way to it.
    pub memory: u64,
    /// The bytes to which streams are decoded whose end or length is not stated elsewhere, such as gzip files. Nothing of them is kept.
    pub decoded: u64,
}

impl Default for Limits {
    /// File systems and archives with millions of files stay below these.
    fn default() -> Self {
        Self { work: 4 << 30, memory: 1 << 30, decoded: 64 << 30 }
    }
}
