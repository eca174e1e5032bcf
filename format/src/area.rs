//! The signature area (core 5).

use alloc::vec::Vec;

use crate::bytes::Reader;
use crate::num::{self, fit, wide};
use crate::{Error, Part};

/// One typed body of the signature area.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Envelope {
    /// The kind of the body; 0 marks the end of the envelopes.
    pub kind: u16,
    /// Its bytes.
    pub body: Vec<u8>,
}

impl Envelope {
    /// A binary SSHSIG (trust 3).
    pub const SSH_SIGNATURE: u16 = 1;
    /// A PKCS#7 signature of the index, for the kernel (kernel-signatures 3).
    pub const KERNEL_SIGNATURE: u16 = 2;

    /// Returns the bytes that it takes in the area.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        6 + self.body.len()
    }
}

impl From<(u16, &[u8])> for Envelope {
    /// Copies kind and body.
    fn from((kind, body): (u16, &[u8])) -> Self {
        Self { kind, body: body.to_vec() }
    }
}

/// Bytes of an area without its envelopes: its length, the end mark and the closing BLAKE3.
const OVERHEAD: usize = 4 + 2 + 32;
/// Bytes of the field at the start of an area that states its length.
pub(crate) const LEN_LEN: u32 = 4;
/// The length in bytes of the shortest area.
const LEN_MIN: u32 = 64;
/// The length in bytes of the longest area.
pub(crate) const LEN_MAX: u32 = 1_048_576;

/// Returns the length of an area from its first bytes, which state it.
///
/// # Errors
/// Returns an error if it is not between [`LEN_MIN`] and [`LEN_MAX`].
pub(crate) fn parse_area_len(bytes: [u8; 4]) -> Result<u32, Error> {
    let len = u32::from_le_bytes(bytes);
    match (LEN_MIN..=LEN_MAX).contains(&len) {
        true => Ok(len),
        false => Err(Reader::new(Part::SignatureArea, &bytes).malformed("its length is not between 64 and 1048576")),
    }
}

/// Checks a signature area. `signed` are the bytes before it.
///
/// # Errors
/// Returns an error if it does not conform to core 5.
pub(crate) fn check_area(signed: &[u8], area: &[u8]) -> Result<(), Error> {
    let mut reader = Reader::new(Part::SignatureArea, area);
    let Some(body_len) = area.len().checked_sub(32) else {
        return Err(reader.malformed("it is shorter than its BLAKE3"));
    };
    let body = reader.take(body_len)?;
    if reader.array::<32>()? != checksum(signed, body) {
        return Err(Error::Digest { part: Part::SignatureArea });
    }
    let mut reader = Reader::new(Part::SignatureArea, body);
    if num::at(parse_area_len(reader.array()?)?) != area.len() {
        return Err(reader.malformed("its length does not match its header"));
    }
    let mut last = None;
    while let Some(envelope) = next_envelope(&mut reader)? {
        if last.is_some_and(|last| last >= envelope) {
            return Err(reader.malformed("envelopes do not ascend"));
        }
        last = Some(envelope);
    }
    if reader.rest().iter().any(|byte| *byte != 0) {
        return Err(reader.malformed("the fill after the envelopes is not zero"));
    }
    Ok(())
}

/// Returns kind and body of each envelope of an area that was checked. There may be a hundred thousand: they stay where they are.
pub(crate) fn envelopes(area: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut reader = Reader::new(Part::SignatureArea, area.get(num::at(LEN_LEN)..).unwrap_or_default());
    core::iter::from_fn(move || next_envelope(&mut reader).ok().flatten())
}

/// Reads kind and body of an envelope; `None` at the end mark.
fn next_envelope<'a>(reader: &mut Reader<'a>) -> Result<Option<(u16, &'a [u8])>, Error> {
    let kind = reader.u16()?;
    if kind == 0 {
        return Ok(None);
    }
    let len = num::at(reader.u32()?);
    Ok(Some((kind, reader.take(len)?)))
}

/// Returns the area of `area_len` bytes that follows `signed` and holds `envelopes`, which are in order and fit into it.
///
/// # Errors
/// Returns an error if an envelope is longer than the format can store.
pub(crate) fn encode_area(signed: &[u8], envelopes: &[Envelope], area_len: u32) -> Result<Vec<u8>, Error> {
    let room = num::at(area_len);
    let mut area = Vec::with_capacity(room);
    area.extend(area_len.to_le_bytes());
    for envelope in envelopes {
        area.extend(envelope.kind.to_le_bytes());
        area.extend(fit::<u32>(envelope.body.len(), "the length of a signature")?.to_le_bytes());
        area.extend(&envelope.body);
    }
    area.resize(room - 32, 0);
    let checksum = checksum(signed, &area);
    area.extend(checksum);
    Ok(area)
}

/// Returns the length of the smallest area that holds `envelopes`.
///
/// # Errors
/// Returns an error if they need more than an area can have.
pub fn area_len_for(envelopes: &[Envelope]) -> Result<u32, Error> {
    let needed = OVERHEAD + envelopes.iter().map(Envelope::encoded_len).sum::<usize>();
    let too_long =
        || Error::Limit { what: "the signature area's needed length", declared: wide(needed), limit: LEN_MAX.into() };
    let len = u32::try_from(needed).ok().filter(|len| *len <= LEN_MAX).ok_or_else(too_long)?;
    Ok(len.max(LEN_MIN))
}

fn checksum(signed: &[u8], body: &[u8]) -> [u8; 32] {
    *blake3::Hasher::new().update(signed).update(body).finalize().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flip_is_found() {
        let envelopes = [Envelope { kind: 1, body: alloc::vec![1, 2, 3] }];
        let area = encode_area(b"signed", &envelopes, 80).expect("it fits");
        check_area(b"signed", &area).expect("it is sound");
        assert!(super::envelopes(&area).eq([(1, &[1, 2, 3][..])]));
        for at in 0..area.len() {
            let mut bad = area.clone();
            bad[at] ^= 1;
            check_area(b"signed", &bad).expect_err("a flip");
        }
        check_area(b"sighed", &area).expect_err("another root");
    }

    #[test]
    fn the_longest_area_is_the_limit() {
        let envelopes = [Envelope { kind: 1, body: alloc::vec![0; 100] }];
        assert_eq!(area_len_for(&envelopes), Ok(4 + 106 + 2 + 32));
        assert_eq!(area_len_for(&[]), Ok(64));
        let many = alloc::vec![Envelope { kind: 1, body: alloc::vec![0; 1 << 19] }; 2];
        let error = area_len_for(&many).expect_err("it is too long");
        assert!(matches!(error, Error::Limit { declared: 1_048_626, limit: 1_048_576, .. }), "{error}");
    }
}
