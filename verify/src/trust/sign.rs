//! Makes signatures: the bytes that a key signs, the envelope around its answer, and
//! OpenSSH private keys.
//!
//! There are three ways to make an envelope:
//!
//! - [`SigningKey::sign`], for Ed25519 and P-256 keys in a file. Both are
//!   deterministic, so that equal input gives an equal bundle.
//! - ssh-agent, for these, for keys in hardware and for RSA: let it sign
//!   [`data_to_sign`] and pass its answer to [`envelope`]. RSA keys need the
//!   agent's flag for rsa-sha2-512. No RSA secret is read here: the crate `rsa`
//!   has no release without an advisory for its timing (RUSTSEC-2023-0071).
//! - `ssh-keygen -Y sign -n sealift`, read by
//!   [`SshSignature::from_armor`](super::SshSignature::from_armor).

use ed25519_dalek::Signer;
use p256::ecdsa;
use ssh_key::private::{EcdsaKeypair, Ed25519Keypair, KeypairData, PrivateKey};
use ssh_key::{Cipher, Kdf, LineEnding};
use zeroize::Zeroizing;

use super::sshsig::{self, MessageHash};
use super::wire::{put_mpint, put_string};
use super::{KeyError, KeyType, Namespace, PublicKey, SignError, SignatureError, SshSignature, armor};

/// The number of rounds that OpenSSH uses for new keys.
const BCRYPT_ROUNDS: u32 = 16;

/// Returns the bytes that a key, wherever it is stored, signs for `message`.
#[must_use]
pub fn data_to_sign(namespace: Namespace, message: &[u8]) -> Vec<u8> {
    sshsig::data_to_sign(namespace, MessageHash::Sha512, message)
}

/// Puts a signer's answer, the SSH signature blob over [`data_to_sign`], into
/// its envelope.
///
/// # Errors
/// Returns an error if the answer does not verify: no unusable bundle is written.
pub fn envelope(
    namespace: Namespace,
    key: &PublicKey,
    signature_blob: &[u8],
    message: &[u8],
) -> Result<Vec<u8>, SignError> {
    let envelope = sshsig::envelope(namespace, key.blob(), signature_blob);
    SshSignature::parse_for(namespace, &envelope)?.verify(message)?;
    Ok(envelope)
}

/// Returns an envelope's binary blob as the text that `ssh-keygen` reads.
#[must_use]
pub fn armored(envelope: &[u8]) -> String {
    armor::encode(envelope)
}

/// Returns the binary blob in such a text, without checking that it is a
/// signature.
///
/// # Errors
/// Returns an error if the armor is malformed.
pub fn unarmored(text: &[u8]) -> Result<Vec<u8>, SignatureError> {
    Ok(armor::decode(text)?)
}

/// A private key that can sign by itself.
pub struct SigningKey {
    secret: Secret,
    public: PublicKey,
    file: PrivateKey,
}

enum Secret {
    Ed25519(ed25519_dalek::SigningKey),
    EcdsaP256(ecdsa::SigningKey),
}

impl SigningKey {
    /// Makes an Ed25519 key from 32 random bytes.
    ///
    /// # Errors
    /// None for random bytes; the key is checked like any other.
    pub fn generate(random: &[u8; 32], comment: &str) -> Result<Self, SignError> {
        let pair = ed25519_dalek::SigningKey::from_bytes(random).to_keypair_bytes();
        let file = Ed25519Keypair::from_bytes(&Zeroizing::new(pair))
            .and_then(|pair| PrivateKey::new(KeypairData::Ed25519(pair), comment))
            .map_err(|_| SignError::NotAPrivateKey)?;
        Self::new(file)
    }

    /// Reads a private key file in the form that `ssh-keygen` writes.
    ///
    /// # Errors
    /// Returns [`SignError::PassphraseNeeded`] if the key has a passphrase and
    /// none is given; other errors if the file is not such a key, the passphrase
    /// is wrong, or the key's type is not accepted or signs only through
    /// ssh-agent.
    pub fn from_openssh(file: &[u8], passphrase: Option<&[u8]>) -> Result<Self, SignError> {
        let key = read(file)?;
        let key = match passphrase {
            _ if !key.is_encrypted() => key,
            None => return Err(SignError::PassphraseNeeded),
            Some(passphrase) => key.decrypt(passphrase).map_err(|_| SignError::WrongPassphrase)?,
        };
        Self::new(key)
    }

