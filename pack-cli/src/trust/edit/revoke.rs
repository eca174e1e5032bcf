//! `trust revoke`.

use std::path::PathBuf;

use sealift_format::num;
use sealift_verify::trust::{AllowedSigners, KeyId};

use super::file::Editing;
use super::{Files, GivenKey, parse_revoked};
use crate::Error;
use crate::trust::{TrustOptions, TrustPaths};

/// The magic of a binary list, and two of its section types (OpenSSH's PROTOCOL.krl).
const KRL: &[u8] = b"SSHKRL\n\0";
const EXPLICIT_KEY: u8 = 2;
const FINGERPRINT_SHA256: u8 = 5;

/// A key to revoke.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, clippy::large_enum_variant, reason = "a key or what names it; there is one")]
pub enum Withdrawn {
    /// The key itself.
    Key(GivenKey),
    /// Its fingerprint.
    Id(KeyId),
}

/// The result of a revocation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Revoked {
    /// The revocation list.
    pub path: PathBuf,
    /// The key.
    pub key: KeyId,
    /// The lines of the allowed signers that are no longer valid. They may stay.
    pub lines: Vec<usize>,
    /// Whether the key was revoked before, so that the list is unchanged.
    pub unchanged: bool,
}

/// Revokes a key: adds it to the revocation list in use, binary or text, or creates a text list.
///
/// # Errors
/// Returns an error if only its fingerprint is given, the list is text, which cannot hold fingerprints, and the
/// allowed signers do not contain the key; or if a file is malformed or cannot be read or written.
pub fn revoke_key(options: &TrustOptions, places: &TrustPaths, withdrawn: &Withdrawn) -> Result<Revoked, Error> {
    let files = Files::of(options, places)?;
    let signers = files.read_signers(options)?;
    let editing = Editing::open(&files.revoked)?;
    let list = parse_revoked(&files.revoked, editing.bytes())?;
    let (id, key) = match withdrawn {
        Withdrawn::Key(given) => (given.key.id(), Some(given.clone())),
        Withdrawn::Id(id) => (*id, listed(&signers, *id)),
    };
    let lines = signers.granting().filter(|line| line.key == id).map(|line| line.line).collect();
    if list.contains_id(id) || key.as_ref().is_some_and(|given| list.contains(&given.key)) {
        return Ok(Revoked { path: files.revoked, key: id, lines, unchanged: true });
    }
    let bytes = match key {
        Some(given) if editing.bytes().starts_with(KRL) => with_section(&editing, EXPLICIT_KEY, given.key.blob())?,
        None if editing.bytes().starts_with(KRL) => with_section(&editing, FINGERPRINT_SHA256, id.as_bytes())?,
        Some(given) => editing.with_line(&given.line()),
        None => {
            return Err(Error::UnlistedKey { path: files.signers.clone(), id });
        }
    };
    parse_revoked(&files.revoked, &bytes)?;
    editing.replace(&bytes)?;
    Ok(Revoked { path: files.revoked, key: id, lines, unchanged: false })
}

/// Returns the key with a fingerprint, if a line of the allowed signers contains it.
fn listed(signers: &AllowedSigners, id: KeyId) -> Option<GivenKey> {
    let line = signers.lines().iter().find(|line| line.key == id)?;
    Some(GivenKey { key: line.public_key.clone()?, comment: line.comment.clone() })
}

/// Returns a binary list with one more entry. Sections may come in any order, and may repeat.
fn with_section(editing: &Editing, kind: u8, entry: &[u8]) -> Result<Vec<u8>, Error> {
    const WHAT: &str = "the length of a key";
    let lens: [u32; 2] = [num::fit(entry.len() + 4, WHAT)?, num::fit(entry.len(), WHAT)?];
    let mut bytes = editing.bytes().to_vec();
    bytes.push(kind);
    bytes.extend(lens.iter().flat_map(|len| len.to_be_bytes()));
    bytes.extend_from_slice(entry);
    Ok(bytes)
}
