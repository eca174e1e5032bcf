//! The report of `trust list`.

use std::path::PathBuf;

use sealift_verify::trust::{FloorRecord, KeyId, Now, SignerLine};

/// Everything that this device judges by.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TrustReport {
    /// Where the allowed signers are, or would be.
    pub signers_path: Option<PathBuf>,
    /// The lines that allow a key to sign; `None` if there is no file.
    pub signers: Option<Vec<SignerLine>>,
    /// Where the revocation list is, or would be.
    pub revoked_path: Option<PathBuf>,
    /// Revoked keys that the list names by more than SHA-1.
    pub revoked: Vec<KeyId>,
    /// The number of revoked keys.
    pub revoked_count: usize,
    /// Where the thresholds are, or would be; `None` if flags gave them.
    pub thresholds_path: Option<PathBuf>,
    /// The number of keys required: for names that match a pattern, and for all others.
    pub thresholds: Vec<(Option<String>, usize)>,
    /// Where the device's tags are, or would be; `None` if flags gave them.
    pub compatible_path: Option<PathBuf>,
    /// The device's compatibility tags; `None` if not configured.
    pub compatible: Option<Vec<String>>,
    /// The user's files that do not count because no `allowed_signers` is beside them.
    pub passed_over: Vec<PathBuf>,
    /// Where the state is.
    pub state: PathBuf,
    /// What was committed, by name.
    pub floors: Vec<FloorReport>,
    /// The moment at which bundles are judged. Unless `--time` is given, it is later for a name of which a bundle with a later `created` was
    /// installed.
    pub now: Now,
}

/// The floor of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FloorReport {
    /// The bundle's name.
    pub name: String,
    /// The lowest version that is accepted; `None` if revocation withdrew everything committed.
    pub version: Option<u64>,
    /// The newest `created` that counts for this name.
    pub newest_created: Option<i64>,
    /// What was committed, and under which keys.
    pub records: Vec<FloorRecord>,
}
