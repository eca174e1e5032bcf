//! Keys that sign test bundles, and SSH signatures with any wrong field (trust 3).

use base64ct::{Base64, Encoding as _};
use ed25519_dalek::Signer as _;
use p256::ecdsa;
use sha2::{Digest as _, Sha256, Sha512};

use crate::rsa;

/// A publicly known key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// ssh-ed25519 with a secret of 32 times this byte.
    Ed25519(u8),
    /// ecdsa-sha2-nistp256.
    EcdsaP256,
    /// sk-ssh-ed25519@openssh.com.
    SkEd25519,
    /// sk-ecdsa-sha2-nistp256@openssh.com.
    SkEcdsaP256,
    /// ssh-rsa of 3072 bits.
    Rsa3072,
    /// ssh-rsa of 2048 bits.
    Rsa2048,
}

/// The fields of an SSHSIG around the raw signature.
#[derive(Clone, Debug)]
pub struct SshSig {
    /// The namespace.
    pub namespace: Vec<u8>,
    /// The reserved field.
    pub reserved: Vec<u8>,
    /// The name of the message's hash.
    pub hash: &'static str,
    /// The flags of an authenticator.
    pub flags: u8,
}

impl Default for SshSig {
    fn default() -> Self {
        Self { namespace: b"sealift".to_vec(), reserved: Vec::new(), hash: "sha512", flags: 1 }
    }
}

const APPLICATION: &[u8] = b"ssh:";
const COUNTER: u32 = 7;

/// Encodes fields, each with its length in front.
pub fn strings(fields: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    for field in fields {
        out.extend(u32::try_from(field.len()).expect("fields are short").to_be_bytes());
        out.extend(*field);
    }
    out
}

pub(crate) fn mpint(number: &[u8]) -> Vec<u8> {
    let number = &number[number.iter().position(|byte| *byte != 0).unwrap_or(number.len())..];
    let sign = number.first().is_some_and(|byte| byte & 0x80 != 0);
    [if sign { &[0][..] } else { &[] }, number].concat()
}

/// Returns the bytes that a key signs for `message`.
pub fn data_to_sign(message: &[u8], fields: &SshSig) -> Vec<u8> {
    let digest = match fields.hash {
        "sha256" => Sha256::digest(message).to_vec(),
        _ => Sha512::digest(message).to_vec(),
    };
    let mut data = b"SSHSIG".to_vec();
    data.extend(strings(&[&fields.namespace, &fields.reserved, fields.hash.as_bytes(), &digest]));
    data
}

/// Returns an SSHSIG of this key and this signature, made with the default fields.
pub fn sshsig(key: &[u8], proof: &[u8]) -> Vec<u8> {
    sshsig_as(key, "sha512", proof)
}

/// Returns an SSHSIG of this key, this hash algorithm and this signature.
pub fn sshsig_as(key: &[u8], hash: &str, proof: &[u8]) -> Vec<u8> {
    let mut body = b"SSHSIG\0\0\0\x01".to_vec();
    body.extend(strings(&[key, b"sealift", b"", hash.as_bytes(), proof]));
    body
}