    /// Returns the private key file without a passphrase.
    ///
    /// # Errors
    /// Returns [`SignError::NotAPrivateKey`] if the key cannot be encoded, which
    /// does not happen for keys that were made or read here.
    pub fn to_openssh(&self) -> Result<Zeroizing<String>, SignError> {
        write(&self.file)
    }

    /// Returns the private key file, encrypted with a passphrase and 16 random
    /// bytes of salt.
    ///
    /// # Errors
    /// As for [`SigningKey::to_openssh`]; also if the passphrase is empty.
    pub fn to_openssh_encrypted(&self, passphrase: &[u8], salt: &[u8; 16]) -> Result<Zeroizing<String>, SignError> {
        if passphrase.is_empty() {
            return Err(SignError::EmptyPassphrase);
        }
        let kdf = Kdf::Bcrypt { salt: salt.to_vec(), rounds: BCRYPT_ROUNDS };
        // This number only tells a right passphrase from a wrong one. It need
        // not be secret, but must not be the same in all files.
        let [a, b, c, d, ..] = *salt;
        let check = u32::from_be_bytes([a, b, c, d]);
        let key =
            self.file.encrypt_with(Cipher::Aes256Ctr, kdf, check, passphrase).map_err(|_| SignError::NotAPrivateKey)?;
        write(&key)
    }

    /// Returns the public half.
    #[must_use]
    pub fn public_key(&self) -> &PublicKey {
        &self.public
    }

    /// Returns the comment in the key's file.
    #[must_use]
    pub fn comment(&self) -> &str {
        self.file.comment().as_str_lossy()
    }

    /// Signs `message` and returns the envelope's binary blob. Equal messages
    /// give equal blobs.
    ///
    /// # Errors
    /// Returns an error if the signature does not verify, which only broken
    /// hardware explains.
    pub fn sign(&self, namespace: Namespace, message: &[u8]) -> Result<Vec<u8>, SignError> {
        let data = data_to_sign(namespace, message);
        let signature = match &self.secret {
            Secret::Ed25519(secret) => secret.sign(&data).to_bytes().to_vec(),
            Secret::EcdsaP256(secret) => {
                let signature: ecdsa::Signature = secret.sign(&data);
                let (r, s) = signature.split_bytes();
                let mut numbers = Vec::new();
                put_mpint(&mut numbers, &r);
                put_mpint(&mut numbers, &s);
                numbers
            }
        };
        let mut blob = Vec::new();
        put_string(&mut blob, self.public.key_type().name().as_bytes());
        put_string(&mut blob, &signature);
        envelope(namespace, &self.public, &blob, message)
    }

    fn new(file: PrivateKey) -> Result<Self, SignError> {
        let secret = match file.key_data() {
            KeypairData::Ed25519(pair) => {
                let secret = Zeroizing::new(pair.private.to_bytes());
                Secret::Ed25519(ed25519_dalek::SigningKey::from_bytes(&secret))
            }
            KeypairData::Ecdsa(EcdsaKeypair::NistP256 { private, .. }) => Secret::EcdsaP256(
                ecdsa::SigningKey::from_slice(private.as_slice()).map_err(|_| SignError::NotAPrivateKey)?,
            ),
            _ => return Err(SignError::AgentOnly(stated_public(&file)?.key_type())),
        };
        let public = secret.public()?;
        // If the halves in the file differed, it would sign for another key than it states.
        if public == stated_public(&file)? { Ok(Self { secret, public, file }) } else { Err(SignError::NotAPrivateKey) }
    }
}

impl Secret {
    fn public(&self) -> Result<PublicKey, KeyError> {
        let mut blob = Vec::new();
        match self {
            Self::Ed25519(secret) => {
                put_string(&mut blob, KeyType::Ed25519.name().as_bytes());
                put_string(&mut blob, secret.verifying_key().as_bytes());
            }
            Self::EcdsaP256(secret) => {
                put_string(&mut blob, KeyType::EcdsaP256.name().as_bytes());
                put_string(&mut blob, b"nistp256");
                let point = secret.verifying_key().to_sec1_point(false);
                put_string(&mut blob, point.as_bytes());
            }
        }
        PublicKey::parse(&blob)
    }
}

