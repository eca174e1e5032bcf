//! `trust export`.

use sealift_verify::trust::SignerLine;

use super::{Files, parse_signers, read};
use crate::Error;
use crate::trust::{TrustOptions, TrustPaths};

/// A valid line of the allowed signers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exported {
    /// The text of the line.
    pub text: String,
    /// The parsed line.
    pub signer: SignerLine,
}

/// Returns the lines of the allowed signers that let a key sign bundles, only those for `name` if given. Lines of revoked keys are omitted.
///
/// # Errors
/// Returns an error if there are no allowed signers, or if a file is malformed or cannot be read.
pub fn export_signers(options: &TrustOptions, places: &TrustPaths, name: Option<&str>) -> Result<Vec<Exported>, Error> {
    let files = Files::of(options, places)?;
    let bytes = read(&files.signers, true)?;
    let signers = parse_signers(&files.signers, &bytes)?;
    let revoked = files.read_revoked(options)?;
    let counts = |line: &&SignerLine| {
        name.is_none_or(|name| line.principals.matches(name))
            && line.public_key.as_ref().is_some_and(|key| !revoked.contains(key))
    };
    let texts: Vec<_> = bytes.split(|byte| *byte == b'\n').collect();
    let exported = |line: &SignerLine| {
        let text = texts.get(line.line.checked_sub(1)?)?;
        Some(Exported { text: String::from_utf8_lossy(text).trim().to_owned(), signer: line.clone() })
    };
    Ok(signers.granting().filter(counts).filter_map(exported).collect())
}
