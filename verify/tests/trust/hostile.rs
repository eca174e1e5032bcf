//! Arbitrary bytes make no parser panic, and changed ones are never trusted.

use proptest::prelude::*;
use sealift_verify::trust::{
    AllowedSigners, Claims, Device, KeyId, Now, Policy, PublicKey, RevocationList, SshSignature, Thresholds, Utc,
};

const SIGNED: &[u8] = b"preamble and root\n";

/// Made by `ssh-keygen -Y sign -n sealift`, with the key on the line below.
const SIGNATURE: &str = include_str!("../data/ed25519.sig");
const SIGNERS: &str = include_str!("../data/allowed_signers");
const KRL: &[u8] = include_bytes!("../data/revoked.krl");

fn policy() -> Policy {
    let mut policy = Policy::at(Now::exactly(0));
    policy.signers = AllowedSigners::parse(SIGNERS.as_bytes()).ok();
    policy
}

fn claims() -> Claims {
    Claims { name: "os".into(), ..Claims::default() }
}

/// Tries every parser and the whole judgement.
fn feed(bytes: &[u8]) {
    let _ = SshSignature::parse(bytes).map(|signature| signature.verify(bytes).map(|_| ()));
    let _ = SshSignature::from_armor(bytes);
    let _ = PublicKey::parse(bytes);
    if let Ok(signers) = AllowedSigners::parse(bytes) {
        let _ = signers.standing(KeyId::of_blob(bytes), "os", Now::exactly(0));
    }
    let _ = RevocationList::parse(bytes);
    let text = String::from_utf8_lossy(bytes);
    let _ = text.parse::<KeyId>();
    let _ = PublicKey::from_openssh(&text);
    let _ = Thresholds::parse(text.lines()).map(|thresholds| thresholds.for_name("os"));
    let _ = Thresholds::parse_file(bytes);
    let _ = Device::parse(bytes);
    let _ = Utc::parse(&text).map(|utc| utc.to_string());
    let claims = Claims { name: text.into_owned(), ..Claims::default() };
    let judged = policy().judge(&claims, bytes, &[bytes], &[]);
    assert!(judged.is_err_and(|error| !error.to_string().is_empty()));
}

/// Puts `piece` over the bytes from `at` on.
fn patched(base: &[u8], at: usize, piece: &[u8]) -> Vec<u8> {
    let mut bytes = base.to_vec();
    let at = at % bytes.len();
    let end = bytes.len().min(at + piece.len());
    bytes.splice(at..end, piece.iter().copied());
    bytes
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        feed(&bytes);
    }

    #[test]
    fn arbitrary_text_does_not_panic(text in "[a-z!*?,=\" \t\\\\\n#-]{0,80}(ssh-ed25519 AAAA)?.{0,20}") {
        feed(text.as_bytes());
    }

    #[test]
    fn patched_files_do_not_panic(
        at in any::<prop::sample::Index>(),
        piece in prop::collection::vec(any::<u8>(), 0..8),
    ) {
        for base in [SIGNATURE.as_bytes(), SIGNERS.as_bytes(), KRL] {
            feed(&patched(base, at.index(base.len()), &piece));
        }
    }
}

#[test]
fn every_flip_of_message_and_signature_is_refused() {
    let signature = unarmored(SIGNATURE);
    let judge = |signed: &[u8], signature: &[u8]| policy().judge(&claims(), signed, &[signature], &[]).is_ok();
    assert!(judge(SIGNED, &signature));
    for at in 0..signature.len() {
        for bit in 0..8 {
            let mut bad = signature.clone();
            bad[at] ^= 1 << bit;
            assert!(!judge(SIGNED, &bad), "bit {bit} of byte {at}");
        }
    }
    for at in 0..SIGNED.len() {
        let mut bad = SIGNED.to_vec();
        bad[at] ^= 1;
        assert!(!judge(&bad, &signature), "byte {at} of what is signed");
        assert!(!judge(&SIGNED[..at], &signature), "cut at {at}");
    }
}

fn unarmored(armored: &str) -> Vec<u8> {
    use base64ct::{Base64, Encoding};
    let lines = armored.lines().filter(|line| !line.starts_with('-'));
    Base64::decode_vec(&lines.collect::<String>()).expect("base64")
}

#[test]
fn the_revocation_list_names_the_key() {
    let signature = SshSignature::from_armor(SIGNATURE.as_bytes()).expect("well formed");
    let mut policy = policy();
    policy.revoked = RevocationList::parse(KRL).expect("a good list");
    assert!(policy.revoked.contains(signature.key()));
    let judged = policy.judge(&claims(), SIGNED, &[&unarmored(SIGNATURE)], &[]);
    assert!(judged.is_err_and(|error| error.kind().word() == "revoked"));
}
