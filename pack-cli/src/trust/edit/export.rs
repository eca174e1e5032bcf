//! `trust export`.

use sealift_verify::trust::SignerLine;

use super::{Files, parse_signers, read};
use crate::Error;
use crate::trust::{Places, TrustOptions};

/// A line of the allowed signers that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exported {
    /// As it stands in the file.
    pub text: String,
    /// What it says.
    pub signer: SignerLine,
}

/// Returns the lines of the allowed signers that let a key sign bundles, those of `name` if one is given; none of keys that are revoked.
///
/// # Errors
/// There are no allowed signers, or a file is malformed or cannot be read.
pub fn export_signers(options: &TrustOptions, places: &Places, name: Option<&str>) -> Result<Vec<Exported>, Error> {
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
