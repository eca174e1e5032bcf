//! `trust add`.

use std::path::PathBuf;

use sealift_verify::trust::{AllowedSigners, PatternList, RevocationList, SignerLine};

use super::file::Editing;
use super::{Files, GivenKey, parse_signers};
use crate::Error;
use crate::trust::{TrustOptions, TrustPaths};

/// The line that lets a key sign.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Added {
    /// The allowed signers.
    pub path: PathBuf,
    /// The line's number.
    pub line: usize,
    /// Whether the line was there before, so that the file is unchanged.
    pub unchanged: bool,
}

/// Lets a key sign the bundles of a name: adds a line to the allowed signers in use, or creates the file. If a line already says so, that one stays.
///
/// `names` is a name or a pattern, or a comma-separated list of them, as in ssh-keygen(1), ALLOWED SIGNERS.
///
/// # Errors
/// Returns an error if the key may already sign them for a limited time or is revoked, if `names` is invalid, or if a file is malformed or cannot be read or written.
pub fn add_signer(options: &TrustOptions, places: &TrustPaths, names: &str, given: &GivenKey) -> Result<Added, Error> {
    check_names(names)?;
    let files = Files::to_begin(options, places)?;
    let revoked = files.read_revoked(options)?;
    check_counts(&revoked, &files, given)?;
    let editing = Editing::open(&files.signers)?;
    let signers = parse_signers(&files.signers, editing.bytes())?;
    if let Some(line) = allowing(&signers, &files, names, given)? {
        return Ok(Added { path: files.signers, line, unchanged: true });
    }
    let bytes = editing.with_line(&format!("{names} namespaces=\"sealift\" {}", given.line()));
    let after = parse_signers(&files.signers, &bytes)?;
    let line = after.lines().last().map_or(0, |line| line.line);
    editing.replace(&bytes)?;
    Ok(Added { path: files.signers, line, unchanged: false })
}

fn check_names(names: &str) -> Result<(), Error> {
    let is_pattern = |pattern: &str| {
        let pattern = pattern.strip_prefix('!').unwrap_or(pattern);
        !pattern.is_empty() && pattern.chars().all(|char| char.is_ascii_alphanumeric() || "._+-*?".contains(char))
    };
    if !names.split(',').all(is_pattern) {
        return Err(Error::Usage(format!(
            "{names:?} is neither a name such as os, nor a pattern such as 'app-*', nor a comma-separated list of these"
        )));
    }
    if names.split(',').all(|pattern| pattern.starts_with('!')) {
        return Err(Error::Usage(format!("{names:?} only excludes names: allow some as well, as in '*,!os'")));
    }
    Ok(())
}

fn check_counts(revoked: &RevocationList, files: &Files, given: &GivenKey) -> Result<(), Error> {
    if revoked.contains(&given.key) {
        let (id, path) = (given.key.id(), files.revoked.display());
        return Err(Error::Usage(format!(
            "{id} is revoked by {path}: a line in the allowed signers would not make it count"
        )));
    }
    Ok(())
}

/// Returns the number of the line that already lets the key sign these names, if there is one.
fn allowing(signers: &AllowedSigners, files: &Files, names: &str, given: &GivenKey) -> Result<Option<usize>, Error> {
    let is_one_name = !names.contains([',', '*', '?', '!']);
    let has = |principals: &PatternList| principals.as_str() == names || is_one_name && principals.matches(names);
    let lines = signers.granting().filter(|line| line.key == given.key.id() && has(&line.principals));
    match lines.min_by_key(|line| has_window(line)) {
        Some(line) if has_window(line) => {
            let (number, path) = (line.line, files.signers.display());
            Err(Error::Usage(format!(
                "line {number} of {path} already allows this key to sign {names:?}, for a limited time: edit that line"
            )))
        }
        line => Ok(line.map(|line| line.line)),
    }
}

fn has_window(line: &SignerLine) -> bool {
    line.valid_after.is_some() || line.valid_before.is_some()
}
