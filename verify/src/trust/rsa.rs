//! Verification of RSA signatures: RSASSA-PKCS1-v1_5 with SHA-2
//! (RFC 8017, section 8.2.2; RFC 8332).
//!
//! The signature is raised to the public exponent and compared with the only
//! valid encoding of this message. Nothing in it is parsed: forgeries against
//! PKCS #1 exploited that. Private RSA keys stay in ssh-agent: this code holds
//! no secret that it could leak.

use sha2::{Digest, Sha256, Sha512};

use super::KeyError;
use super::power::power;
use super::wire::{Malformed, Reader};
use sealift_format::num;

const MIN_BITS: usize = 3072;
/// OpenSSH's own limit. Longer keys would only take a reader's time.
const MAX_BITS: usize = 16384;

/// The DER of `DigestInfo` before the hash (RFC 8017, section 9.2, note 1).
const SHA256_INFO: [u8; 19] =
    [0x30, 0x31, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01, 0x05, 0x00, 0x04, 0x20];
const SHA512_INFO: [u8; 19] =
    [0x30, 0x51, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x03, 0x05, 0x00, 0x04, 0x40];

/// An odd modulus of 3072 to 16384 bits, and an odd exponent of at most 32 bits.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct RsaPublicKey {
    modulus: Vec<u8>,
    exponent: u32,
}

/// The hash algorithm of an RSA signature.
#[derive(Clone, Copy)]
pub(super) enum RsaHash {
    Sha256,
    Sha512,
}

impl RsaPublicKey {
    /// Reads `mpint e, mpint n`.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, KeyError> {
        let exponent = reader.positive_mpint()?;
        let modulus = reader.positive_mpint()?;
        // The form is checked before the length: only a well-formed key can have an unsupported length.
        if !reader.is_empty() {
            return Err(Malformed("bytes follow its end").into());
        }
        let bits = bit_len(modulus);
        if !(MIN_BITS..=MAX_BITS).contains(&bits) {
            return Err(KeyError::RsaBits { bits });
        }
        if modulus.last().is_none_or(|byte| byte & 1 == 0) {
            return Err(KeyError::Malformed("an RSA modulus is even"));
        }
        if exponent.len() > 4 {
            return Err(KeyError::Malformed("an RSA exponent is longer than 32 bits"));
        }
        let exponent = exponent.iter().fold(0, |number: u32, byte| (number << 8) | u32::from(*byte));
        if exponent < 3 || exponent & 1 == 0 {
            return Err(Malformed("an RSA exponent is even or 1").into());
        }
        Ok(Self { modulus: modulus.to_vec(), exponent })
    }

    /// Returns whether `signature` is valid for `message`.
    pub(super) fn verifies(&self, hash: RsaHash, message: &[u8], signature: &[u8]) -> bool {
        self.encoding(hash, message)
            .is_some_and(|expected| self.raise(signature).is_some_and(|found| found == expected))
    }

    /// Returns the encoding EMSA-PKCS1-v1_5, with the leading zero.
    fn encoding(&self, hash: RsaHash, message: &[u8]) -> Option<Vec<u8>> {
        let mut tail = vec![0];
        match hash {
            RsaHash::Sha256 => {
                tail.extend(SHA256_INFO);
                tail.extend(Sha256::digest(message));
            }
            RsaHash::Sha512 => {
                tail.extend(SHA512_INFO);
                tail.extend(Sha512::digest(message));
            }
        }
        let mut encoding = vec![0xff; self.modulus.len().checked_sub(tail.len())?];
        *encoding.get_mut(0)? = 0;
        *encoding.get_mut(1)? = 1;
        encoding.extend(tail);
        Some(encoding)
    }

    /// Returns `signature` to the power of the exponent, with the length of the modulus.
    fn raise(&self, signature: &[u8]) -> Option<Vec<u8>> {
        // A number that is not less than the modulus would be a second signature for the same message.
        if signature.len() != self.modulus.len() || signature >= self.modulus.as_slice() {
            return None;
        }
        power(signature, self.exponent, &self.modulus)
    }
}

fn bit_len(number: &[u8]) -> usize {
    let first = number.first().map_or(0, |byte| byte.leading_zeros());
    number.len().saturating_mul(8).saturating_sub(num::at(first))
}

#[cfg(test)]
mod tests {
    use super::super::wire::put_mpint;
    use super::*;

    fn read(exponent: &[u8], modulus: &[u8]) -> Result<RsaPublicKey, KeyError> {
        let mut blob = Vec::new();
        put_mpint(&mut blob, exponent);
        put_mpint(&mut blob, modulus);
        RsaPublicKey::read(&mut Reader::new(&blob))
    }

    #[test]
    fn lengths_are_held_to() {
        let key = |bytes| read(&[1, 0, 1], &vec![0xff; bytes]);
        assert!(matches!(key(256), Err(KeyError::RsaBits { bits: 2048 })));
        assert!(matches!(key(383), Err(KeyError::RsaBits { bits: 3064 })));
        assert!(key(384).is_ok());
        assert!(key(2048).is_ok());
        assert!(matches!(key(2049), Err(KeyError::RsaBits { bits: 16392 })));

        let mut short = vec![0xff; 384];
        short[0] = 0x7f;
        assert!(matches!(read(&[3], &short), Err(KeyError::RsaBits { bits: 3071 })));
    }

    #[test]
    fn degenerate_numbers_are_refused() {
        let modulus = vec![0xff; 384];
        for exponent in [&[1][..], &[2], &[1, 0, 0], &[1, 0, 0, 0, 1]] {
            assert!(read(exponent, &modulus).is_err(), "{exponent:?}");
        }
        let mut even = modulus;
        even[383] = 0xfe;
        assert!(read(&[1, 0, 1], &even).is_err());
    }

    #[test]
    fn a_signature_of_another_length_or_size_is_refused() {
        let key = read(&[1, 0, 1], &[0xff; 384]).expect("a modulus");
        for signature in [vec![], vec![1; 383], vec![0; 384], vec![0xff; 384], vec![1; 385]] {
            assert!(!key.verifies(RsaHash::Sha512, b"message", &signature));
        }
    }

    #[test]
    fn moduli_of_any_length_are_computed_with() {
        for len in 384..=393 {
            for first in [1, 0xff] {
                let mut modulus = vec![0xff; len];
                modulus[0] = first;
                let Ok(key) = read(&[3], &modulus) else {
                    continue; // 3065 bits and 3 more are too few
                };
                let mut two = vec![0; len];
                two[len - 1] = 2;
                let mut eight = vec![0; len];
                eight[len - 1] = 8;
                assert_eq!(key.raise(&two), Some(eight), "{len}");
            }
        }
    }

    #[test]
    fn a_signature_from_the_modulus_on_is_refused() {
        let mut modulus = vec![0xff; 385];
        modulus[0] = 1;
        let key = read(&[3], &modulus).expect("a modulus of 3073 bits");
        assert_eq!(key.raise(&modulus), None);
        // The modulus and 2 more: the same number as 2, in a second spelling.
        let mut past = vec![0; 385];
        past[0] = 2;
        past[384] = 1;
        assert_eq!(key.raise(&past), None);
    }
}
