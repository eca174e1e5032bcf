//! What the real `ssh-keygen` and this crate say to each other's files.

use std::fs;
use std::process::Command;

use sealift_verify::trust::sign::{self, SigningKey};
use sealift_verify::trust::{
    AllowedSigners, KeyError, KeyType, Namespace, Now, PublicKey, RevocationList, SignError, SignatureError,
    SshSignature, TrustFileError, Unaccepted,
};

use crate::keygen::{Keygen, MESSAGE};

fn sign_key() -> SigningKey {
    SigningKey::generate(&[3; 32], "me@desk").expect("a key")
}

fn key_type(options: &[&str]) -> KeyType {
    match options {
        [_, "ecdsa", ..] => KeyType::EcdsaP256,
        [_, "rsa", ..] => KeyType::Rsa,
        _ => KeyType::Ed25519,
    }
}

fn verify(armored: &str) -> Result<PublicKey, SignatureError> {
    SshSignature::from_armor(armored.as_bytes())?.verify(MESSAGE).cloned()
}

fn unknown(refused: Result<PublicKey, SignatureError>) -> Option<Unaccepted> {
    refused.err().and_then(|error| error.unknown().map(|unknown| unknown.what.clone()))
}

const KINDS: &[&[&str]] = &[&["-t", "ed25519"], &["-t", "ecdsa", "-b", "256"], &["-t", "rsa", "-b", "3072"]];

#[test]
fn its_signatures_verify() {
    for kind in KINDS {
        let desk = Keygen::new();
        desk.make_ssh_key("key", kind);
        let key = desk.public_key("key");
        assert_eq!(key.key_type(), key_type(kind));
        let armored = desk.sign("key", "sealift");
        assert_eq!(verify(&armored), Ok(key));

        let signature = SshSignature::from_armor(armored.as_bytes()).expect("well formed");
        assert_eq!(signature.verify(b"other").err(), Some(SignatureError::Mismatch));
        for hash in ["hashalg=sha256", "hashalg=sha512"] {
            let _ = fs::remove_file(desk.path("message.sig"));
            let options = ["-Y", "sign", "-n", "sealift", "-O", hash, "-f", "key", "message"];
            assert!(desk.ssh_keygen(&options));
            assert!(verify(&desk.text("message.sig")).is_ok(), "{hash}");
        }
    }
}

#[test]
fn its_other_signatures_are_refused() {
    let desk = Keygen::new();
    desk.make_ssh_key("key", &["-t", "ed25519"]);
    for namespace in ["file", "git", "sealift-signers", "Sealift"] {
        let refused = verify(&desk.sign("key", namespace));
        assert_eq!(refused, Err(SignatureError::Namespace(namespace.into())));
    }

    desk.make_ssh_key("short", &["-t", "rsa", "-b", "2048"]);
    let refused = verify(&desk.sign("short", "sealift"));
    assert_eq!(unknown(refused), Some(Unaccepted::RsaBits(2048)));

    desk.make_ssh_key("p384", &["-t", "ecdsa", "-b", "384"]);
    let refused = verify(&desk.sign("p384", "sealift"));
    assert_eq!(unknown(refused), Some(Unaccepted::KeyType("ecdsa-sha2-nistp384".into())));

    desk.make_ssh_key("ca", &["-t", "ed25519"]);
    assert!(desk.ssh_keygen(&["-q", "-s", "ca", "-I", "me", "-n", "os", "key.pub"]));
    let refused = verify(&desk.sign("key-cert.pub", "sealift"));
    assert!(matches!(unknown(refused), Some(Unaccepted::Certificate(_))));
}

#[test]
fn every_flip_and_cut_of_an_rsa_signature_fails() {
    let desk = Keygen::new();
    desk.make_ssh_key("key", &["-t", "rsa", "-b", "3072"]);
    let blob = desk.unarmor(&desk.sign("key", "sealift"));
    let judge = |blob: &[u8]| SshSignature::parse(blob).and_then(|good| good.verify(MESSAGE).cloned());
    assert!(judge(&blob).is_ok());
    for at in 0..blob.len() {
        let mut bad = blob.clone();
        bad[at] ^= 1 << (at % 8);
        assert!(judge(&bad).is_err(), "flip at {at}");
        assert!(judge(&blob[..at]).is_err(), "cut at {at}");
    }
}

#[test]
fn it_verifies_our_signatures() {
    for kind in KINDS {
        let desk = Keygen::new();
        desk.make_ssh_key("key", kind);
        let public = desk.public_key("key");
        let file = desk.read("key");
        let key = match SigningKey::from_openssh(&file, None) {
            Err(error) => {
                assert_eq!(error, SignError::AgentOnly(KeyType::Rsa));
                continue;
            }
            Ok(key) => key,
        };
        assert_eq!(key.public_key(), &public);
        assert_eq!(key.comment(), "me@desk");
        let envelope = key.sign(Namespace::Bundle, MESSAGE).expect("a signature");
        assert_eq!(key.sign(Namespace::Bundle, MESSAGE), Ok(envelope.clone()));
        desk.write("message.sig", sign::armored(&envelope));
        desk.write("signers", format!("os namespaces=\"sealift\" {}", desk.text("key.pub")));
        assert!(desk.accepts("os", &[]));
        desk.write("message", b"other");
        assert!(!desk.accepts("os", &[]));
    }
}

