//! Who signed a bundle, in each line of JSON about one that was accepted.

use sealift::trust::Verdict;
use serde::Serialize;

use super::signature::JsonSignature;

/// The signatures of a bundle that a reader of the line wants to know.
#[derive(Serialize)]
pub(crate) struct Signers {
    /// The trusted keys that signed.
    signers: Vec<String>,
    /// Those that this version cannot check.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unknown_signatures: Vec<JsonSignature>,
}

impl Signers {
    pub(crate) fn of(verdict: Option<&Verdict>) -> Self {
        let signers = verdict.iter().flat_map(|verdict| &verdict.signers);
        let unknown = verdict.iter().flat_map(|verdict| &verdict.others).filter(|other| other.unknown().is_some());
        Self {
            signers: signers.map(|signer| signer.key.to_string()).collect(),
            unknown_signatures: unknown.map(JsonSignature::of).collect(),
        }
    }
}
