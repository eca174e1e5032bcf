//! Which bundles are accepted, and with which kind and exit status the others are refused.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use sealift::trust::{TrustOptions, bound_name};
use sealift::unpack::unpack;
use sealift::{Error, FileFault, Progress};
use sealift::{InstallOptions, TreeOptions};
use sealift_format::{Envelope, Identity, Kind};

use crate::keyring::{Keyring, NOW, head_of, identity, options, refusal};

#[test]
fn one_trusted_key_suffices() {
    let desk = Keyring::trusting(&["a", "b"]);
    desk.make_ssh_key("stranger", &["-t", "ed25519"]);
    let bundle = desk.signed(7, &["a", "stranger"]);
    let verdict = desk.judge(&options(), &bundle).expect("it is trusted");
    assert_eq!(verdict.signers.len(), 1);
    assert_eq!(verdict.others.len(), 1);
    let states = desk.guard(&options()).expect("good files").inspect(&head_of(&bundle));
    assert_eq!(states.len(), 2);

    assert_eq!(desk.refusal(&options(), &desk.signed(7, &["stranger"])), (Some(Kind::Untrusted), 3));
    assert_eq!(desk.refusal(&options(), &desk.pack(7)), (Some(Kind::Untrusted), 3));
}

#[test]
fn an_empty_file_trusts_nobody_and_a_malformed_one_is_told() {
    let desk = Keyring::trusting(&["a"]);
    let bundle = desk.signed(7, &["a"]);
    let path = desk.written("mine", "");
    let mut given = TrustOptions { signers: Some(path), ..options() };
    assert_eq!(desk.refusal(&given, &bundle), (Some(Kind::Untrusted), 3));
    desk.write("mine", "os ssh-ed25519 AAAA\n");
    assert!(matches!(desk.guard(&given), Err(Error::File { fault: FileFault::Trust(_), .. })));
    assert_eq!(refusal(desk.guard(&given)), (None, 2));
    given.signers = Some(desk.path("nowhere"));
    assert_eq!(refusal(desk.guard(&given)), (None, 2));
    // The usual file may be missing.
    fs::remove_file(desk.path("config/allowed_signers")).expect("it is there");
    assert_eq!(desk.refusal(&options(), &bundle), (Some(Kind::Untrusted), 3));
    for name in ["allowed_signers", "revoked", "thresholds", "compatible"] {
        let path = desk.written(&format!("config/{name}"), "a=b c\n");
        assert!(matches!(desk.guard(&options()), Err(Error::File { fault: FileFault::Trust(_), .. })), "{name}");
        fs::remove_file(path).expect("it is there");
    }
}

#[test]
fn thresholds_count_keys() {
    let desk = Keyring::trusting(&["a", "b"]);
    let one = desk.signed(7, &["a"]);
    let both = desk.signed(8, &["a", "b"]);
    let two = TrustOptions { thresholds: vec!["os=2".to_owned()], ..options() };
    assert_eq!(desk.refusal(&two, &one), (Some(Kind::Untrusted), 3));
    assert!(desk.judge(&two, &both).is_ok());
    desk.write("config/thresholds", "# two people\n2\n");
    assert_eq!(desk.refusal(&options(), &one), (Some(Kind::Untrusted), 3));
    assert!(desk.judge(&options(), &both).is_ok());
    // The option replaces the file.
    let other = TrustOptions { thresholds: vec!["app-*=3".to_owned()], ..options() };
    assert!(desk.judge(&other, &one).is_ok());
    let bad = TrustOptions { thresholds: vec!["0".to_owned()], ..options() };
    assert_eq!(refusal(desk.guard(&bad)), (None, 2));
}

#[test]
fn expiry_is_judged_at_the_time_given() {
    let desk = Keyring::trusting(&["a"]);
    let bundle = desk.pack_as(Identity { expires: Some(NOW), ..identity(7) }, 1024);
    desk.sign(&bundle, &["a"]);
    assert_eq!(desk.refusal(&options(), &bundle), (Some(Kind::Expired), 3));
    let before = TrustOptions { time: Some(NOW - 1), ..options() };
    assert!(desk.judge(&before, &bundle).is_ok());
    let unsigned = TrustOptions { allow_unsigned: true, ..options() };
    assert_eq!(desk.refusal(&unsigned, &bundle), (Some(Kind::Expired), 3));
}

#[test]
fn tags_are_the_devices() {
    let desk = Keyring::trusting(&["a"]);
    let bundle = desk.pack_as(Identity { compatible: vec!["board-a".to_owned()], ..identity(7) }, 1024);
    desk.sign(&bundle, &["a"]);
    assert_eq!(desk.refusal(&options(), &bundle), (Some(Kind::Incompatible), 3));
    desk.write("config/compatible", "board-b # no\n");
    assert!(matches!(desk.guard(&options()), Err(Error::File { fault: FileFault::Trust(_), .. })));
    desk.write("config/compatible", "# what it is\nboard-b\n");
    assert_eq!(desk.refusal(&options(), &bundle), (Some(Kind::Incompatible), 3));
    let given = TrustOptions { compatible: vec!["board-a".to_owned()], ..options() };
    assert!(desk.judge(&given, &bundle).is_ok());
    let bad = TrustOptions { compatible: vec!["a b".to_owned()], ..options() };
    assert_eq!(refusal(desk.guard(&bad)), (None, 2));
}

