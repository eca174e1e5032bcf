//! Keys in FIDO authenticators. The test is the authenticator: it signs the
//! application, its flags, its counter and the hash of what it is asked to sign
//! (OpenSSH's PROTOCOL.u2f). The real `ssh-keygen` is asked as well.

use crate::keygen::{Keygen, MESSAGE};
use base64ct::{Base64, Encoding};
use p256::ecdsa;
use p256::ecdsa::signature::Signer;
use sealift_verify::trust::{Namespace, PublicKey, SignError, SignatureError, sign};
use sha2::{Digest, Sha256};

const APPLICATION: &[u8] = b"ssh:";
const COUNTER: [u8; 4] = [0, 0, 1, 0];
const TOUCHED: u8 = 1;
const PIN: u8 = 4;

/// Returns the inner signature, which flags and counter follow.
type Sign = dyn Fn(&[u8]) -> Vec<u8>;

struct Authenticator {
    key: PublicKey,
    sign: Box<Sign>,
}

impl Authenticator {
    fn ed25519() -> Self {
        let secret = ed25519_dalek::SigningKey::from_bytes(&[4; 32]);
        let public = secret.verifying_key().to_bytes();
        let blob = strings(&[b"sk-ssh-ed25519@openssh.com", &public, APPLICATION]);
        Self {
            key: PublicKey::parse(&blob).expect("a key"),
            sign: Box::new(move |data| secret.sign(data).to_bytes().to_vec()),
        }
    }

    fn ecdsa() -> Self {
        let secret = ecdsa::SigningKey::from_slice(&[4; 32]).expect("in range");
        let point = secret.verifying_key().to_sec1_point(false);
        let name = b"sk-ecdsa-sha2-nistp256@openssh.com";
        let blob = strings(&[name, b"nistp256", point.as_bytes(), APPLICATION]);
        Self {
            key: PublicKey::parse(&blob).expect("a key"),
            sign: Box::new(move |data| {
                let signature: ecdsa::Signature = secret.sign(data);
                let (r, s) = signature.split_bytes();
                strings(&[&mpint(&r), &mpint(&s)])
            }),
        }
    }

    fn sign(&self, flags: u8) -> Result<Vec<u8>, SignError> {
        let mut data = Sha256::digest(APPLICATION).to_vec();
        data.push(flags);
        data.extend(COUNTER);
        data.extend(Sha256::digest(sign::data_to_sign(Namespace::Bundle, MESSAGE)));
        let name = self.key.key_type().name();
        let mut blob = strings(&[name.as_bytes(), &(self.sign)(&data)]);
        blob.push(flags);
        blob.extend(COUNTER);
        sign::envelope(Namespace::Bundle, &self.key, &blob, MESSAGE)
    }
}

fn strings(fields: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    for field in fields {
        out.extend(u32::try_from(field.len()).expect("short").to_be_bytes());
        out.extend(*field);
    }
    out
}

fn mpint(number: &[u8]) -> Vec<u8> {
    let digits = number.iter().copied().skip_while(|byte| *byte == 0);
    let mut out: Vec<u8> = digits.collect();
    if out[0] >= 0x80 {
        out.insert(0, 0);
    }
    out
}

#[test]
fn a_touched_authenticator_signs_for_both() {
    for authenticator in [Authenticator::ed25519(), Authenticator::ecdsa()] {
        let (key, desk) = (&authenticator.key, Keygen::new());
        let base64 = Base64::encode_string(key.blob());
        let line = format!("os namespaces=\"sealift\" {} {base64}\n", key.key_type());
        desk.write("signers", line);
        for flags in [TOUCHED, TOUCHED | PIN] {
            let envelope = authenticator.sign(flags).expect("it verifies");
            desk.write("message.sig", sign::armored(&envelope));
            assert!(desk.accepts("os", &[]), "{key:?} with flags {flags}");
        }
    }
}

#[test]
fn without_a_touch_nothing_counts() {
    for authenticator in [Authenticator::ed25519(), Authenticator::ecdsa()] {
        for flags in [0, PIN] {
            let refused = authenticator.sign(flags);
            assert_eq!(refused, Err(SignError::Answer(SignatureError::NoTouch)));
        }
    }
}
