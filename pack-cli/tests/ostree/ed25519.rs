//! Commits for remotes that require Ed25519 signatures. libostree's program is often built without them: where it has them, it shows that it reads
//! what we write.

use std::fs;

use base64ct::{Base64, Encoding as _};
use ed25519_dalek::{Signer as _, SigningKey};

use crate::commitmeta::commitmeta;
use crate::signed::Signed;

struct Case {
    signed: Signed,
    commit: String,
    bytes: Vec<u8>,
}

impl Case {
    fn new() -> Self {
        let signed = Signed::new();
        let desk = &signed.desk;
        desk.init("source", "archive");
        desk.init("target", "archive");
        desk.ostree("target", &["remote", "add", "--no-gpg-verify", "origin", "https://example.org"]);
        let commit = signed.commit("os", &[]);
        let path = format!("source/objects/{}/{}.commit", &commit[..2], &commit[2..]);
        let bytes = fs::read(desk.path(&path)).expect("there is the commit");
        Self { signed, commit, bytes }
    }

    fn set(&self, key: &str, value: &str) {
        self.signed.desk.ostree("target", &["config", "set", &format!("remote \"origin\".{key}"), value]);
    }

    fn put(&self, beside: &[u8]) {
        let path = format!("source/objects/{}/{}.commitmeta", &self.commit[..2], &self.commit[2..]);
        fs::write(self.signed.desk.path(&path), beside).expect("there is room");
        self.signed.desk.run("pack --force ostree:source -o os.sealift");
    }

    fn sign(&self, signatures: &[&[u8]]) {
        self.put(&commitmeta("ostree.sign.ed25519", b"aay", signatures));
    }

    fn is_taken(&self) {
        let refs = self.signed.desk.path("target/refs/remotes");
        fs::remove_dir_all(&refs).and_then(|()| fs::create_dir(&refs)).expect("it is ours");
        self.signed.is_taken("--remote origin", "remotes/origin/os", &self.commit);
    }

    fn is_refused(&self, why: &str) {
        self.signed.is_refused("--remote origin", why);
    }
}

fn key(number: u8) -> SigningKey {
    SigningKey::from_bytes(&[number; 32])
}

fn public(number: u8) -> String {
    Base64::encode_string(key(number).verifying_key().as_bytes())
}

#[test]
fn signatures() {
    let case = Case::new();
    let desk = &case.signed.desk;
    let sign = |number| key(number).sign(&case.bytes).to_bytes();
    case.set("sign-verify", "ed25519");
    case.set("verification-ed25519-key", &public(1));
    case.is_refused("the remote requires an Ed25519 signature and the commit has none");
    case.sign(&[&sign(1)]);
    let shown = desk.ostree("source", &["show", "--print-detached-metadata-key=ostree.sign.ed25519", "os"]);
    let hex: Vec<_> = sign(1).iter().map(|byte| format!("0x{byte:02x}")).collect();
    assert_eq!(shown.trim(), format!("[[byte {}]]", hex.join(", ")), "libostree reads what is written here");
    case.is_taken();

    for (wrong, why) in [
        (&sign(2)[..], "no Ed25519 key of the remote signed it"),
        (&key(1).sign(b"another commit").to_bytes(), "no Ed25519 key of the remote signed it"),
        (&[0; 64], "no Ed25519 key of the remote signed it"),
        (&sign(1)[..63], "has 63 bytes instead of 64"),
        (&[&sign(1)[..], &[0]].concat(), "has 65 bytes instead of 64"),
    ] {
        case.sign(&[wrong]);
        case.is_refused(why);
    }
    case.sign(&[&sign(2), &sign(1)]);
    case.is_taken();
    let good = sign(1);
    let others = [("ostree.sign.other99", &b"aay"[..], &good[..]), ("ostree.sign.ed25519", b"as", b"text\0")];
    for (name, kind, value) in others {
        case.put(&commitmeta(name, kind, &[value]));
        case.is_refused("it has none");
    }

    case.sign(&[&sign(1)]);
    case.set("verification-ed25519-key", &public(2));
    case.is_refused("no Ed25519 key of the remote signed it");
    let file = desk.path("keys-of-the-desk");
    fs::write(&file, format!("# ours\n{}\njunk\n{}\n", public(3), public(1))).expect("there is room");
    case.set("verification-ed25519-file", &file.display().to_string());
    case.is_taken();
    fs::remove_file(file).expect("it is ours");
    case.is_refused("keys-of-the-desk\" cannot be read");
}

/// If a remote requires both kinds, one does not replace the other.
#[test]
fn beside_openpgp() {
    let case = Case::new();
    let desk = &case.signed.desk;
    let sign = |number| key(number).sign(&case.bytes).to_bytes();
    case.set("sign-verify", "true");
    case.set("verification-ed25519-key", &public(1));
    case.set("gpg-verify", "true");
    case.sign(&[&sign(1)]);
    case.is_refused("the remote requires a GPG signature and the commit has none");
    case.signed.make_key("right");
    desk.ostree("target", &["remote", "gpg-import", "--keyring=right.gpg", "origin"]);
    case.signed.sign("os", &["right"]);
    case.is_refused("the remote requires an Ed25519 signature and the commit has none");
    // If commits are signed, the summary need not be.
    case.set("gpg-verify", "false");
    case.set("gpg-verify-summary", "true");
    desk.ostree("source", &["refs", "--force", "--create=os", &case.commit]);
    case.sign(&[&sign(1)]);
    case.is_taken();
    case.set("sign-verify-summary", "nosuch");
    case.is_refused("sign-verify-summary = \"nosuch\"");
}

#[test]
fn without_keys() {
    let case = Case::new();
    case.sign(&[&key(1).sign(&case.bytes).to_bytes()]);
    case.set("sign-verify", "ed25519");
    case.is_refused("needs a key in verification-ed25519-key or verification-ed25519-file");
    case.set("verification-ed25519-key", "junk");
    case.is_refused("is not an Ed25519 key");
    for (kinds, why) in [("spki", "verifies only ed25519 signatures"), ("nosuch", "not a known kind of signature")] {
        case.set("sign-verify", kinds);
        case.is_refused(why);
    }
    case.set("sign-verify", "false");
    case.is_taken();
    let desk = &case.signed.desk;
    desk.good("unpack os.sealift ostree:target --allow-unsigned");
}
