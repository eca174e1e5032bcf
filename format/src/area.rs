//! The signature area (spec 5).

use alloc::vec::Vec;

use crate::bytes::Reader;
use crate::num::{self, wide};
use crate::{Error, Part};

/// One typed body of the signature area.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Envelope {
    /// What the body is; 0 is not an envelope.
    pub kind: u16,
    /// Its bytes.
    pub body: Vec<u8>,
}

impl Envelope {
    /// A binary SSHSIG (spec 9).
    pub const SSH_SIGNATURE: u16 = 1;
    /// A PKCS#7 signature of the index, for the kernel (spec 5.1).
    pub const KERNEL_SIGNATURE: u16 = 2;

    /// Bytes that it takes in the area.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        6 + self.body.len()
    }
}

/// Bytes of an area beside its envelopes: the end mark and the closing BLAKE3.
const OVERHEAD: usize = 2 + 32;

/// Parses a signature area. `signed` are the bytes before it.
///
/// # Errors
/// Returns an error if it does not conform to spec 5.
pub fn parse_area(signed: &[u8], area: &[u8]) -> Result<Vec<Envelope>, Error> {
    let mut reader = Reader::new(Part::SignatureArea, area);
    let Some(body_len) = area.len().checked_sub(32) else {
        return Err(reader.malformed("it is shorter than its BLAKE3"));
    };
    let body = reader.take(body_len)?;
    if reader.array::<32>()? != checksum(signed, body) {
        return Err(Error::Digest { part: Part::SignatureArea });
    }
    let mut reader = Reader::new(Part::SignatureArea, body);
    let mut envelopes: Vec<Envelope> = Vec::new();
    loop {
        let kind = reader.u16()?;
        if kind == 0 {
            break;
        }
        let len = num::at(reader.u32()?);
        let envelope = Envelope { kind, body: reader.take(len)?.to_vec() };
        if envelopes.last().is_some_and(|last| *last >= envelope) {
            return Err(reader.malformed("envelopes do not ascend"));
        }
        envelopes.push(envelope);
    }
    if reader.rest().iter().any(|byte| *byte != 0) {
        return Err(reader.malformed("the fill after the envelopes is not zero"));
    }
    Ok(envelopes)
}

/// Returns the area of `area_len` bytes that follows `signed` and holds `envelopes`, which are put in
/// order, equal ones once.
///
/// # Errors
/// Returns an error if they need more than `area_len` bytes: the error says how many.
pub fn encode_area(signed: &[u8], envelopes: &[Envelope], area_len: u32) -> Result<Vec<u8>, Error> {
    let mut envelopes: Vec<&Envelope> = envelopes.iter().collect();
    envelopes.sort();
    envelopes.dedup();
    let needed = OVERHEAD + envelopes.iter().map(|envelope| envelope.encoded_len()).sum::<usize>();
    let room = num::at(area_len);
    if needed > room {
        return Err(Error::Limit {
            what: "the signature area's needed length",
            declared: wide(needed),
            limit: area_len.into(),
        });
    }
    let mut area = Vec::with_capacity(room);
    for envelope in envelopes {
        area.extend(envelope.kind.to_le_bytes());
        area.extend(u32::try_from(envelope.body.len()).unwrap_or(u32::MAX).to_le_bytes());
        area.extend(&envelope.body);
    }
    area.resize(room - 32, 0);
    let checksum = checksum(signed, &area);
    area.extend(checksum);
    Ok(area)
}

/// Bytes of the smallest area that holds `envelopes`.
#[must_use]
pub fn area_len_for(envelopes: &[Envelope]) -> usize {
    OVERHEAD + envelopes.iter().map(Envelope::encoded_len).sum::<usize>()
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
        let area = encode_area(b"signed", &envelopes, 80).expect("there is room");
        assert_eq!(parse_area(b"signed", &area).expect("it is sound"), envelopes);
        for at in 0..area.len() {
            let mut bad = area.clone();
            bad[at] ^= 1;
            parse_area(b"signed", &bad).expect_err("a flip");
        }
        parse_area(b"sighed", &area).expect_err("another root");
    }

    #[test]
    fn too_little_room_is_said() {
        let envelopes = [Envelope { kind: 1, body: alloc::vec![0; 100] }];
        let error = encode_area(b"", &envelopes, 139).expect_err("one byte is missing");
        assert!(matches!(error, Error::Limit { declared: 140, limit: 139, .. }));
        encode_area(b"", &envelopes, 140).expect("it fits");
    }
}