#[test]
fn its_other_keys_do_not_sign_here() {
    let desk = Keygen::new();
    let refusal = |options: &[&str], name: &str| {
        desk.make_ssh_key(name, options);
        SigningKey::from_openssh(&desk.read(name), None).err()
    };
    let agent = refusal(&["-t", "rsa", "-b", "3072"], "rsa");
    assert_eq!(agent, Some(SignError::AgentOnly(KeyType::Rsa)));
    let short = refusal(&["-t", "rsa", "-b", "2048"], "short");
    assert_eq!(short, Some(KeyError::RsaBits { bits: 2048 }.into()));
    let p384 = refusal(&["-t", "ecdsa", "-b", "384"], "p384");
    assert!(matches!(p384, Some(SignError::Key(KeyError::Unsupported(_)))));
    let pem = refusal(&["-t", "ecdsa", "-b", "256", "-m", "PEM"], "pem");
    assert_eq!(pem, Some(SignError::NotAPrivateKey));
    let public = SigningKey::from_openssh(&desk.read("pem.pub"), None);
    assert_eq!(public.err(), Some(SignError::PublicKey));
}

#[test]
fn what_it_signs_for_ed25519_is_what_we_sign() {
    let desk = Keygen::new();
    desk.write_private("key", &sign_key().to_openssh().expect("a file"));
    let ours = sign::armored(&sign_key().sign(Namespace::Bundle, MESSAGE).expect("a signature"));
    assert_eq!(desk.sign("key", "sealift"), ours);
}

#[test]
fn passphrases_work_both_ways() {
    let desk = Keygen::new();
    desk.make_ssh_key("key", &["-t", "ed25519", "-N", "secret"]);
    let public = desk.public_key("key");
    let file = desk.read("key");
    let open = |passphrase| SigningKey::from_openssh(&file, passphrase);
    assert_eq!(open(None).err(), Some(SignError::PassphraseNeeded));
    assert_eq!(open(Some(b"other")).err(), Some(SignError::WrongPassphrase));
    assert_eq!(open(Some(b"secret")).expect("it opens").public_key(), &public);

    let ours = sign_key().to_openssh_encrypted(b"secret", &[9; 16]).expect("a file");
    desk.write_private("ours", &ours);
    // Taking the passphrase off needs the right one.
    assert!(!desk.ssh_keygen(&["-p", "-f", "ours", "-P", "other", "-N", ""]));
    assert!(desk.ssh_keygen(&["-p", "-f", "ours", "-P", "secret", "-N", ""]));
    let read = SigningKey::from_openssh(&desk.read("ours"), None).expect("a key");
    assert_eq!(read.public_key(), sign_key().public_key());
}

#[test]
fn key_ids_are_its_fingerprints() {
    for kind in KINDS {
        let desk = Keygen::new();
        desk.make_ssh_key("key", kind);
        let key = desk.public_key("key");
        let output = Command::new("ssh-keygen")
            .args(["-l", "-f"])
            .arg(desk.path("key.pub"))
            .output()
            .expect("ssh-keygen is installed");
        let shown = String::from_utf8(output.stdout).expect("text");
        assert!(shown.contains(&format!(" {} ", key.id())), "{shown}");
    }
}

