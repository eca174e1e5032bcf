//! Keys, signatures and heads for the unit tests, made from small numbers.

use base64ct::{Base64, Encoding};
use ed25519_dalek::Signer;
use sealift_format::{Contents, Head, Identity, Maxima, Root};

use super::sshsig::{MessageHash, data_to_sign, envelope};
use super::wire::put_string;
use super::{KeyType, Namespace, PublicKey};

fn secret(number: u8) -> ed25519_dalek::SigningKey {
    ed25519_dalek::SigningKey::from_bytes(&[number; 32])
}

/// Returns the Ed25519 key of this number.
pub(super) fn key(number: u8) -> PublicKey {
    let public = secret(number).verifying_key().to_bytes();
    let blob = strings(&[KeyType::Ed25519.name().as_bytes(), &public]);
    PublicKey::parse(&blob).expect("a good key")
}

/// Returns that key as in a `.pub` file.
pub(super) fn line(number: u8) -> String {
    let blob = Base64::encode_string(key(number).blob());
    format!("{} {blob}", KeyType::Ed25519)
}

/// Returns an SSH signature by that key.
pub(super) fn signature(number: u8, message: &[u8]) -> Vec<u8> {
    let data = data_to_sign(Namespace::Bundle, MessageHash::Sha512, message);
    let signature = secret(number).sign(&data).to_bytes();
    let blob = strings(&[KeyType::Ed25519.name().as_bytes(), &signature]);
    envelope(Namespace::Bundle, key(number).blob(), &blob)
}

/// Returns these fields, each preceded by its length.
pub(super) fn strings(fields: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    for field in fields {
        put_string(&mut out, field);
    }
    out
}

/// Returns the unsigned head of a bundle without content.
pub(crate) fn head(identity: Identity) -> Head {
    let contents = Contents {
        index_digest: [0; 32],
        index_len: 0,
        index_stored: 0,
        index_blake3: [0; 32],
        layout_len: 0,
        layout_stored: 0,
        layout_blake3: [0; 32],
    };
    let maxima = Maxima { piece_log2: 12, window_log: 10, ..Maxima::default() };
    let (annotations, bases, images) = Default::default();
    let root = Root { identity, contents, maxima, annotations, bases, images, recipes: None };
    Head::new(root, Vec::new(), 1024).expect("it is short")
}
