//! One signature of a bundle, in words and in JSON.

use anstyle::Style;
use sealift::trust::{SignatureState, Standing};
use serde::Serialize;

use super::show::{BAD, GOOD, WARN};

/// Returns the result of a signature's check: a word, its style, and the reason.
pub(crate) fn outcome(state: &SignatureState) -> (&'static str, Style, String) {
    match &state.outcome {
        Ok(standing @ Standing::Trusted { .. }) => ("trusted", GOOD, standing.to_string()),
        Ok(standing @ Standing::Revoked { .. }) => ("revoked", BAD, standing.to_string()),
        Ok(standing) => ("unknown", WARN, standing.to_string()),
        Err(error) if error.unknown().is_some() => ("unsupported", WARN, format!("not counted: {error}")),
        Err(error) => ("invalid", BAD, error.to_string()),
    }
}

/// Returns the id and the type of the key that a signature names.
pub(crate) fn key_of(state: &SignatureState) -> Option<(String, String)> {
    let known = state.key.as_ref().map(|key| (key.id().to_string(), key.key_type().to_string()));
    known.or_else(|| state.unknown().map(|unknown| (unknown.key.to_string(), unknown.key_type.clone())))
}

/// A signature in JSON.
#[derive(Debug, Serialize)]
pub(crate) struct JsonSignature {
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_type: Option<String>,
    why: String,
}

impl JsonSignature {
    pub(crate) fn of(state: &SignatureState) -> Self {
        let (word, _, why) = outcome(state);
        let (key, key_type) = key_of(state).unzip();
        Self { state: word, key, key_type, why }
    }
}