#[test]
fn signers_are_judged_alike() {
    let desk = Keygen::new();
    desk.make_ssh_key("key", &["-t", "ed25519"]);
    let key = desk.public_key("key");
    desk.make_ssh_key("other", &["-t", "ed25519"]);
    desk.sign("key", "sealift");
    let (own, other) = (desk.text("key.pub"), desk.text("other.pub"));
    let granted = "namespaces=\"sealift\"";
    let files = [
        format!("os {granted} {own}"),
        format!("# comment\n\n  \t\nos {granted} {own}"),
        format!("  os\t{granted}  {own}"),
        format!("os {granted} {}", own.replace('\n', "\r\n")),
        format!("app-*,!app-x,o? NAMESPACES=\"git,sealift\" {own}"),
        format!("!os,* {granted} {own}"),
        format!("*,!o* {granted} {own}"),
        format!("!os {granted} {own}"),
        format!("\"os\" {granted} {own}"),
        format!("\"app-x,os\" {granted} {own}"),
        format!("* namespaces=\"seal*\" {own}"),
        format!("* namespaces=\"*,!sealift\" {own}"),
        format!("* namespaces=\"git\" {own}"),
        format!("* namespaces=\"git\" {own}os {granted} {own}"),
        format!("* namespaces=\"Sealift\" {own}"),
        format!("* {granted} {other}"),
        format!("* {granted} {other}app-? {granted} {own}"),
        format!("* {granted},valid-after=\"20200101Z\" {own}"),
        format!("* {granted},valid-after=\"20250101Z\" {own}"),
        format!("* {granted},valid-after=\"202401011200Z\" {own}"),
        format!("* {granted},valid-after=\"202401011201Z\" {own}"),
        format!("* {granted},valid-before=\"20240101120000Z\" {own}"),
        format!("* {granted},valid-before=\"20240101115959Z\" {own}"),
        format!("* valid-before=\"20250101Z\",valid-after=\"20230101Z\",{granted} {own}"),
        String::new(),
        // What no line is: the error of ours is a refusal of theirs.
        format!("* {granted},{granted} {own}"),
        format!("* {granted},valid-after=\"soon\" {own}"),
        format!("* {granted},valid-after=\"20240101Z\",valid-before=\"20240101Z\" {own}"),
        format!("* namespaces=\"sealift {own}"),
        format!("* namespaces=sealift {own}"),
        format!("* {granted},sudo {own}"),
        format!("* {granted} {}", own.replace("AAAA", "AAAB")),
        format!("* {granted} {}", own.replace("ssh-ed25519", "ssh-rsa")),
        format!("* {granted}"),
        own.clone(),
        "os".into(),
    ];
    // 2024-01-01 12:00:00 UTC, in both tools' words.
    let now = Now::exactly(1_704_110_400);
    let mut accepted = 0;
    for file in files {
        desk.write("signers", &file);
        let signers = AllowedSigners::parse(file.as_bytes());
        for name in ["os", "app-x", "app-y", "OS", "o", "x"] {
            let ours = signers.as_ref().is_ok_and(|signers| signers.standing(key.id(), name, now).is_trusted());
            let theirs = desk.accepts(name, &["-O", "verify-time=20240101120000Z"]);
            assert_eq!(ours, theirs, "{name} by {file}");
            accepted += usize::from(ours);
        }
    }
    assert_eq!(accepted, 51);
}

#[test]
fn where_we_are_stricter() {
    let desk = Keygen::new();
    desk.make_ssh_key("key", &["-t", "ed25519"]);
    let key = desk.public_key("key");
    desk.sign("key", "sealift");
    let own = desk.text("key.pub");
    let now = Now::exactly(1_704_110_400);

    let unrestricted = format!("* {own}");
    desk.write("signers", &unrestricted);
    let signers = AllowedSigners::parse(unrestricted.as_bytes()).expect("a good file");
    assert!(desk.accepts("os", &[]));
    assert!(!signers.standing(key.id(), "os", now).is_trusted());

    // A malformed line after the one that fits.
    let broken = format!("* namespaces=\"sealift\" {own}* {own}os ssh-ed25519 %\n");
    desk.write("signers", &broken);
    let error = AllowedSigners::parse(broken.as_bytes());
    assert!(desk.accepts("os", &[]));
    assert!(matches!(error, Err(TrustFileError::Signers { line: 3, .. })));

    let authority = format!("* cert-authority,namespaces=\"sealift\" {own}");
    assert!(AllowedSigners::parse(authority.as_bytes()).is_err());
}

#[test]
fn its_revocation_lists_are_read() {
    let desk = Keygen::new();
    let names = ["gone", "hashed", "sha1", "good"];
    let [gone, hashed, sha1, good] = names.map(|name| {
        desk.make_ssh_key(name, &["-t", "ed25519"]);
        desk.public_key(name)
    });
    // Too short to sign, and listed all the same.
    desk.make_ssh_key("rsa", &["-t", "rsa", "-b", "2048"]);
    let spec = format!("# by hand\nhash: {}\nsha1: {}", hashed.id(), desk.text("sha1.pub"));
    desk.write("spec", spec);
    // Serial numbers of certificates come along and concern nobody here.
    desk.write("serials", "serial: 7\nserial: 9-20\nid: someone\n");
    assert!(desk.ssh_keygen(&["-q", "-k", "-f", "krl", "gone.pub", "rsa.pub", "spec"]));
    desk.make_ssh_key("ca", &["-t", "ed25519"]);
    assert!(desk.ssh_keygen(&["-q", "-k", "-u", "-s", "ca.pub", "-f", "krl", "serials"]));
    let list = RevocationList::parse(&desk.read("krl")).expect("a good list");
    for (key, name, revoked) in [
        (&gone, "gone.pub", true),
        (&hashed, "hashed.pub", true),
        (&sha1, "sha1.pub", true),
        (&good, "good.pub", false),
    ] {
        assert_eq!(list.contains(key), revoked, "{name}");
        // -Q succeeds where the key is not revoked.
        assert_eq!(desk.ssh_keygen(&["-Q", "-f", "krl", name]), !revoked, "{name}");
    }

    assert!(desk.ssh_keygen(&["-q", "-k", "-f", "empty"]));
    let empty = RevocationList::parse(&desk.read("empty"));
    assert_eq!(empty, Ok(RevocationList::default()));

    desk.write("text", format!("# gone\n{}{}", desk.text("gone.pub"), desk.text("rsa.pub")));
    let list = RevocationList::parse(&desk.read("text")).expect("a good list");
    assert!(list.contains(&gone) && !list.contains(&good));
    assert_eq!(desk.ssh_keygen(&["-Q", "-f", "text", "gone.pub"]), !list.contains(&gone));
}
