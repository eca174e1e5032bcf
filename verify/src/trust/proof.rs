//! The cryptographic signature inside an SSH signature, for each type of key.

use p256::ecdsa;
use p256::ecdsa::signature::Verifier;
use sha2::{Digest, Sha256};

use super::public_key::Material;
use super::rsa::RsaHash;
use super::wire::{Malformed, Reader};
use super::{KeyType, PublicKey, SignatureError};

/// The flag that the user touched the authenticator (PROTOCOL.u2f).
const USER_PRESENT: u8 = 0x01;

/// The cryptographic signature. Its form matches the key's type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    Ed25519([u8; 64]),
    EcdsaP256(ecdsa::Signature),
    SkEd25519([u8; 64], Presence),
    SkEcdsaP256(ecdsa::Signature, Presence),
    RsaSha256(Vec<u8>),
    RsaSha512(Vec<u8>),
}

/// What an authenticator adds to its signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Presence {
    flags: u8,
    counter: u32,
}

impl Proof {
    /// Parses `string algorithm, string signature`, and what an authenticator adds. Returns `None` if the algorithm is not accepted for the key.
    pub(super) fn parse(blob: &[u8], key: &PublicKey) -> Result<Option<Self>, SignatureError> {
        let mut reader = Reader::new(blob);
        let algorithm = reader.string()?;
        let proof = match (key.key_type(), algorithm) {
            (KeyType::Ed25519, b"ssh-ed25519") => Self::Ed25519(ed25519_signature(reader.string()?)?),
            (KeyType::EcdsaP256, b"ecdsa-sha2-nistp256") => Self::EcdsaP256(ecdsa_signature(reader.string()?)?),
            (KeyType::SkEd25519, b"sk-ssh-ed25519@openssh.com") => {
                Self::SkEd25519(ed25519_signature(reader.string()?)?, Presence::read(&mut reader)?)
            }
            (KeyType::SkEcdsaP256, b"sk-ecdsa-sha2-nistp256@openssh.com") => {
                Self::SkEcdsaP256(ecdsa_signature(reader.string()?)?, Presence::read(&mut reader)?)
            }
            (KeyType::Rsa, b"rsa-sha2-256") => Self::RsaSha256(reader.string()?.to_vec()),
            (KeyType::Rsa, b"rsa-sha2-512") => Self::RsaSha512(reader.string()?.to_vec()),
            // `ssh-rsa` as an algorithm is RSA with SHA-1.
            _ => return Ok(None),
        };
        reader.finish()?;
        Ok(Some(proof))
    }

    /// Checks that the signature is by `key` over `data`.
    pub(super) fn check(&self, key: &PublicKey, data: &[u8]) -> Result<(), SignatureError> {
        let fits = match (&key.material, self) {
            (Material::Ed25519(key), Self::Ed25519(signature)) => ed25519_verifies(key, data, signature),
            (Material::EcdsaP256(key), Self::EcdsaP256(signature)) => key.verify(data, signature).is_ok(),
            (Material::SkEd25519(key, application), Self::SkEd25519(signature, presence)) => {
                ed25519_verifies(key, &presence.data_to_sign(application, data)?, signature)
            }
            (Material::SkEcdsaP256(key, application), Self::SkEcdsaP256(signature, presence)) => {
                let data = presence.data_to_sign(application, data)?;
                key.verify(&data, signature).is_ok()
            }
            (Material::Rsa(key), Self::RsaSha256(signature)) => key.verifies(RsaHash::Sha256, data, signature),
            (Material::Rsa(key), Self::RsaSha512(signature)) => key.verifies(RsaHash::Sha512, data, signature),
            _ => false,
        };
        if fits { Ok(()) } else { Err(SignatureError::Mismatch) }
    }
}

impl Presence {
    fn read(reader: &mut Reader<'_>) -> Result<Self, SignatureError> {
        Ok(Self { flags: reader.byte()?, counter: reader.u32()? })
    }

    /// Returns what the authenticator signed, if it was touched.
    fn data_to_sign(self, application: &[u8], data: &[u8]) -> Result<Vec<u8>, SignatureError> {
        if self.flags & USER_PRESENT == 0 {
            return Err(SignatureError::NoTouch);
        }
        let mut out = Vec::with_capacity(69);
        out.extend(Sha256::digest(application));
        out.push(self.flags);
        out.extend(self.counter.to_be_bytes());
        out.extend(Sha256::digest(data));
        Ok(out)
    }
}

