//! Adding signatures to existing bundles.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use sealift::trust::KeyId;
use sealift::trust::sign::{SignChange, SignStats, Signer, read_signature, sign_bundle};
use sealift::{Error, FileFault, Progress};
use sealift_desk::{is_root, skipped};
use sealift_format::{Envelope, Kind};
use sealift_verify::trust::sign::armored;

use crate::keyring::{Keyring, head_of, identity, no_passphrase, options, refusal};

fn change(bundle: &Path, change: &SignChange<'_>) -> Result<SignStats, Error> {
    sign_bundle(bundle, change, &Progress::default())
}

fn attach(bundle: &Path, file: &Path) -> Result<SignStats, Error> {
    change(bundle, &SignChange { attach: &[file.to_owned()], ..SignChange::default() })
}

fn remove(bundle: &Path, key: KeyId) -> Result<SignStats, Error> {
    change(bundle, &SignChange { remove: &[key], ..SignChange::default() })
}

/// Returns everything after the head, which signing must not change.
fn behind_head(bundle: &Path) -> Vec<u8> {
    let len = usize::try_from(head_of(bundle).head_len()).expect("a short head");
    fs::read(bundle).expect("a bundle").split_off(len)
}

/// Runs `ssh-keygen -Y sign` on the signed bytes.
fn sign_elsewhere(desk: &Keyring, bundle: &Path, key: &str, namespace: &str) -> PathBuf {
    desk.write("root", head_of(bundle).signed());
    let _ = fs::remove_file(desk.path("root.sig"));
    desk.ssh_keygen(&["-Y", "sign", "-q", "-n", namespace, "-f", key, "root"]);
    desk.path("root.sig")
}

#[test]
fn a_key_file_signs_what_ssh_keygen_verifies() {
    let desk = Keyring::new();
    desk.make_ssh_key("p256", &["-t", "ecdsa", "-b", "256"]);
    desk.make_ssh_key("ed", &["-t", "ed25519", "-N", "open sesame"]);
    let bundle = desk.pack(7);
    let before = behind_head(&bundle);
    let open = |key: &str| {
        let ask = |_: &Path| Ok("open sesame".to_owned().into());
        Signer::open_with(&desk.path(key), None, &ask).expect("a key that signs")
    };
    let keys = [open("p256"), open("ed"), open("ed")];
    let stats = change(&bundle, &SignChange { keys: &keys, ..SignChange::default() }).expect("it is signed");
    assert_eq!((stats.added.len(), stats.written, stats.owner_kept), (2, true, true));
    assert_eq!(behind_head(&bundle), before);
    let signers = format!("{}{}", desk.signer_line("os", "p256"), desk.signer_line("os", "ed"));
    desk.write("config/allowed_signers", signers);
    assert_eq!(desk.judge(&options(), &bundle).expect("it is trusted").signers.len(), 2);
    for (_, body) in head_of(&bundle).envelopes() {
        desk.write("sig", armored(body));
        desk.write("root", head_of(&bundle).signed());
        let root = fs::File::open(desk.path("root")).expect("a file");
        let verify = ["-Y", "verify", "-n", "sealift", "-f", "config/allowed_signers", "-I", "os", "-s", "sig"];
        assert!(desk.run_with("ssh-keygen", &verify, root.into()));
    }

    // Keys with deterministic signatures give the same bytes, and then nothing is written.
    let again = change(&bundle, &SignChange { keys: &keys, ..SignChange::default() }).expect("it is signed");
    assert_eq!((again.replaced.len(), again.written), (2, false));
}

#[test]
fn a_signature_from_elsewhere_is_attached() {
    let desk = Keyring::trusting(&["a", "b"]);
    let bundle = desk.pack(7);
    let armored = sign_elsewhere(&desk, &bundle, "a", "sealift");
    assert_eq!(attach(&bundle, &armored).expect("it fits").added, [desk.public_key("a").id()]);
    let binary = sign_elsewhere(&desk, &bundle, "b", "sealift");
    let envelope = read_signature(&binary, &head_of(&bundle), None).expect("it fits");
    attach(&bundle, &desk.written("binary", envelope.body)).expect("it fits");
    assert_eq!(desk.judge(&options(), &bundle).expect("it is trusted").signers.len(), 2);
}

#[test]
fn a_signature_that_does_not_fit_changes_nothing() {
    let desk = Keyring::trusting(&["a"]);
    let bundle = desk.signed(7, &["a"]);
    let other = desk.pack(8);
    let inode = fs::metadata(&bundle).expect("a bundle").ino();
    for (of, namespace) in [(&other, "sealift"), (&bundle, "file")] {
        let refused = attach(&bundle, &sign_elsewhere(&desk, of, "a", namespace));
        assert!(matches!(refused, Err(Error::File { fault: FileFault::Signature(_), .. })), "{refused:?}");
        assert_eq!(refusal(refused), (Some(Kind::Signature), 1));
    }
    assert_eq!(refusal(attach(&bundle, &desk.written("text", "x"))), (Some(Kind::Signature), 1));
    assert_eq!(refusal(attach(&bundle, &desk.path("nowhere"))), (None, 2));
    assert_eq!(fs::metadata(&bundle).expect("a bundle").ino(), inode);
}

