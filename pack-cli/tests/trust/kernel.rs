//! Signatures for the kernel, compared with those that fsverity and OpenSSL make and accept. `cargo xtask vm` tests what a kernel does with them.

use std::fs;
use std::path::{Path, PathBuf};

use sealift::trust::KernelSignError;
use sealift::trust::TrustOptions;
use sealift::trust::sign::{KernelChange, KernelSigner, SignChange, SignStats, sign_bundle, signed_bytes};
use sealift::{Envelope, Error, FileFault, Input, Limits, Progress};
use sealift_format::Kind;

use crate::keyring::{Keyring, head_of, identity, options, refusal};

impl Keyring {
    /// Makes a private key and its certificate, `NAME.key` and `NAME.crt`.
    fn make_certificate(&self, name: &str, options: &[&str]) {
        let (key, certificate) = (format!("{name}.key"), format!("{name}.crt"));
        let subject = format!("/O=Example/CN={name}");
        let common = ["req", "-x509", "-nodes", "-days", "2", "-subj", &subject, "-keyout", &key, "-out", &certificate];
        self.openssl(&[&common[..], options].concat());
    }

    fn openssl(&self, arguments: &[&str]) {
        assert!(self.run("openssl", arguments), "openssl {arguments:?}");
    }

    fn kernel_signer(&self, key: &str, certificate: &str) -> Result<KernelSigner, Error> {
        let path = |name: &str, end: &str| self.path(&format!("{name}.{end}"));
        KernelSigner::open(Some(&path(key, "key")), &path(certificate, "crt"))
    }

    fn sign_for_kernel(&self, bundle: &Path, name: &str) -> SignStats {
        let kernel = self.kernel_signer(name, name).expect("a key and its certificate");
        change(bundle, &SignChange { kernel: Some(&kernel), ..SignChange::default() }).expect("it is signed")
    }

    /// Returns the file that `fsverity sign` makes for the bundle's index.
    fn fsverity_sign(&self, bundle: &Path, name: &str) -> PathBuf {
        let opened = Input::open(bundle).expect("a bundle").open_bundle(Limits::default()).expect("it is sound");
        self.write("index", opened.index.bytes());
        let (key, certificate) = (format!("--key={name}.key"), format!("--cert={name}.crt"));
        let signature = format!("{name}.p7s");
        assert!(self.run("fsverity", &["sign", "index", &signature, &key, &certificate]), "fsverity sign");
        self.path(&signature)
    }
}

const P256: [&str; 4] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
const RSA: [&str; 2] = ["-newkey", "rsa:2048"];

fn change(bundle: &Path, change: &SignChange<'_>) -> Result<SignStats, Error> {
    sign_bundle(bundle, change, &Progress::default())
}

fn signature_of(bundle: &Path) -> Vec<u8> {
    let head = head_of(bundle);
    let mut found = head.bodies(Envelope::KERNEL_SIGNATURE);
    let body = found.next().expect("it has one").to_vec();
    assert_eq!(found.next(), None);
    body
}

#[test]
fn it_is_what_fsverity_makes() {
    let desk = Keyring::new();
    desk.make_certificate("rsa", &RSA);
    desk.make_certificate("long", &["-newkey", "rsa:3072"]);
    desk.make_certificate("ec", &P256);
    let bundle = desk.pack(7);
    for name in ["rsa", "long", "ec"] {
        desk.sign_for_kernel(&bundle, name);
        let ours = signature_of(&bundle);
        let theirs = || fs::read(desk.fsverity_sign(&bundle, name)).expect("a signature");
        if name == "ec" {
            // OpenSSL's ECDSA numbers, which are at the end, differ each time, and vary in length.
            let theirs = (0..200).map(|_| theirs()).find(|theirs| theirs.len() == ours.len()).expect("some are");
            let proof = ours.len() - 72;
            assert_eq!((&ours[..proof], ours.len()), (&theirs[..proof], theirs.len()), "{name}");
        } else {
            assert_eq!(ours, theirs(), "{name}");
        }
        // Signing again writes nothing.
        assert!(!desk.sign_for_kernel(&bundle, name).written, "{name}");

        desk.write("signature", &ours);
        desk.write("digest", signed_bytes(&head_of(&bundle)));
        let certificate = format!("{name}.crt");
        let verify = ["cms", "-verify", "-binary", "-inform", "DER", "-in", "signature", "-content", "digest"];
        let by = ["-certfile", &certificate, "-nointern", "-noverify", "-out", "verified"];
        desk.openssl(&[&verify[..], &by].concat());
        desk.write("digest", b"another");
        assert!(!desk.run("openssl", &[&verify[..], &by].concat()), "{name}");
    }
}