impl core::fmt::Debug for SigningKey {
    /// Shows only the public half.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "private half of {:?}", self.public)
    }
}

fn read(file: &[u8]) -> Result<PrivateKey, SignError> {
    PrivateKey::from_openssh(file).map_err(|_| {
        let line = String::from_utf8_lossy(file);
        match PublicKey::from_openssh(&line) {
            Ok(_) => SignError::PublicKey,
            Err(_) => SignError::NotAPrivateKey,
        }
    })
}

fn write(key: &PrivateKey) -> Result<Zeroizing<String>, SignError> {
    key.to_openssh(LineEnding::LF).map_err(|_| SignError::NotAPrivateKey)
}

/// Returns the public half as the file states it.
fn stated_public(key: &PrivateKey) -> Result<PublicKey, SignError> {
    let blob = key.public_key().to_bytes().map_err(|_| SignError::NotAPrivateKey)?;
    Ok(PublicKey::parse(&blob)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: &[u8] = b"preamble and root";

    fn key() -> SigningKey {
        SigningKey::generate(&[3; 32], "me@desk").expect("a key")
    }

    #[test]
    fn a_signature_verifies_and_is_always_the_same() {
        let blob = key().sign(Namespace::Bundle, MESSAGE).expect("a signature");
        assert_eq!(key().sign(Namespace::Bundle, MESSAGE), Ok(blob.clone()));
        let signature = SshSignature::parse(&blob).expect("well formed");
        assert_eq!(signature.verify(MESSAGE), Ok(key().public_key()));
        assert_eq!(unarmored(armored(&blob).as_bytes()), Ok(blob.clone()));
        assert_eq!(SshSignature::from_armor(armored(&blob).as_bytes()), Ok(signature));
    }

    #[test]
    fn a_key_file_is_read_back() {
        let file = key().to_openssh().expect("a file");
        let read = SigningKey::from_openssh(file.as_bytes(), None).expect("a key");
        assert_eq!(read.public_key(), key().public_key());
        assert_eq!(read.comment(), "me@desk");
        assert_eq!(read.sign(Namespace::Bundle, MESSAGE), key().sign(Namespace::Bundle, MESSAGE));
        // A passphrase for a key that has none is not needed.
        assert!(SigningKey::from_openssh(file.as_bytes(), Some(b"x")).is_ok());
    }

    #[test]
    fn a_passphrase_is_needed_and_checked() {
        let file = key().to_openssh_encrypted(b"secret", &[5; 16]).expect("a file");
        let open = |passphrase| SigningKey::from_openssh(file.as_bytes(), passphrase).map(|_| ());
        assert_eq!(open(None), Err(SignError::PassphraseNeeded));
        assert_eq!(open(Some(b"Secret")), Err(SignError::WrongPassphrase));
        assert_eq!(open(Some(b"secret")), Ok(()));
        let empty = key().to_openssh_encrypted(b"", &[5; 16]).map(|_| ());
        assert_eq!(empty, Err(SignError::EmptyPassphrase));
    }

    #[test]
    fn what_is_no_private_key_is_told() {
        let refusal = |file: &[u8]| SigningKey::from_openssh(file, None).map(|_| ());
        assert_eq!(refusal(b""), Err(SignError::NotAPrivateKey));
        assert_eq!(refusal(super::super::sample::line(1).as_bytes()), Err(SignError::PublicKey));
    }

    #[test]
    fn an_answer_that_does_not_fit_is_refused() {
        let mut blob = Vec::new();
        put_string(&mut blob, b"ssh-ed25519");
        put_string(&mut blob, &[1; 64]);
        let refused = envelope(Namespace::Bundle, key().public_key(), &blob, MESSAGE);
        assert_eq!(refused, Err(SignError::Answer(SignatureError::Mismatch)));
        assert!(envelope(Namespace::Bundle, key().public_key(), b"", MESSAGE).is_err());
    }
}