#[test]
fn a_bad_signature_that_is_there_already_is_told() {
    let desk = Keyring::trusting(&["a", "b"]);
    let bundle = desk.pack(7);
    let foreign = head_of(&desk.signed(8, &["a"])).envelopes().map(Envelope::from).collect();
    let bad = head_of(&bundle).with_envelopes(foreign).expect("there is room").encode();
    let mut bytes = fs::read(&bundle).expect("a bundle");
    bytes[..bad.len()].copy_from_slice(&bad);
    fs::write(&bundle, bytes).expect("it can be written");
    let by = |key: &str| {
        let keys = [desk.signer(key)];
        change(&bundle, &SignChange { keys: &keys, ..SignChange::default() })
    };
    assert_eq!(refusal(by("b")), (Some(Kind::Signature), 1));
    // The same key repairs it.
    assert!(by("a").is_ok_and(|stats| stats.replaced.len() == 1));
    assert!(desk.judge(&options(), &bundle).is_ok());
}

#[test]
fn a_signature_is_replaced_and_removed() {
    let desk = Keyring::trusting(&["a", "b"]);
    let bundle = desk.signed(7, &["a", "b"]);
    // A different signature by the same key: ssh-keygen can hash with SHA-256.
    desk.write("root", head_of(&bundle).signed());
    desk.ssh_keygen(&["-Y", "sign", "-q", "-O", "hashalg=sha256", "-n", "sealift", "-f", "a", "root"]);
    let stats = attach(&bundle, &desk.path("root.sig")).expect("it fits");
    assert_eq!((stats.added.len(), stats.replaced.len(), stats.head.envelopes().count()), (0, 1, 2));

    remove(&bundle, desk.public_key("a").id()).expect("it is there");
    assert_eq!(desk.judge(&options(), &bundle).expect("b suffices").signers.len(), 1);
    let absent = remove(&bundle, desk.public_key("a").id());
    assert_eq!(refusal(absent), (None, 2));
    remove(&bundle, desk.public_key("b").id()).expect("it is there");
    assert_eq!(fs::read(&bundle).expect("a bundle"), fs::read(desk.pack(7)).expect("a bundle"));
}