#[test]
fn what_others_made_is_attached() {
    let desk = Keyring::new();
    desk.make_certificate("rsa", &RSA);
    desk.make_certificate("ec", &P256);
    let (bundle, other) = (desk.pack(7), desk.path("other.sealift"));
    desk.write("tree/etc/motd", "hello again\n");
    fs::copy(desk.pack(8), &other).expect("a copy");
    let certificate = |name: &str| KernelSigner::open(None, &desk.path(&format!("{name}.crt"))).expect("a certificate");
    let attach = |bundle: &Path, file: &Path, kernel: Option<&KernelSigner>| {
        change(bundle, &SignChange { attach: &[file.to_owned()], kernel, ..SignChange::default() })
    };
    for name in ["rsa", "ec"] {
        let (file, own) = (desk.fsverity_sign(&bundle, name), certificate(name));
        let stats = attach(&bundle, &file, Some(&own)).expect("it fits");
        assert!(matches!(stats.kernel, KernelChange::Added | KernelChange::Replaced));
        assert_eq!(signature_of(&bundle), fs::read(&file).expect("a signature"));
        // A signature of another index is refused if the certificate is given.
        let refused = attach(&other, &file, Some(&own));
        assert!(
            matches!(&refused, Err(Error::File { fault: FileFault::KernelSignature(KernelSignError::Mismatch), .. })),
            "{refused:?}"
        );
        assert_eq!(refusal(refused), (Some(Kind::Signature), 1));
    }
    let of_rsa = desk.fsverity_sign(&bundle, "rsa");
    let refused = attach(&bundle, &of_rsa, Some(&certificate("ec")));
    assert!(
        matches!(refused, Err(Error::File { fault: FileFault::KernelSignature(KernelSignError::OtherSigner), .. })),
        "{refused:?}"
    );

    // Made by OpenSSL alone, as the help of `root` says. If it has attributes, only the kernel can check it.
    desk.write("digest", signed_bytes(&head_of(&bundle)));
    let sign = ["cms", "-sign", "-binary", "-nocerts", "-nosmimecap", "-md", "sha256", "-outform", "DER"];
    let by = ["-signer", "rsa.crt", "-inkey", "rsa.key", "-in", "digest", "-out", "made.p7s"];
    desk.openssl(&[&sign[..], &["-noattr"], &by].concat());
    attach(&bundle, &desk.path("made.p7s"), Some(&certificate("rsa"))).expect("it fits");
    desk.openssl(&[&sign[..], &by].concat());
    let refused = attach(&bundle, &desk.path("made.p7s"), Some(&certificate("rsa")));
    assert!(
        matches!(refused, Err(Error::File { fault: FileFault::KernelSignature(KernelSignError::NotPlain), .. })),
        "{refused:?}"
    );
    attach(&bundle, &desk.path("made.p7s"), None).expect("it has the form");

    // A malformed signature is refused, and so is a second one.
    let before = fs::read(&bundle).expect("a bundle");
    let mut cut = fs::read(&of_rsa).expect("a signature");
    cut.pop();
    assert_eq!(refusal(attach(&bundle, &desk.written("cut", cut), None)), (Some(Kind::Signature), 1));
    let both = [of_rsa, desk.path("made.p7s")];
    let refused = change(&bundle, &SignChange { attach: &both, ..SignChange::default() });
    assert_eq!(refusal(refused), (Some(Kind::Signature), 1));
    assert_eq!(fs::read(&bundle).expect("a bundle"), before);
}

