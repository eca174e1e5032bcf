//! Lists of Ed25519 keys as libostree reads them: base64, one per line.

use std::path::Path;

/// An Ed25519 key.
pub(super) type Key = [u8; 32];

/// The keys of a file. Other lines, such as comments, are ignored.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct KeyList {
    pub(super) keys: Vec<Key>,
    /// The number, from 1, of the first empty line: libostree rejects a file of trusted keys that has one.
    pub(super) empty: Option<usize>,
}

impl KeyList {
    /// Reads a file of keys.
    ///
    /// # Errors
    /// Returns an error if it is not a regular file or cannot be read.
    pub(super) fn read(path: &Path) -> std::io::Result<Self> {
        // Links are followed, as in libostree; a fifo, on which opening would block, is not opened.
        if std::fs::metadata(path)?.is_file() {
            Ok(Self::parse(&std::fs::read(path)?))
        } else {
            Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "it is not a regular file"))
        }
    }

    fn parse(text: &[u8]) -> Self {
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        let mut list = Self::default();
        if text.is_empty() {
            return list;
        }
        for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
            if line.is_empty() {
                list.empty.get_or_insert(number + 1);
            }
            list.keys.extend(key(line));
        }
        list
    }
}

/// Returns the key that a line holds, if any.
///
/// Follows GLib's lax rules, since a key that is revoked there must be revoked here: characters outside the alphabet are skipped, and so is an
/// incomplete group of four.
pub(super) fn key(line: &[u8]) -> Option<Key> {
    let sextets: Vec<Option<u8>> = line.iter().filter_map(|byte| sextet(*byte)).collect();
    let mut bytes = Vec::new();
    for four in sextets.chunks_exact(4) {
        let value = four.iter().fold(0_u32, |value, sextet| value << 6 | u32::from(sextet.unwrap_or(0)));
        let [_, first, second, third] = value.to_be_bytes();
        bytes.push(first);
        bytes.extend(four[2].map(|_| second));
        bytes.extend(four[3].map(|_| third));
    }
    bytes.try_into().ok()
}

/// Returns the value of a base64 character; `=` has no value but takes a position.
fn sextet(byte: u8) -> Option<Option<u8>> {
    match byte {
        b'A'..=b'Z' => Some(Some(byte - b'A')),
        b'a'..=b'z' => Some(Some(byte - b'a' + 26)),
        b'0'..=b'9' => Some(Some(byte - b'0' + 52)),
        b'+' => Some(Some(62)),
        b'/' => Some(Some(63)),
        b'=' => Some(None),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use base64ct::{Base64, Encoding as _};
    use proptest::prelude::*;

    use super::*;

    const A: Key = [7; 32];
    const B: Key = [0xfb; 32];

    #[test]
    fn lists() {
        let [a, b] = [A, B].map(|key| Base64::encode_string(&key));
        let keys = |text: &str| KeyList::parse(text.as_bytes());
        let list = |keys: &[Key]| KeyList { keys: keys.to_vec(), ..KeyList::default() };
        assert_eq!(keys(""), list(&[]));
        assert_eq!(keys(&a), list(&[A]));
        assert_eq!(keys(&format!("{a}\n{b}\n")), list(&[A, B]));
        let short = &b[..40];
        assert_eq!(keys(&format!("# of the desk\n{a}\r\n not/base64!\n{short}\n{a}{b}\n  {b}\n")), list(&[A, B]));
        let gap = KeyList { keys: vec![A, B], empty: Some(2) };
        assert_eq!(keys(&format!("{a}\n\n{b}\n\n")), gap);
        assert_eq!(keys(&format!("{a}\n\n")).empty, Some(2));
    }

    proptest! {
        #[test]
        fn base64_comes_back(bytes: Vec<u8>, good: [u8; 32]) {
            prop_assert_eq!(key(Base64::encode_string(&good).as_bytes()), Some(good));
            prop_assert_eq!(key(Base64::encode_string(&bytes).as_bytes()), bytes.try_into().ok());
        }

        #[test]
        fn any_line_is_a_key_or_none(line: Vec<u8>) {
            let _ = key(&line);
        }
    }
}