/// A bundle without room is copied with a longer area: old signatures stay, and everything after the head is unchanged.
#[test]
fn the_area_grows_where_it_has_no_room() {
    let desk = Keyring::new();
    let names: Vec<String> = (0..30).map(|number| format!("key{number}")).collect();
    desk.trust(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let bundle = desk.pack_as(identity(7), 64);
    let (old, behind) = (head_of(&bundle), behind_head(&bundle));
    let first = [desk.signer("key0")];
    change(&bundle, &SignChange { keys: &first, ..SignChange::default() }).expect("it is signed");
    let one = head_of(&bundle);
    assert_eq!(one.area_len(), old.area_len());
    assert_eq!((one.signed(), behind_head(&bundle)), (old.signed(), behind.clone()));

    let keys: Vec<Signer> = names.iter().map(|name| desk.signer(name)).collect();
    let stats = change(&bundle, &SignChange { keys: &keys, ..SignChange::default() }).expect("it is signed");
    assert_eq!((stats.added.len(), stats.replaced.len()), (29, 1));
    let all = head_of(&bundle);
    assert_eq!((all.area_len(), all.signed()), (old.area_len() + 4096, old.signed()));
    assert_eq!(behind_head(&bundle), behind);
    assert_eq!(desk.judge(&options(), &bundle).expect("it is trusted").signers.len(), 30);
    assert_eq!(fs::metadata(&bundle).expect("a bundle").len(), all.file_len());
}

#[test]
fn the_file_keeps_its_place() {
    let desk = Keyring::trusting(&["a"]);
    let bundle = desk.pack(7);
    fs::set_permissions(&bundle, fs::Permissions::from_mode(0o640)).expect("chmod");
    symlink(&bundle, desk.path("link")).expect("a link");
    let rest = desk.written(".os-7.sealift.sealift-sign-partial", "what a killed run left");
    desk.sign(&desk.path("link"), &["a"]);
    assert!(fs::symlink_metadata(desk.path("link")).expect("a link").is_symlink());
    assert_eq!(fs::metadata(&bundle).expect("a bundle").permissions().mode() & 0o7777, 0o640);
    assert_eq!(head_of(&bundle).envelopes().count(), 1);
    assert!(!rest.exists());

    assert_eq!(refusal(change(&desk.path("tree"), &SignChange::default())), (None, 2));
    assert_eq!(refusal(change(&desk.written("text", "x"), &SignChange::default())).1, 1);
    let mut bytes = fs::read(&bundle).expect("a bundle");
    bytes.push(0);
    assert_eq!(refusal(change(&desk.written("long", &bytes), &SignChange::default())).0, Some(Kind::Trailing));
    bytes.truncate(bytes.len() - 2);
    assert_eq!(refusal(change(&desk.written("short", &bytes), &SignChange::default())).0, Some(Kind::Truncated));
}

#[test]
fn signers_at_once_lose_nothing() {
    let desk = Keyring::new();
    let names = ["a", "b", "c", "d"];
    desk.trust(&names);
    let bundle = desk.pack(7);
    std::thread::scope(|scope| {
        for name in names {
            let (desk, bundle) = (&desk, &bundle);
            scope.spawn(move || desk.sign(bundle, &[name]));
        }
    });
    assert_eq!(desk.judge(&options(), &bundle).expect("it is trusted").signers.len(), 4);
}

/// An ssh-agent of its own, which ends with the test.
struct Agent {
    child: Child,
    socket: PathBuf,
}

impl Agent {
    fn start(desk: &Keyring) -> Self {
        let socket = desk.path("agent");
        let mut command = Command::new("ssh-agent");
        command.arg("-D").arg("-a").arg(&socket).stdout(Stdio::null()).stderr(Stdio::null());
        let agent = Self { child: command.spawn().expect("openssh-client is installed"), socket };
        for _ in 0..500 {
            if agent.socket.exists() {
                return agent;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("ssh-agent does not start");
    }

    fn add(&self, key: &Path) {
        let mut command = Command::new("ssh-add");
        command.arg("-q").arg(key).env("SSH_AUTH_SOCK", &self.socket);
        assert!(command.status().expect("openssh-client is installed").success());
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn an_agent_signs_for_a_public_key() {
    let desk = Keyring::new();
    let agent = Agent::start(&desk);
    let mut signers = String::new();
    let mut keys = Vec::new();
    let kinds: [(&str, &[&str]); 3] =
        [("ed", &["-t", "ed25519"]), ("p256", &["-t", "ecdsa", "-b", "256"]), ("rsa", &["-t", "rsa", "-b", "3072"])];
    for (name, options) in kinds {
        desk.make_ssh_key(name, options);
        agent.add(&desk.path(name));
        signers.push_str(&desk.signer_line("os", name));
        let public = desk.path(&format!("{name}.pub"));
        keys.push(Signer::open_with(&public, Some(&agent.socket), &no_passphrase).expect("a public key"));
    }
    desk.write("config/allowed_signers", signers);
    let bundle = desk.pack(7);
    change(&bundle, &SignChange { keys: &keys, ..SignChange::default() }).expect("it is signed");
    assert_eq!(desk.judge(&options(), &bundle).expect("it is trusted").signers.len(), 3);
}

#[test]
fn what_an_agent_cannot_do_is_told() {
    let desk = Keyring::new();
    let agent = Agent::start(&desk);
    desk.make_ssh_key("ed", &["-t", "ed25519"]);
    desk.make_ssh_key("rsa", &["-t", "rsa", "-b", "3072"]);
    let bundle = desk.pack(7);
    let sign = |key: &str, socket: Option<&Path>| {
        let keys = [Signer::open_with(&desk.path(key), socket, &no_passphrase)?];
        change(&bundle, &SignChange { keys: &keys, ..SignChange::default() })
    };
    let cases = [
        (sign("ed.pub", Some(&agent.socket)), "it does not have the key"),
        (sign("ed.pub", Some(&desk.path("nowhere"))), "cannot talk to it"),
        (sign("ed.pub", None), "SSH_AUTH_SOCK"),
        (sign("rsa", None), "sign only through ssh-agent"),
    ];
    for (result, words) in cases {
        let error = result.expect_err("it cannot sign");
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!((error.kind(), error.exit_status()), (None, 2));
    }
}

/// As in ssh, a private key that others can read is no secret.
#[test]
fn a_key_that_others_can_read_or_change_does_not_sign() {
    let desk = Keyring::new();
    desk.make_ssh_key("a", &["-t", "ed25519"]);
    let bundle = desk.pack(7);
    for mode in [0o644, 0o660, 0o602, 0o666] {
        fs::set_permissions(desk.path("a"), fs::Permissions::from_mode(mode)).expect("it is ours");
        let opened = Signer::open_with(&desk.path("a"), None, &no_passphrase);
        assert!(matches!(opened, Err(Error::Foreign { .. })), "{mode:o}");
    }
    fs::set_permissions(desk.path("a"), fs::Permissions::from_mode(0o400)).expect("it is ours");
    desk.sign(&bundle, &["a"]);
    if !is_root() {
        return skipped("needs root: gives files away");
    }
    std::os::unix::fs::chown(desk.path("a"), Some(12345), None).expect("root may");
    assert!(matches!(Signer::open_with(&desk.path("a"), None, &no_passphrase), Err(Error::Foreign { .. })));
}