#[test]
fn it_counts_for_nothing_and_stays() {
    let desk = Keyring::trusting(&["a"]);
    desk.make_certificate("ec", &P256);
    let bundle = desk.pack(7);
    assert_eq!(desk.sign_for_kernel(&bundle, "ec").kernel, KernelChange::Added);
    assert_eq!(desk.refusal(&options(), &bundle), (Some(Kind::Untrusted), 3));
    let unsigned = TrustOptions { allow_unsigned: true, ..options() };
    assert!(
        desk.judge(&unsigned, &bundle).is_ok_and(|verdict| verdict.unsigned && verdict.unknown_envelopes.is_empty())
    );

    let signature = signature_of(&bundle);
    desk.sign(&bundle, &["a"]);
    assert_eq!(signature_of(&bundle), signature);
    let verdict = desk.judge(&options(), &bundle).expect("it is trusted");
    assert_eq!((verdict.signers.len(), verdict.others.len()), (1, 0));
    let remove = [desk.public_key("a").id()];
    change(&bundle, &SignChange { remove: &remove, ..SignChange::default() }).expect("it is there");
    assert_eq!(signature_of(&bundle), signature);

    // An envelope that is not a signature fails the bundle, and can be replaced or removed.
    let head = head_of(&bundle).with_envelopes(vec![Envelope { kind: Envelope::KERNEL_SIGNATURE, body: vec![1] }]);
    let mut bytes = fs::read(&bundle).expect("a bundle");
    let head = head.expect("there is room").encode();
    bytes[..head.len()].copy_from_slice(&head);
    fs::write(&bundle, bytes).expect("it can be written");
    assert_eq!(desk.refusal(&unsigned, &bundle), (Some(Kind::Signature), 1));
    assert_eq!(desk.sign_for_kernel(&bundle, "ec").kernel, KernelChange::Replaced);
    let take_away = SignChange { remove_kernel: true, ..SignChange::default() };
    assert_eq!(change(&bundle, &take_away).expect("it is there").kernel, KernelChange::Removed);
    assert!(head_of(&bundle).envelopes().next().is_none());
    assert_eq!(refusal(change(&bundle, &take_away)), (None, 2));
}

#[test]
fn what_does_not_fit_is_told() {
    let desk = Keyring::new();
    desk.make_certificate("rsa", &RSA);
    desk.make_certificate("ec", &P256);
    desk.make_certificate("short", &["-newkey", "rsa:1024"]);
    desk.make_certificate("p384", &["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-384"]);
    desk.make_certificate("ed", &["-newkey", "ed25519"]);
    desk.openssl(&["pkey", "-in", "rsa.key", "-traditional", "-out", "old.key"]);
    desk.openssl(&["pkcs8", "-topk8", "-in", "rsa.key", "-passout", "pass:secret", "-out", "secret.key"]);
    fs::copy(desk.path("ec.crt"), desk.path("certificate.key")).expect("a copy");
    let bundle = desk.pack(7);
    let before = fs::read(&bundle).expect("a bundle");
    for (key, certificate, why) in [
        ("rsa", "ec", "the certificate belongs to another key"),
        ("ec", "rsa", "the certificate belongs to another key"),
        ("short", "short", "2048, 3072 or 4096 bits, but this one has 1024"),
        ("p384", "p384", "only RSA and P-256"),
        ("ed", "ed", "only RSA and P-256"),
        ("old", "rsa", "not a private key in PEM"),
        ("secret", "rsa", "it has a passphrase"),
        ("certificate", "ec", "not a private key"),
        ("nowhere", "ec", "No such file"),
        ("ec", "nowhere", "No such file"),
    ] {
        let signed = desk
            .kernel_signer(key, certificate)
            .and_then(|kernel| change(&bundle, &SignChange { kernel: Some(&kernel), ..SignChange::default() }));
        let error = signed.expect_err("it does not fit");
        assert!(error.to_string().contains(why), "{key} {certificate}: {error}");
        assert_eq!(error.exit_status(), 2, "{error}");
    }
    let refused = KernelSigner::open(None, &desk.path("rsa.key")).expect_err("it is a key");
    assert!(refused.to_string().contains("an X.509 certificate"), "{refused}");
    assert_eq!(fs::read(&bundle).expect("a bundle"), before);

    // Envelopes of other kinds leave no room in the bundle.
    let bundle = desk.pack_as(identity(9), 64);
    let old = head_of(&bundle);
    let foreign = Envelope { kind: 700, body: vec![7; (1 << 20) - 38 - 6 - 100] };
    let head = old.clone().with_envelopes(vec![foreign]).expect("there is room").encode();
    let behind = usize::try_from(old.head_len()).expect("a short head");
    let bytes = [&head[..], &fs::read(&bundle).expect("a bundle")[behind..]].concat();
    fs::write(&bundle, &bytes).expect("it can be written");
    let kernel = desk.kernel_signer("rsa", "rsa").expect("a key and its certificate");
    let refused = change(&bundle, &SignChange { kernel: Some(&kernel), ..SignChange::default() }).expect_err("no room");
    assert!(matches!(refused, Error::NoRoom { .. }), "{refused}");
    assert_eq!(fs::read(&bundle).expect("a bundle"), bytes);
}
