//! Errors in the administrator's own files. They are not about a bundle, so they
//! have no [`Kind`](sealift_format::Kind).

use super::KeyError;

/// A trust file or setting that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TrustFileError {
    /// A line of the allowed signers is malformed.
    #[error("line {line} of the allowed signers: {problem}")]
    Signers {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        problem: LineError,
    },
    /// A line of a revocation list in text form is malformed.
    #[error("line {line} of the revocation list: {problem}")]
    Revocations {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        problem: LineError,
    },
    /// A revocation list in binary form is malformed.
    #[error("the key revocation list: {0}; recreate it with `ssh-keygen -k`")]
    Krl(&'static str),
    /// A line of the device's tags is malformed.
    #[error("line {line} of the compatible tags: {problem}")]
    Tags {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        problem: LineError,
    },
    /// A line of the thresholds is not text.
    #[error("line {line} of the thresholds: {problem}")]
    Thresholds {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        problem: LineError,
    },
    /// A threshold is malformed.
    #[error("the threshold {0:?} is neither N nor PATTERN=N with N from 1")]
    Threshold(String),
}

/// What is wrong with a line of a trust file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// It is not text.
    #[error("it is not valid UTF-8, or contains a NUL byte")]
    NotText,
    /// A byte order mark precedes the first line.
    #[error("it begins with a byte order mark; save the file as UTF-8 without one")]
    ByteOrderMark,
    /// A quotation mark is not closed.
    #[error("unclosed quotation mark")]
    Quote,
    /// Nothing follows the principals or the options.
    #[error("a key type and a key are missing")]
    NoKey,
    /// The key is not base64.
    #[error("the key is not base64")]
    Base64,
    /// The word before the key is not the key's type.
    #[error("the key is not of type {0:?}, the type given before it")]
    TypeMismatch(String),
    /// The key is refused.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// There is no such option.
    #[error(
        "{0:?} is neither a key type nor an option; the options are namespaces=\"...\", \
         valid-after=\"...\" and valid-before=\"...\""
    )]
    UnknownOption(String),
    /// An option has no value, or its value is not quoted.
    #[error("the option {0} needs one value in quotation marks")]
    OptionValue(&'static str),
    /// An option is given twice.
    #[error("the option {0} is given twice")]
    OptionTwice(&'static str),
    /// A time is malformed.
    #[error("{0:?} is not a time such as 20270131Z or 202701311200Z")]
    Time(String),
    /// The period of validity is empty.
    #[error("valid-before is not later than valid-after")]
    EmptyWindow,
    /// It is for a certificate authority.
    #[error("cert-authority is not supported, only each signer's own key")]
    CertAuthority,
    /// A tag is malformed.
    #[error("{0:?} is not a tag: a letter or digit, then letters, digits, '.', '_', '+' and '-'")]
    Tag(String),
}
