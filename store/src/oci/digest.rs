//! The digest of a file of an image, by which it is named.

use std::fmt;

use sealift_format::{hex, unhex};

/// A SHA-256 digest, written `sha256:` and 64 digits. The standard registers SHA-512 as well, which no tool uses for layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Digest(pub(crate) [u8; 32]);

impl Digest {
    /// Parses `sha256:HEX` with lower-case digits.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::of_hex(text.strip_prefix("sha256:")?)
    }

    /// Parses 64 lower-case digits.
    pub(crate) fn of_hex(digits: &str) -> Option<Self> {
        let is_lower = digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        unhex(digits).filter(|_| is_lower)?.try_into().ok().map(Self)
    }

    /// Returns its digits: the name of its file.
    pub(crate) fn digits(self) -> String {
        hex(&self.0)
    }

    /// Returns where its file is in a layout.
    pub(crate) fn path(self) -> String {
        format!("blobs/sha256/{}", self.digits())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", hex(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sha256_in_lower_case_is_a_digest() {
        let digits = "0123456789abcdef".repeat(4);
        let good = Digest::parse(&format!("sha256:{digits}")).expect("a digest");
        assert_eq!((good.to_string(), good.path()), (format!("sha256:{digits}"), format!("blobs/sha256/{digits}")));
        let upper = digits.to_uppercase();
        for bad in ["", "sha256:", "sha256:../../../etc/passwd", "/etc/passwd", &digits, &format!("sha512:{digits}")] {
            assert_eq!(Digest::parse(bad), None, "{bad}");
        }
        for bad in [format!("sha256:{upper}"), format!("sha256:{digits}0"), format!("sha256:{}", &digits[1..])] {
            assert_eq!(Digest::parse(&bad), None, "{bad}");
        }
    }
}