impl Key {
    /// Returns the key type's name.
    pub fn type_name(self) -> &'static str {
        match self {
            Self::Ed25519(_) => "ssh-ed25519",
            Self::EcdsaP256 => "ecdsa-sha2-nistp256",
            Self::SkEd25519 => "sk-ssh-ed25519@openssh.com",
            Self::SkEcdsaP256 => "sk-ecdsa-sha2-nistp256@openssh.com",
            Self::Rsa3072 | Self::Rsa2048 => "ssh-rsa",
        }
    }

    /// Returns the public key blob.
    pub fn blob(self) -> Vec<u8> {
        let name = self.type_name().as_bytes();
        let point = p256_secret().verifying_key().to_sec1_point(false);
        match self {
            Self::Ed25519(number) => strings(&[name, &ed25519(number).verifying_key().to_bytes()]),
            Self::EcdsaP256 => strings(&[name, b"nistp256", point.as_bytes()]),
            Self::SkEd25519 => strings(&[name, &ed25519(7).verifying_key().to_bytes(), APPLICATION]),
            Self::SkEcdsaP256 => strings(&[name, b"nistp256", point.as_bytes(), APPLICATION]),
            Self::Rsa3072 | Self::Rsa2048 => strings(&[name, &mpint(&[1, 0, 1]), &mpint(&self.rsa_numbers().0)]),
        }
    }

    /// Returns the key as it is written in a `.pub` file.
    pub fn line(self) -> String {
        format!("{} {}", self.type_name(), Base64::encode_string(&self.blob()))
    }

    /// Returns a line of allowed signers that allows the key to sign bundles with these names.
    pub fn allowed(self, names: &str) -> String {
        format!("{names} namespaces=\"sealift\" {}", self.line())
    }

    /// Returns an SSHSIG over `message`.
    pub fn sign(self, message: &[u8]) -> Vec<u8> {
        self.sign_as(message, &SshSig::default())
    }

    /// Returns an SSHSIG over `message` with these fields, which the raw signature covers.
    pub fn sign_as(self, message: &[u8], fields: &SshSig) -> Vec<u8> {
        let proof = self.prove(&data_to_sign(message, fields), fields.flags);
        let mut out = b"SSHSIG".to_vec();
        out.extend(1_u32.to_be_bytes());
        out.extend(strings(&[&self.blob(), &fields.namespace, &fields.reserved, fields.hash.as_bytes(), &proof]));
        out
    }

    /// Returns the signature of these bytes, preceded by the algorithm and followed by the fields of an authenticator.
    pub(crate) fn prove(self, data: &[u8], flags: u8) -> Vec<u8> {
        let name = self.type_name().as_bytes();
        match self {
            Self::Ed25519(number) => strings(&[name, &ed25519(number).sign(data).to_bytes()]),
            Self::EcdsaP256 => strings(&[name, &p256_sign(data)]),
            Self::SkEd25519 => {
                let signature = ed25519(7).sign(&authenticated(data, flags)).to_bytes();
                with_presence(strings(&[name, &signature]), flags)
            }
            Self::SkEcdsaP256 => with_presence(strings(&[name, &p256_sign(&authenticated(data, flags))]), flags),
            Self::Rsa3072 | Self::Rsa2048 => strings(&[b"rsa-sha2-512", &self.rsa_sign(data)]),
        }
    }

    fn rsa_numbers(self) -> (Vec<u8>, Vec<u8>) {
        let text = match self {
            Self::Rsa2048 => include_str!("../data/rsa-2048.hex"),
            _ => rsa::NUMBERS,
        };
        let mut numbers = text.lines().map(unhex);
        let mut next = || numbers.next().expect("the file has two lines");
        (next(), next())
    }

    /// RSASSA-PKCS1-v1_5 with SHA-512.
    fn rsa_sign(self, data: &[u8]) -> Vec<u8> {
        let (modulus, exponent) = self.rsa_numbers();
        rsa::sign(data, &modulus, &exponent)
    }
}

pub(crate) fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().as_chunks::<2>().0;
    let value = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    digits.iter().map(|[high, low]| value(*high).zip(value(*low)).map_or(0, |(high, low)| high << 4 | low)).collect()
}

fn ed25519(number: u8) -> ed25519_dalek::SigningKey {
    ed25519_dalek::SigningKey::from_bytes(&[number; 32])
}

fn p256_secret() -> ecdsa::SigningKey {
    ecdsa::SigningKey::from_slice(&[9; 32]).expect("it is below the order")
}

/// Returns the numbers r and s of an SSHSIG by the ECDSA key, with s above half of the curve's order or not, as requested.
pub fn ecdsa_numbers(message: &[u8], is_high: bool) -> [Vec<u8>; 2] {
    let low: ecdsa::Signature = p256_secret().sign(&data_to_sign(message, &SshSig::default()));
    let low = low.normalize_s();
    let high = ecdsa::Signature::from_scalars(low.r(), -low.s()).expect("neither is zero");
    let (r, s) = if is_high { high } else { low }.split_bytes();
    [mpint(&r), mpint(&s)]
}

/// Returns an SSHSIG with these numbers by the ECDSA key.
pub fn ecdsa_of(r: &[u8], s: &[u8]) -> Vec<u8> {
    sshsig(&Key::EcdsaP256.blob(), &strings(&[b"ecdsa-sha2-nistp256", &strings(&[r, s])]))
}

fn p256_sign(data: &[u8]) -> Vec<u8> {
    let signature: ecdsa::Signature = p256_secret().sign(data);
    let (r, s) = signature.split_bytes();
    strings(&[&mpint(&r), &mpint(&s)])
}

/// Returns the bytes that an authenticator signs.
fn authenticated(data: &[u8], flags: u8) -> Vec<u8> {
    let mut out = Sha256::digest(APPLICATION).to_vec();
    out.push(flags);
    out.extend(COUNTER.to_be_bytes());
    out.extend(Sha256::digest(data));
    out
}

fn with_presence(mut proof: Vec<u8>, flags: u8) -> Vec<u8> {
    proof.push(flags);
    proof.extend(COUNTER.to_be_bytes());
    proof
}
