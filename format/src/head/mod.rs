//! Preamble, root and signature area as one (spec 3 to 5).

mod root;

use alloc::vec::Vec;

use crate::area::{Envelope, encode_area, parse_area};
use crate::num::{at, wide};
use crate::{Error, Preamble};

pub(crate) use root::compare;
pub use root::{Base, Bases, Contents, Identity, Maxima, Root};

/// The head of a bundle: sound in itself, trusted by nobody yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    signed: Vec<u8>,
    preamble: Preamble,
    root: Root,
    envelopes: Vec<Envelope>,
}

impl Head {
    /// Parses the bytes from the file's start to the head's end.
    ///
    /// # Errors
    /// Returns an error if they do not conform to spec 3 to 5.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let preamble = Preamble::parse(bytes.get(..32).unwrap_or(bytes))?;
        let (Some(signed), Some(area)) =
            (bytes.get(..at(preamble.signed_len())), bytes.get(at(preamble.signed_len())..at(preamble.head_len())))
        else {
            let (len, expected) = (wide(bytes.len()), preamble.head_len().into());
            return Err(Error::Truncated { len, expected });
        };
        if bytes.len() > at(preamble.head_len()) {
            return Err(Error::Trailing { expected: preamble.head_len().into() });
        }
        let root = Root::parse(&signed[32..])?;
        let envelopes = parse_area(signed, area)?;
        Ok(Self { signed: signed.to_vec(), preamble, root, envelopes })
    }

    /// Parses the head with which `bytes` begin, and returns what follows it.
    ///
    /// # Errors
    /// Returns the errors of [`Head::parse`].
    pub fn parse_first(bytes: &[u8]) -> Result<(Self, &[u8]), Error> {
        let preamble = Preamble::parse(bytes.get(..32).unwrap_or(bytes))?;
        let len = at(preamble.head_len());
        let (head, rest) = bytes.split_at(len.min(bytes.len()));
        Ok((Self::parse(head)?, rest))
    }

    /// Makes the head of a new bundle.
    ///
    /// # Errors
    /// Returns an error if the root or the envelopes are longer than the format allows.
    pub fn new(root: Root, envelopes: Vec<Envelope>, area_len: u32) -> Result<Self, Error> {
        let encoded = root.encode();
        let root_len = u32::try_from(encoded.len()).unwrap_or(u32::MAX);
        let preamble = Preamble { root_len, area_len };
        let mut signed = preamble.encode().to_vec();
        // What the parser refuses is not written.
        Preamble::parse(&signed)?;
        signed.extend(encoded);
        Self { signed, preamble, root, envelopes: Vec::new() }.with_envelopes(envelopes)
    }

    /// The same head with other envelopes, put in their order.
    ///
    /// # Errors
    /// Returns an error if the area has no room for them.
    pub fn with_envelopes(mut self, mut envelopes: Vec<Envelope>) -> Result<Self, Error> {
        encode_area(&self.signed, &envelopes, self.preamble.area_len)?;
        envelopes.sort();
        envelopes.dedup();
        self.envelopes = envelopes;
        Ok(self)
    }

    /// Returns the bytes from the file's start to the head's end.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.signed.clone();
        // The room was checked when the envelopes were set.
        bytes.extend(encode_area(&self.signed, &self.envelopes, self.preamble.area_len).unwrap_or_default());
        bytes
    }

    /// Returns the bytes that signatures are over: preamble and root.
    #[must_use]
    pub fn signed(&self) -> &[u8] {
        &self.signed
    }

    /// Returns the preamble.
    #[must_use]
    pub fn preamble(&self) -> &Preamble {
        &self.preamble
    }

    /// Returns the root.
    #[must_use]
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// Returns the envelopes of the signature area, in their order.
    #[must_use]
    pub fn envelopes(&self) -> &[Envelope] {
        &self.envelopes
    }

    /// Returns the bodies of the envelopes of one kind, in their order.
    pub fn bodies(&self, kind: u16) -> impl Iterator<Item = &[u8]> {
        self.envelopes.iter().filter(move |envelope| envelope.kind == kind).map(|envelope| &envelope.body[..])
    }

    /// Returns where the first chunk begins, in bytes from the file's start.
    #[must_use]
    pub fn chunks_at(&self) -> u64 {
        let contents = &self.root.contents;
        u64::from(self.preamble.head_len()).saturating_add(contents.layout_stored).saturating_add(contents.index_stored)
    }

    /// Returns the whole file's length.
    #[must_use]
    pub fn file_len(&self) -> u64 {
        self.chunks_at().saturating_add(self.root.maxima.chunks_stored)
    }
}
