//! Why headers of a tar archive cannot be read.

/// Why a header or an extended header of a tar archive cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TarFault {
    /// A header is invalid.
    #[error("not a tar archive, or a damaged one: the checksum of a header is wrong")]
    Checksum,
    /// A number is malformed or out of range.
    #[error("not a tar archive, or a damaged one: the {field} is not a valid number")]
    Number {
        /// The number's field.
        field: &'static str,
    },
    /// An extended header is malformed.
    #[error("malformed extended header")]
    Pax,
    /// The list of a sparse file's segments is malformed.
    #[error("the map of a sparse file is malformed")]
    SparseMap,
}
