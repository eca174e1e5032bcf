//! The report that `trust list` shows.

use std::path::PathBuf;

use sealift_verify::trust::{FloorRecord, KeyId, Now, SignerLine};

/// Everything by which this device judges.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TrustReport {
    /// Where the allowed signers are, or would be.
    pub signers_path: Option<PathBuf>,
    /// The lines that let a key sign; `None` where there is no file.
    pub signers: Option<Vec<SignerLine>>,
    /// Where the revocation list is, or would be.
    pub revoked_path: Option<PathBuf>,
    /// Revoked keys, as far as the list names them by more than SHA-1.
    pub revoked: Vec<KeyId>,
    /// How many keys are revoked.
    pub revoked_count: usize,
    /// Where the thresholds are, or would be; `None` where flags gave them.
    pub thresholds_path: Option<PathBuf>,
    /// How many keys are needed: for names that match a pattern, and for all others.
    pub thresholds: Vec<(Option<String>, usize)>,
    /// Where the device's tags are, or would be; `None` where flags gave them.
    pub compatible_path: Option<PathBuf>,
    /// What the device answers to; `None` where nobody said.
    pub compatible: Option<Vec<String>>,
    /// The user's files that do not count, because there is no `allowed_signers` beside them.
    pub passed_over: Vec<PathBuf>,
    /// Where the state is.
    pub state: PathBuf,
    /// What was committed, by name.
    pub floors: Vec<FloorReport>,
    /// The moment of judgements, but for names of which a newer bundle was taken.
    pub now: Now,
}

/// The floor of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FloorReport {
    /// The bundle's name.
    pub name: String,
    /// The lowest version that is taken; `None` where revocation withdrew all that was.
    pub version: Option<u64>,
    /// The newest `created` that counts for this name.
    pub newest_created: Option<i64>,
    /// What was committed, under which keys.
    pub records: Vec<FloorRecord>,
}
