//! What is wrong with an order profile, or with a file that one is imported from.

/// The place of a fault in a profile, or in a file that is imported as one, and the fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OrderFault {
    /// A line of a text.
    #[error("line {line}: {what}")]
    Line {
        /// The line's number, from 1.
        line: u64,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A range of a file, in a line of a profile.
    #[error("line {line}: range {range}: {what}")]
    Range {
        /// The line's number, from 1.
        line: u64,
        /// The range, as it is written; bytes that are not UTF-8 are replaced.
        range: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// An entry of a list whose entries end with zero bytes.
    #[error("path {number}: {what}")]
    Record {
        /// Its number, from 1.
        number: u64,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A record of a binary file.
    #[error("offset {offset}: {what}")]
    Offset {
        /// Where the record begins.
        offset: u64,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The file as a whole.
    #[error("{0}")]
    Whole(&'static str),
}
