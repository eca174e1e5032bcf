//! `TYPE BASE64 [COMMENT]`, the end of each line in allowed signers and in revocation lists.

use super::wire::names_type;
use super::word::word;
use super::{KeyError, KeyId, LineError, PublicKey, armor};

const KEY_TYPES: &[&str] = &[
    "ssh-ed25519",
    "ssh-rsa",
    "ssh-dss",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
];

/// A key as a line states it, whether or not it is accepted for signing.
#[derive(Debug)]
pub(super) struct KeyLine<'a> {
    pub(super) id: KeyId,
    /// The key, or why its signatures cannot count.
    pub(super) key: Result<PublicKey, KeyError>,
    pub(super) comment: &'a str,
}

/// Returns whether a text begins with a key, and not with options: its first word is a key type, or the type that the second begins with.
pub(super) fn begins_with_key(text: &str) -> bool {
    let (key_type, rest) = word(text);
    let is_type_of =
        |base64: &str| armor::decode_base64(base64.as_bytes()).is_ok_and(|blob| names_type(&blob, key_type));
    KEY_TYPES.contains(&key_type)
        || key_type.as_bytes().windows(10).any(|part| part == b"-cert-v01@")
        || is_type_of(word(rest).0)
}

impl<'a> KeyLine<'a> {
    /// Parses what follows the principals and options.
    pub(super) fn parse(text: &'a str) -> Result<Self, LineError> {
        let (key_type, rest) = word(text);
        let (base64, comment) = word(rest);
        if key_type.is_empty() || base64.is_empty() {
            return Err(LineError::NoKey);
        }
        let blob = armor::decode_base64(base64.as_bytes()).map_err(|_| LineError::Base64)?;
        if !names_type(&blob, key_type) {
            return Err(LineError::TypeMismatch(key_type.into()));
        }
        let key = PublicKey::parse(&blob);
        match key {
            Err(error @ KeyError::Malformed(_)) => Err(error.into()),
            key => Ok(Self { id: KeyId::of_blob(&blob), key, comment: comment.trim() }),
        }
    }
}

/// Returns the numbered lines that are neither blank nor comments.
pub(super) fn content_lines(bytes: &[u8]) -> impl Iterator<Item = (usize, Result<&str, LineError>)> {
    let lines = bytes.split(|byte| *byte == b'\n').zip(1..);
    lines.filter_map(|(line, number)| match text(line, number) {
        Ok(text) if text.is_empty() || text.starts_with('#') => None,
        other => Some((number, other)),
    })
}

fn text(line: &[u8], number: usize) -> Result<&str, LineError> {
    if number == 1 && line.starts_with(b"\xef\xbb\xbf") {
        return Err(LineError::ByteOrderMark);
    }
    let text = core::str::from_utf8(line).map_err(|_| LineError::NotText)?;
    // OpenSSH stops reading a line at a NUL, so it would read a different line.
    if text.contains('\0') {
        return Err(LineError::NotText);
    }
    Ok(text.trim_matches([' ', '\t', '\r']))
}