fn ed25519_signature(bytes: &[u8]) -> Result<[u8; 64], SignatureError> {
    bytes.try_into().map_err(|_| SignatureError::Malformed("an Ed25519 signature is not 64 bytes"))
}

fn ed25519_verifies(key: &ed25519_dalek::VerifyingKey, data: &[u8], signature: &[u8; 64]) -> bool {
    key.verify_strict(data, &ed25519_dalek::Signature::from_bytes(signature)).is_ok()
}

fn ecdsa_signature(bytes: &[u8]) -> Result<ecdsa::Signature, SignatureError> {
    let mut reader = Reader::new(bytes);
    let r = scalar(reader.positive_mpint()?)?;
    let s = scalar(reader.positive_mpint()?)?;
    reader.finish()?;
    ecdsa::Signature::from_scalars(r, s)
        .map_err(|_| SignatureError::Malformed("an ECDSA signature's numbers are out of range"))
}

fn scalar(number: &[u8]) -> Result<[u8; 32], SignatureError> {
    let mut out = [0; 32];
    let start = out
        .len()
        .checked_sub(number.len())
        .ok_or(Malformed("an ECDSA signature's number is longer than the curve's order"))?;
    if let Some(tail) = out.get_mut(start..) {
        tail.copy_from_slice(number);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use ed25519_dalek::Signer;

    use super::super::sample::{self, strings};
    use super::super::sshsig::{MessageHash, data_to_sign, envelope};
    use super::super::wire::put_mpint;
    use super::super::{Namespace, SshSignature, Unaccepted};
    use super::*;

    const MESSAGE: &[u8] = b"preamble and root";
    const APPLICATION: &[u8] = b"ssh:";

    fn judge(blob: &[u8]) -> Result<(), SignatureError> {
        SshSignature::parse(blob)?.verify(MESSAGE).map(|_| ())
    }

    fn p256() -> ecdsa::SigningKey {
        ecdsa::SigningKey::from_slice(&[9; 32]).expect("in range")
    }

    fn mpints(signature: &ecdsa::Signature) -> Vec<u8> {
        let (r, s) = signature.split_bytes();
        let mut out = Vec::new();
        put_mpint(&mut out, &r);
        put_mpint(&mut out, &s);
        out
    }

    fn p256_blob(name: &[u8], more: &[&[u8]]) -> Vec<u8> {
        let point = p256().verifying_key().to_sec1_point(false);
        let mut blob = strings(&[name, b"nistp256", point.as_bytes()]);
        blob.extend(strings(more));
        blob
    }

    /// Acts as the authenticator: it signs the application, its flags, its
    /// counter and the hash of what it is asked to sign.
    fn authenticated(flags: u8, application: &[u8]) -> Vec<u8> {
        let data = data_to_sign(Namespace::Bundle, MessageHash::Sha512, MESSAGE);
        let mut out = Sha256::digest(application).to_vec();
        out.push(flags);
        out.extend(7u32.to_be_bytes());
        out.extend(Sha256::digest(&data));
        out
    }

    fn with_presence(mut signature: Vec<u8>, flags: u8) -> Vec<u8> {
        signature.push(flags);
        signature.extend(7u32.to_be_bytes());
        signature
    }

    fn sk_ed25519(flags: u8) -> Vec<u8> {
        let secret = ed25519_dalek::SigningKey::from_bytes(&[7; 32]);
        let name = KeyType::SkEd25519.name().as_bytes();
        let key = strings(&[name, &secret.verifying_key().to_bytes(), APPLICATION]);
        let signature = secret.sign(&authenticated(flags, APPLICATION)).to_bytes();
        envelope(Namespace::Bundle, &key, &with_presence(strings(&[name, &signature]), flags))
    }

    fn sk_ecdsa(flags: u8) -> Vec<u8> {
        let name = KeyType::SkEcdsaP256.name().as_bytes();
        let signature: ecdsa::Signature = p256().sign(&authenticated(flags, APPLICATION));
        let blob = strings(&[name, &mpints(&signature)]);
        envelope(Namespace::Bundle, &p256_blob(name, &[APPLICATION]), &with_presence(blob, flags))
    }

    fn ecdsa() -> Vec<u8> {
        let name = KeyType::EcdsaP256.name().as_bytes();
        let signature: ecdsa::Signature = p256().sign(&data_to_sign(Namespace::Bundle, MessageHash::Sha512, MESSAGE));
        envelope(Namespace::Bundle, &p256_blob(name, &[]), &strings(&[name, &mpints(&signature)]))
    }

    #[test]
    fn the_numbers_of_ecdsa_are_in_range() {
        let name = KeyType::EcdsaP256.name().as_bytes();
        for r in [&[][..], &[0xff; 32], &[1; 33]] {
            let mut numbers = Vec::new();
            put_mpint(&mut numbers, r);
            put_mpint(&mut numbers, &[1]);
            let blob = envelope(Namespace::Bundle, &p256_blob(name, &[]), &strings(&[name, &numbers]));
            assert!(matches!(judge(&blob), Err(SignatureError::Malformed(_))));
        }
    }

    #[test]
    fn an_authenticator_must_have_been_touched() {
        for flags in [USER_PRESENT, USER_PRESENT | 0x04] {
            assert_eq!(judge(&sk_ed25519(flags)), Ok(()));
            assert_eq!(judge(&sk_ecdsa(flags)), Ok(()));
        }
        for flags in [0, 0x04] {
            assert_eq!(judge(&sk_ed25519(flags)), Err(SignatureError::NoTouch));
            assert_eq!(judge(&sk_ecdsa(flags)), Err(SignatureError::NoTouch));
        }
    }

    #[test]
    fn every_flip_and_cut_fails() {
        for good in [ecdsa(), sk_ed25519(USER_PRESENT), sk_ecdsa(USER_PRESENT)] {
            assert_eq!(judge(&good), Ok(()));
            for at in 0..good.len() {
                let mut bad = good.clone();
                bad[at] ^= 1 << (at % 8);
                assert!(judge(&bad).is_err(), "flip at {at}");
                assert!(judge(&good[..at]).is_err(), "cut at {at}");
            }
        }
    }

    #[test]
    fn algorithms_belong_to_their_keys() {
        let key = sample::key(1);
        for algorithm in [&b"ssh-rsa"[..], b"rsa-sha2-512", b"", b"none", b"ssh-ed448"] {
            for more in [&[][..], &[0]] {
                let blob = envelope(Namespace::Bundle, key.blob(), &[&strings(&[algorithm, &[0; 64]]), more].concat());
                let unknown = judge(&blob).expect_err("an algorithm of other keys").unknown().cloned();
                assert!(unknown.is_some_and(|unknown| {
                    unknown.key == key.id() && matches!(unknown.what, Unaccepted::Algorithm { .. })
                }));
            }
            let alone = judge(&envelope(Namespace::Bundle, key.blob(), &strings(&[algorithm])));
            assert!(matches!(alone, Err(SignatureError::Malformed(_))), "{alone:?}");
        }
        for signature in [&[][..], &[0; 63], &[0; 65]] {
            let blob = envelope(Namespace::Bundle, key.blob(), &strings(&[b"ssh-ed25519", signature]));
            assert!(matches!(judge(&blob), Err(SignatureError::Malformed(_))));
        }
        // R = neutral element and s = 0 would fit every message under a weak key.
        let mut zero = [0; 64];
        zero[0] = 1;
        let blob = envelope(Namespace::Bundle, key.blob(), &strings(&[b"ssh-ed25519", &zero]));
        assert_eq!(judge(&blob), Err(SignatureError::Mismatch));
        assert!(judge(&envelope(Namespace::Bundle, key.blob(), b"")).is_err());
        assert!(judge(b"").is_err());
    }

    #[test]
    fn nothing_follows_the_numbers() {
        let name = KeyType::EcdsaP256.name().as_bytes();
        let data = data_to_sign(Namespace::Bundle, MessageHash::Sha512, MESSAGE);
        let mut numbers = mpints(&p256().sign(&data));
        numbers.push(0);
        let blob = envelope(Namespace::Bundle, &p256_blob(name, &[]), &strings(&[name, &numbers]));
        let refused = judge(&blob);
        assert_eq!(refused, Err(SignatureError::Malformed("bytes follow its end")));
    }

    #[test]
    fn nothing_follows_the_proof() {
        let data = data_to_sign(Namespace::Bundle, MessageHash::Sha512, MESSAGE);
        let secret = ed25519_dalek::SigningKey::from_bytes(&[1; 32]);
        let mut blob = strings(&[b"ssh-ed25519", &secret.sign(&data).to_bytes()]);
        let key = sample::key(1);
        assert_eq!(judge(&envelope(Namespace::Bundle, key.blob(), &blob)), Ok(()));
        blob.push(0);
        let refused = judge(&envelope(Namespace::Bundle, key.blob(), &blob));
        assert_eq!(refused, Err(SignatureError::Malformed("bytes follow its end")));
    }
}
