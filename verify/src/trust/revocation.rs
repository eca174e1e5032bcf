//! The administrator's list of keys that no longer count, in the forms that
//! OpenSSH accepts: a binary KRL, or public keys, one per line.

use sha1::{Digest, Sha1};

use super::key_line::{self, KeyLine};
use super::{KeyError, KeyId, LineError, PublicKey, TrustFileError, krl};

/// Keys that do not count, whatever the allowed signers say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RevocationList {
    pub(super) ids: Vec<KeyId>,
    sha1s: Vec<[u8; 20]>,
}

impl RevocationList {
    /// Parses the file, whose first bytes tell which of the two forms it has.
    ///
    /// # Errors
    /// Returns an error if it is malformed, or has a part that this reader does not know.
    pub fn parse(file: &[u8]) -> Result<Self, TrustFileError> {
        if file.starts_with(krl::MAGIC) {
            let krl::Listed { ids, sha1s } = krl::parse(file).map_err(|error| TrustFileError::Krl(error.0))?;
            let mut list = Self { ids, sha1s };
            list.order();
            return Ok(list);
        }
        let mut list = Self::default();
        for (line, text) in key_line::content_lines(file) {
            let id = text.and_then(revoked_key).map_err(|problem| TrustFileError::Revocations { line, problem })?;
            list.ids.push(id);
        }
        list.order();
        Ok(list)
    }

    /// Sorts the keys, and removes duplicates.
    fn order(&mut self) {
        self.ids.sort_unstable();
        self.ids.dedup();
        self.sha1s.sort_unstable();
        self.sha1s.dedup();
    }

    /// Returns the ids of the keys, except of those that the list gives only by
    /// their SHA-1.
    pub fn ids(&self) -> impl Iterator<Item = KeyId> {
        self.ids.iter().copied()
    }

    /// Returns the number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ids.len() + self.sha1s.len()
    }

    /// Returns whether no key is revoked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the key is revoked.
    #[must_use]
    pub fn contains(&self, key: &PublicKey) -> bool {
        self.contains_id(key.id()) || self.sha1s.contains(&Sha1::digest(key.blob()).0)
    }

    /// Returns whether a key of which only the id is known is revoked. An entry
    /// that is only a SHA-1 (from a `sha1:` line given to `ssh-keygen -k`) cannot
    /// be compared with an id, and does not count.
    #[must_use]
    pub fn contains_id(&self, id: KeyId) -> bool {
        self.ids.contains(&id)
    }
}

fn revoked_key(text: &str) -> Result<KeyId, LineError> {
    let key = KeyLine::parse(text)?;
    match key.key {
        Err(error @ KeyError::Certificate(_)) => Err(error.into()),
        // A key that could not sign anyway may be listed as well.
        _ => Ok(key.id),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn text_lists_keys() {
        let [one, two] = [sample::key(1), sample::key(2)];
        let file = format!("# gone\n\n{} a b\n", sample::line(1));
        let list = RevocationList::parse(file.as_bytes()).expect("a good list");
        assert!(list.contains(&one));
        assert!(!list.contains(&two));
        assert_eq!(list.ids().collect::<Vec<_>>(), [one.id()]);
        assert_eq!(RevocationList::parse(b""), Ok(RevocationList::default()));
        // A short key cannot sign, but whoever lists it meant well.
        assert!(RevocationList::parse(b"ssh-dss AAAAB3NzaC1kc3M=").is_ok());
    }

    #[test]
    fn other_text_is_refused() {
        for file in ["x", "SSHKRL", "ssh-ed25519", "SHA256:abc", "- ssh-ed25519 AAAA"] {
            let refused = RevocationList::parse(format!("\n{file}").as_bytes());
            assert!(matches!(refused, Err(TrustFileError::Revocations { line: 2, .. })), "{file}");
        }
        assert!(matches!(RevocationList::parse(b"SSHKRL\n\0"), Err(TrustFileError::Krl(_))));
    }

    #[test]
    fn sha1_finds_a_key() {
        let key = sample::key(1);
        let mut list = RevocationList::default();
        list.sha1s.push(Sha1::digest(key.blob()).0);
        assert!(list.contains(&key));
        assert!(!list.contains_id(key.id()));
    }
}
