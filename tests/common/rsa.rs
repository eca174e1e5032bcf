//! RSASSA-PKCS1-v1_5 with SHA-512, also by keys of odd lengths and exponents (trust 4).

use crypto_bigint::modular::{BoxedMontyForm, BoxedMontyParams};
use crypto_bigint::{BoxedUint, Odd};
use sha2::{Digest as _, Sha512};

use crate::keys::{SshSig, data_to_sign, mpint, sshsig, strings, unhex};

/// A modulus of 3072 bits, and its private exponents for 65537 and 2^32+1.
pub(crate) const NUMBERS: &str = include_str!("../data/rsa-3072.hex");

/// Signs with a modulus and a private exponent.
pub(crate) fn sign(data: &[u8], modulus: &[u8], exponent: &[u8]) -> Vec<u8> {
    let bits = bits(modulus.len());
    let number = |bytes: &[u8]| BoxedUint::from_be_slice(bytes, bits).expect("it has so many bits");
    let params = BoxedMontyParams::new_vartime(
        Option::<Odd<BoxedUint>>::from(Odd::new(number(modulus))).expect("a modulus is odd"),
    );
    let encoded = number(&encoded(data, modulus.len()));
    BoxedMontyForm::new(encoded, &params).pow(&number(exponent)).retrieve().to_be_bytes().to_vec()
}

/// Returns the encoded message of RFC 8017, section 9.2.
fn encoded(data: &[u8], len: usize) -> Vec<u8> {
    let mut tail = unhex("003051300d060960864801650304020305000440");
    tail.extend(Sha512::digest(data));
    let mut encoded = vec![0xff; len - tail.len()];
    encoded[..2].copy_from_slice(&[0, 1]);
    encoded.extend(tail);
    encoded
}

fn bits(bytes: usize) -> u32 {
    u32::try_from(bytes * 8).expect("keys are short")
}

fn body(exponent: &[u8], modulus: &[u8], signature: &[u8]) -> Vec<u8> {
    sshsig(&strings(&[b"ssh-rsa", &mpint(exponent), &mpint(modulus)]), &strings(&[b"rsa-sha2-512", signature]))
}

/// Returns an SSHSIG by a key of 3072 bits with the exponent 1: the signature is the encoded message itself.
pub fn by_exponent_one(message: &[u8]) -> Vec<u8> {
    let modulus = unhex(NUMBERS.lines().next().expect("it has lines"));
    body(&[1], &modulus, &encoded(&data_to_sign(message, &SshSig::default()), modulus.len()))
}

/// Returns a good SSHSIG by a key of 3072 bits with the exponent 2^32+1.
pub fn by_long_exponent(message: &[u8]) -> Vec<u8> {
    let numbers: Vec<Vec<u8>> = NUMBERS.lines().map(unhex).collect();
    body(&[1, 0, 0, 0, 1], &numbers[0], &sign(&data_to_sign(message, &SshSig::default()), &numbers[0], &numbers[2]))
}

/// Returns a good SSHSIG by a key of any length, with the exponent 2 or 3 and a modulus that is odd or even. The modulus is made for the message: a
/// power of the signature less the encoded message. So nobody has to know its factors.
pub fn by_length(message: &[u8], len: usize, exponent: u8, is_odd: bool) -> Vec<u8> {
    let bytes = len.div_ceil(8);
    let encoded = encoded(&data_to_sign(message, &SshSig::default()), bytes);
    // The least factor whose power has as many bits more than a multiple of the exponent as the length.
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
    let root = number(&[factor]).shl(shift).wrapping_add(&number(&[u8::from(is_root_odd)]));
    let power = (1..exponent).fold(root.clone(), |power, _| power.wrapping_mul(&root));
    let modulus = power.wrapping_sub(&number(&encoded));
    let signature = root.to_be_bytes();
    assert_eq!(modulus.bits(), u32::try_from(len).expect("keys are short"), "the modulus has its length");
    body(&[exponent], &modulus.to_be_bytes(), &signature[signature.len() - bytes..])
}
