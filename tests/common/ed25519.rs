//! Signatures of Ed25519 that satisfy its equation but must be rejected (trust 4).

use crypto_bigint::{BoxedUint, NonZero};
use ed25519_dalek::SigningKey;
use sha2::{Digest as _, Sha512};

use crate::keys::{SshSig, data_to_sign, sshsig, strings, unhex};

/// Returns the neutral element: in its canonical encoding, or as y + p.
fn neutral(is_canonical: bool) -> [u8; 32] {
    let mut point = [0; 32];
    if is_canonical {
        point[0] = 1;
    } else {
        point.fill(0xff);
        (point[0], point[31]) = (0xee, 0x7f);
    }
    point
}

/// The order of the group.
const ORDER: &str = "1000000000000000000000000000000014def9dea2f79cd65812631a5cf5d3ed";

/// Returns a product modulo the group's order, of numbers with the least significant byte first.
fn product(a: &[u8], b: &[u8]) -> Vec<u8> {
    let number = |bytes: &[u8]| BoxedUint::from_le_slice(bytes, 1024).expect("it has no more bits");
    let order = BoxedUint::from_be_slice(&unhex(ORDER), 1024).expect("it has no more bits");
    let order = NonZero::new(order).expect("it is not zero");
    number(a).wrapping_mul(number(b)).rem(&order).to_le_bytes()[..32].to_vec()
}

fn body(key: &[u8; 32], r: &[u8; 32], s: &[u8]) -> Vec<u8> {
    let name = b"ssh-ed25519";
    sshsig(&strings(&[name, key]), &strings(&[name, &[&r[..], s].concat()]))
}

/// Returns an SSHSIG by the key with this secret whose R is the neutral element, so that S is a multiple of the secret.
pub fn with_neutral_r(secret: u8, message: &[u8], is_canonical: bool) -> Vec<u8> {
    let secret = SigningKey::from_bytes(&[secret; 32]);
    let (key, r) = (secret.verifying_key().to_bytes(), neutral(is_canonical));
    let data = data_to_sign(message, &SshSig::default());
    let challenge = Sha512::new().chain_update(r).chain_update(key).chain_update(data).finalize();
    body(&key, &r, &product(&challenge, &secret.to_scalar().to_bytes()))
}

/// Returns an SSHSIG of every message, by a key that is the neutral element in another encoding.
pub fn with_neutral_key() -> Vec<u8> {
    let nonce = SigningKey::from_bytes(&[2; 32]);
    body(&neutral(false), &nonce.verifying_key().to_bytes(), &nonce.to_scalar().to_bytes())
}
