//! RSASSA-PKCS1-v1_5, also with keys of unusual lengths and exponents (trust 4).

use crypto_bigint::modular::{BoxedMontyForm, BoxedMontyParams};
use crypto_bigint::{BoxedUint, CheckedAdd as _, Odd};
use sha2::{Digest as _, Sha256, Sha512};

use crate::keys::{SshSig, data_to_sign, mpint, sshsig, strings, unhex};

/// A modulus of 3072 bits, and its private exponents for 65537 and 2^32+1.
pub(crate) const NUMBERS: &str = include_str!("../data/rsa-3072.hex");

/// A public key and a signature by it.
#[derive(Clone, Debug)]
pub struct Rsa {
    /// The key's exponent.
    pub exponent: Vec<u8>,
    /// The key's modulus.
    pub modulus: Vec<u8>,
    /// The signature algorithm.
    pub algorithm: &'static str,
    /// The signature.
    pub signature: Vec<u8>,
}

/// Signs with SHA-512, a modulus and a private exponent.
pub(crate) fn sign(data: &[u8], modulus: &[u8], exponent: &[u8]) -> Vec<u8> {
    raise(&encoded(data, "rsa-sha2-512", modulus.len()), modulus, exponent)
}

fn raise(encoded: &[u8], modulus: &[u8], exponent: &[u8]) -> Vec<u8> {
    let bits = bits(modulus.len());
    let number = |bytes: &[u8]| BoxedUint::from_be_slice(bytes, bits).expect("it has so many bits");
    let params = BoxedMontyParams::new_vartime(
        Option::<Odd<BoxedUint>>::from(Odd::new(number(modulus))).expect("a modulus is odd"),
    );
    BoxedMontyForm::new(number(encoded), &params).pow(&number(exponent)).retrieve().to_be_bytes().to_vec()
}

/// Returns the encoded message of RFC 8017, section 9.2.
fn encoded(data: &[u8], algorithm: &str, len: usize) -> Vec<u8> {
    let mut tail = unhex(match algorithm {
        "rsa-sha2-256" => "003031300d060960864801650304020105000420",
        _ => "003051300d060960864801650304020305000440",
    });
    match algorithm {
        "rsa-sha2-256" => tail.extend(Sha256::digest(data)),
        _ => tail.extend(Sha512::digest(data)),
    }
    let mut encoded = vec![0xff; len - tail.len()];
    encoded[..2].copy_from_slice(&[0, 1]);
    encoded.extend(tail);
    encoded
}

fn bits(bytes: usize) -> u32 {
    u32::try_from(bytes * 8).expect("keys are short")
}

impl Rsa {
    /// Signs with a key of 3072 bits and the exponent 65537, 2^32+1, or 1, with which the signature is the encoded message itself.
    ///
    /// # Panics
    /// Panics if the exponent is another.
    pub fn of(message: &[u8], exponent: u64, algorithm: &'static str) -> Self {
        let numbers: Vec<Vec<u8>> = NUMBERS.lines().map(unhex).collect();
        let modulus = numbers[0].clone();
        let encoded = encoded(&data_to_sign(message, &SshSig::default()), algorithm, modulus.len());
        let signature = match exponent {
            1 => encoded,
            65_537 => raise(&encoded, &modulus, &numbers[1]),
            0x1_0000_0001 => raise(&encoded, &modulus, &numbers[2]),
            _ => panic!("no private exponent for {exponent}"),
        };
        Self { exponent: mpint(&exponent.to_be_bytes()), modulus, algorithm, signature }
    }

    /// Signs with a key of `len` bits, with the exponent 2 or 3 and an odd or even modulus. The modulus is computed from the message: a power of the
    /// signature minus the encoded message. Its factors need not be known.
    ///
    /// # Panics
    /// Panics if the length is too short.
    pub fn made_for(message: &[u8], len: usize, exponent: u8, is_odd: bool) -> Self {
        let bytes = len.div_ceil(8);
        let algorithm = "rsa-sha2-512";
        let encoded = encoded(&data_to_sign(message, &SshSig::default()), algorithm, bytes);
        // A factor whose power has `used` bits, so that the rest of the length is a multiple of the exponent.
        let (factor, used) = match (exponent, len % 3) {
            (2, _) => (3_u8, 4),
            (_, 0) => (7, 9),
            (_, 1) => (5, 7),
            _ => (6, 8),
        };
        let precision = bits(bytes + 8);
        let shift = u32::try_from((len - used) / usize::from(exponent)).expect("keys are short");
        let number = |bytes: &[u8]| BoxedUint::from_be_slice(bytes, precision).expect("it has no more bits");
        let is_root_odd = is_odd != (encoded[bytes - 1] & 1 == 1);
        let root = number(&[factor]).shl(shift).wrapping_add(number(&[u8::from(is_root_odd)]));
        let power = (1..exponent).fold(root.clone(), |power, _| power.wrapping_mul(&root));
        let modulus = power.wrapping_sub(number(&encoded));
        assert_eq!(modulus.bits(), u32::try_from(len).expect("keys are short"), "the modulus has its length");
        let last = |number: &BoxedUint| {
            let bytes_of = number.to_be_bytes();
            bytes_of[bytes_of.len() - bytes..].to_vec()
        };
        Self { exponent: vec![exponent], modulus: last(&modulus), algorithm, signature: last(&root) }
    }

    /// Returns the same signature plus the modulus: another number with the same power.
    ///
    /// # Panics
    /// Panics if the sum has more bytes than the modulus.
    #[must_use]
    pub fn past_modulus(self) -> Self {
        let number = |bytes: &[u8]| BoxedUint::from_be_slice(bytes, bits(bytes.len())).expect("it has so many bits");
        let sum = Option::<BoxedUint>::from(number(&self.signature).checked_add(&number(&self.modulus)));
        Self { signature: sum.expect("it fits").to_be_bytes().to_vec(), ..self }
    }

    /// Returns the signature as an SSHSIG.
    pub fn sshsig(&self) -> Vec<u8> {
        sshsig(
            &strings(&[b"ssh-rsa", &mpint(&self.exponent), &mpint(&self.modulus)]),
            &strings(&[self.algorithm.as_bytes(), &self.signature]),
        )
    }
}
