//! A public key, from a file or a line.

use std::io::Read;
use std::path::Path;

use sealift_verify::trust::PublicKey;

use crate::Error;

/// A larger file cannot be a single key.
const LEN_MAX: u64 = 1 << 20;

/// A public key with its comment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GivenKey {
    /// The key.
    pub key: PublicKey,
    /// The comment, which may be empty.
    pub comment: String,
}

impl GivenKey {
    /// Reads the key of a `.pub` file, which may contain comments.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, is a private key, or does not contain exactly one key that Sealift accepts.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let file = std::fs::File::open(path).map_err(|error| Error::io("read", path, error))?;
        Self::from_reader(file, path)
    }

    /// Does the same for a pipe, which messages call `name`.
    pub fn from_reader(reader: impl Read, name: &Path) -> Result<Self, Error> {
        let mut bytes = Vec::new();
        reader.take(LEN_MAX).read_to_end(&mut bytes).map_err(|error| Error::io("read", name, error))?;
        let text = String::from_utf8_lossy(&bytes);
        if text.contains("PRIVATE KEY-----") || text.starts_with("PuTTY-User-Key-File") {
            let public = name.display();
            return Err(Error::unexpected(name, format!("is a private key: give the public key, as in {public}.pub")));
        }
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        match (lines.next(), lines.next()) {
            (Some(line), None) => {
                Self::parse(line).map_err(|error| Error::unexpected(name, format!("is not a public key: {error}")))
            }
            (None, _) => Err(Error::unexpected(name, "contains no public key")),
            (Some(_), Some(_)) => Err(Error::unexpected(name, "contains several lines, not one public key")),
        }
    }

    /// Parses the line of a `.pub` file: type, base64 and a comment.
    ///
    /// # Errors
    /// Returns an error if the line is malformed, or if Sealift does not accept the key.
    pub fn parse(line: &str) -> Result<Self, Error> {
        let key = PublicKey::from_openssh(line).map_err(|error| Error::Usage(error.to_string()))?;
        let comment = line.split([' ', '\t']).filter(|word| !word.is_empty()).skip(2).collect::<Vec<_>>().join(" ");
        if comment.contains(char::is_control) {
            return Err(Error::Usage("the comment of the key contains control characters".to_owned()));
        }
        Ok(Self { key, comment })
    }

    /// Returns the key as a line of a `.pub` file.
    pub(super) fn line(&self) -> String {
        format!("{} {}", self.key.to_openssh(), self.comment).trim_end().to_owned()
    }
}