#[test]
fn unsigned_is_for_one_call_and_waives_nothing_else() {
    let desk = Keyring::trusting(&["a"]);
    let bundle = desk.pack(7);
    let unsigned = TrustOptions { allow_unsigned: true, ..options() };
    assert!(desk.judge(&unsigned, &bundle).is_ok_and(|verdict| verdict.unsigned));
    desk.take(&unsigned, &bundle).expect("it is taken");
    assert!(!desk.path("state").exists(), "an unsigned bundle raises no state");

    // A signature that does not match still fails the bundle.
    let other = head_of(&desk.signed(8, &["a"]));
    let head = head_of(&bundle).with_envelopes(other.envelopes().map(Envelope::from).collect()).expect("there is room");
    let guard = desk.guard(&unsigned).expect("good files");
    assert_eq!(refusal(guard.judge(&head)), (Some(Kind::Signature), 1));
    // An unknown envelope is reported and does not count.
    let strange = vec![Envelope { kind: 3, body: vec![1] }];
    let head = head_of(&bundle).with_envelopes(strange).expect("there is room");
    assert!(guard.judge(&head).is_ok_and(|verdict| verdict.unknown_envelopes == [3]));

    desk.take(&options(), &desk.signed(9, &["a"])).expect("it is trusted");
    assert_eq!(desk.refusal(&unsigned, &bundle), (Some(Kind::Downgrade), 3));
}

#[test]
fn a_target_is_bound_to_its_version() {
    let desk = Keyring::trusting(&["a"]);
    let (old, new) = (desk.signed(7, &["a"]), desk.signed(8, &["a"]));
    let target = desk.path("target");
    desk.take_to(&target, desk.admit(&options(), &new).expect("it is trusted")).expect("a new tree");
    // The device forgot that it installed the bundle, but the target did not.
    let check = |options: &TrustOptions, bundle: &Path| {
        let options = TrustOptions { state: Some(desk.path("lost")), ..options.clone() };
        let tree = TreeOptions { update: true, ..TreeOptions::default() };
        let how = InstallOptions { dry_run: true, tree, ..InstallOptions::default() };
        unpack(desk.admit(&options, bundle)?, &target, &how, &Progress::default())
    };
    assert_eq!(refusal(check(&options(), &old)), (Some(Kind::Downgrade), 3));
    assert!(check(&TrustOptions { allow_downgrade: true, ..options() }, &old).is_ok());

    // A bundle signed by a stolen key can be replaced by the owners of the other keys.
    desk.trust(&["b", "c"]);
    let line = [desk.signer_line("os", "a"), desk.signer_line("os", "b")].concat();
    desk.write("config/allowed_signers", line);
    desk.write("config/revoked", desk.public_key("a").to_openssh() + "\n");
    let honest = desk.signed(6, &["b"]);
    assert!(check(&options(), &honest).is_ok());
}

#[test]
fn a_target_is_bound_to_its_first_name() {
    let desk = Keyring::new();
    let bundle = desk.pack(7);
    let other = desk.pack_as(Identity { name: "app".to_owned(), ..identity(1) }, 1024);
    let target = desk.path("target");
    let unsigned = TrustOptions { allow_unsigned: true, ..options() };
    let check_bound = |target: &Path, bundle: &Path| {
        let tree = TreeOptions { update: true, ..TreeOptions::default() };
        let how = InstallOptions { dry_run: true, tree, ..InstallOptions::default() };
        unpack(desk.admit(&unsigned, bundle)?, target, &how, &Progress::default())
    };
    assert!(check_bound(&target, &bundle).is_ok());
    desk.take_to(&target, desk.admit(&unsigned, &bundle).expect("it is waived")).expect("a new tree");
    assert_eq!(bound_name(&target).expect("sound state").as_deref(), Some("os"));
    // However its path is written, it is the same target.
    symlink("target", desk.path("link")).expect("a link");
    for written in ["target", "target/", "link", "link/", "./link/", "link//", "target/."].map(|name| desk.path(name)) {
        assert!(check_bound(&written, &bundle).is_ok(), "{}", written.display());
        let refused = check_bound(&written, &other);
        assert!(matches!(refused, Err(Error::OtherName { .. })), "{}: {refused:?}", written.display());
        assert_eq!(refusal(refused).1, 3);
    }

    desk.write(".target.sealift-state/head", "not a head");
    assert_eq!(refusal(bound_name(&target)), (None, 2));
    assert_eq!(refusal(check_bound(&target, &other)).1, 2, "what is damaged is no consent");
    fs::remove_dir_all(&target).expect("it is there");
    assert_eq!(bound_name(&target).expect("nothing is there"), None);
}
