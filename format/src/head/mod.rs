//! The head: preamble, root and signature area (core 3 to 5).

mod root;

use alloc::vec::Vec;

use crate::area::{self, Envelope};

use crate::num::{at, fit, wide};
use crate::{Error, Preamble};

pub use root::{Contents, Identity, Maxima, Root, RootBase, RootBases};

/// The head of a bundle. It is well-formed, but not necessarily trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    signed: Vec<u8>,
    root: Root,
    area_len: u32,
    /// The signature area's bytes.
    area: Vec<u8>,
}

/// The signature area grows by multiples of this number of bytes, so that what follows moves by whole blocks of a file system.
const GROWTH: u32 = 4096;

impl Head {
    /// The length in bytes of the longest head.
    pub const LEN_MAX: u32 = Preamble::LEN + Preamble::ROOT_LEN_MAX + area::LEN_MAX;

    /// Returns the length of the head with which `bytes` begin or, if they are too short to tell, the length that is needed to learn more.
    ///
    /// # Errors
    /// Returns an error if preamble or the signature area's length do not conform to core 3 and 5.
    pub(crate) fn len_from(bytes: &[u8]) -> Result<u32, Error> {
        let preamble = Preamble::parse(bytes.get(..32).unwrap_or(bytes))?;
        let signed_len = preamble.signed_len();
        match bytes.get(at(signed_len)..).and_then(|area| area.first_chunk()) {
            Some(len) => Ok(signed_len + area::parse_area_len(*len)?),
            None => Ok(signed_len + area::LEN_LEN),
        }
    }

    /// Parses the bytes from the file's start to the head's end.
    ///
    /// # Errors
    /// Returns an error if they do not conform to core 3 to 5.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let expected = Self::len_from(bytes)?;
        if bytes.len() < at(expected) {
            return Err(Error::Truncated { len: wide(bytes.len()), expected: None });
        }
        if bytes.len() > at(expected) {
            return Err(Error::Trailing { expected: expected.into() });
        }
        let (signed, area) = bytes.split_at(at(Preamble::parse(&bytes[..32])?.signed_len()));
        let root = Root::parse(&signed[32..])?;
        area::check_area(signed, area)?;
        let area_len = fit(area.len(), "the length of the signature area")?;
        Ok(Self { signed: signed.to_vec(), root, area_len, area: area.to_vec() })
    }

    /// Parses the head with which `bytes` begin, and returns what follows it.
    ///
    /// # Errors
    /// Returns the errors of [`Head::parse`].
    pub fn parse_first(bytes: &[u8]) -> Result<(Self, &[u8]), Error> {
        let len = at(Self::len_from(bytes)?);
        let (head, rest) = bytes.split_at(len.min(bytes.len()));
        Ok((Self::parse(head)?, rest))
    }

    /// Returns the head of a new bundle, with a signature area of at least `area_len` bytes.
    ///
    /// # Errors
    /// Returns an error if the root or the envelopes are longer than the format allows.
    pub fn new(root: Root, envelopes: Vec<Envelope>, area_len: u32) -> Result<Self, Error> {
        let encoded = root.encode()?;
        let root_len = fit(encoded.len(), "the length of the root")?;
        let preamble = Preamble { root_len };
        let mut signed = preamble.encode().to_vec();
        // Nothing is written that the parser would refuse.
        Preamble::parse(&signed)?;
        signed.extend(encoded);
        let area_len = area_len.max(area::area_len_for(&[])?);
        area::parse_area_len(area_len.to_le_bytes())?;
        Self { signed, root, area_len, area: Vec::new() }.with_envelopes(envelopes)
    }

    /// Returns the same head with other envelopes, which are put in order. If the signature area has no room for them, it grows.
    ///
    /// # Errors
    /// Returns an error if they need a longer area than the format allows.
    pub fn with_envelopes(mut self, mut envelopes: Vec<Envelope>) -> Result<Self, Error> {
        envelopes.sort();
        envelopes.dedup();
        let needed = area::area_len_for(&envelopes)?;
        let lacking = needed.saturating_sub(self.area_len);
        self.area_len = (self.area_len + lacking.next_multiple_of(GROWTH)).min(area::LEN_MAX);
        self.area = area::encode_area(&self.signed, &envelopes, self.area_len)?;
        Ok(self)
    }

    /// Returns the bytes from the file's start to the head's end.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        [&self.signed[..], &self.area].concat()
    }

    /// Returns the length of the signature area.
    #[must_use]
    pub fn area_len(&self) -> u32 {
        self.area_len
    }

    /// Returns the length of the whole head.
    #[must_use]
    pub fn head_len(&self) -> u64 {
        wide(self.signed.len()) + u64::from(self.area_len)
    }

    /// Returns the signed bytes: preamble and root.
    #[must_use]
    pub fn signed(&self) -> &[u8] {
        &self.signed
    }

    /// Returns the BLAKE3 digest of the signed bytes (trust 2), which names the bundle whoever signs it.
    #[must_use]
    pub fn root_digest(&self) -> [u8; 32] {
        *blake3::hash(&self.signed).as_bytes()
    }

    /// Returns the root.
    #[must_use]
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// Returns kind and body of each envelope of the signature area, in their order.
    pub fn envelopes(&self) -> impl Iterator<Item = (u16, &[u8])> {
        area::envelopes(&self.area)
    }

    /// Returns the bodies of the envelopes of one kind, in their order.
    pub fn bodies(&self, kind: u16) -> impl Iterator<Item = &[u8]> {
        self.envelopes().filter(move |(own, _)| *own == kind).map(|(_, body)| body)
    }

    /// Returns where the first chunk begins, in bytes from the file's start.
    #[must_use]
    pub fn chunks_at(&self) -> u64 {
        let contents = &self.root.contents;
        self.head_len().saturating_add(contents.layout_stored).saturating_add(contents.index_stored)
    }

    /// Returns the whole file's length.
    #[must_use]
    pub fn file_len(&self) -> u64 {
        self.chunks_at().saturating_add(self.root.maxima.chunks_stored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_root_and_the_longest_area_make_the_longest_head() {
        let preamble = Preamble { root_len: Preamble::ROOT_LEN_MAX };
        let mut bytes = preamble.encode().to_vec();
        bytes.resize(at(preamble.signed_len()), 0);
        bytes.extend(area::LEN_MAX.to_le_bytes());
        assert_eq!(Head::len_from(&bytes), Ok(Head::LEN_MAX));
    }
}
