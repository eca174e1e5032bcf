//! What a device remembers between bundles.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use sealift::InstallOptions;
use sealift::trust::{DeviceState, TrustOptions};
use sealift::unpack::unpack;
use sealift::{Error, Progress};
use sealift_format::{Identity, Kind};

use crate::keyring::{Keyring, NOW, identity, options, refusal};

const DOWNGRADE: (Option<Kind>, u8) = (Some(Kind::Downgrade), 3);
const EXPIRED: (Option<Kind>, u8) = (Some(Kind::Expired), 3);

fn floor(desk: &Keyring) -> Option<u64> {
    let report = desk.guard(&options()).expect("good files").describe().expect("sound state");
    report.floors.first().and_then(|floor| floor.version)
}

#[test]
fn a_floor_only_rises_until_it_is_reset() {
    let desk = Keyring::trusting(&["a"]);
    let [older, newer] = [desk.signed(6, &["a"]), desk.signed(7, &["a"])];
    desk.take(&options(), &older).expect("nothing was taken before");
    desk.take(&options(), &newer).expect("it is newer");
    desk.take(&options(), &newer).expect("the same again");
    assert_eq!(desk.refusal(&options(), &older), DOWNGRADE);

    let waived = TrustOptions { allow_downgrade: true, ..options() };
    assert_eq!(desk.judge(&waived, &older).expect("it is waived").below_floor, Some(7));
    desk.take(&waived, &older).expect("it is waived");
    assert_eq!(desk.refusal(&options(), &older), DOWNGRADE);
    assert_eq!(floor(&desk), Some(7));

    let store = DeviceState::at(desk.path("state"));
    let forgotten = store.reset_floor("os").expect("it can be written").expect("there was one");
    assert_eq!(forgotten.records()[0].version, 7);
    assert!(store.reset_floor("os").expect("nothing is there").is_none());
    assert!(store.reset_floor("../os").is_err());
    desk.take(&options(), &older).expect("nothing forbids it");
    // Other names have their own floors.
    assert_eq!(store.names().expect("sound state"), ["os"]);
}

#[test]
fn the_state_is_for_nobody_elses_eyes() {
    let desk = Keyring::trusting(&["a"]);
    desk.take(&options(), &dated(&desk, ("os", 7), 5, None, &["a"])).expect("it is trusted");
    let mode = |name: &str| fs::metadata(desk.path(name)).expect("it is there").permissions().mode() & 0o777;
    assert_eq!([mode("state"), mode("state/floors")], [0o700, 0o700]);
    let text = fs::read_to_string(desk.path("state/floors/os")).expect("text");
    let said = format!("sealift floor 2 os\n7 5 {}\n", desk.public_key("a").id());
    assert_eq!(text, format!("{said}check {}\n", blake3::hash(said.as_bytes())));
}

#[test]
fn revoking_a_key_withdraws_what_it_raised() {
    let desk = Keyring::trusting(&["a", "thief"]);
    desk.take(&options(), &desk.signed(7, &["a"])).expect("it is trusted");
    let stolen = desk.pack_as(Identity { created: i64::MAX, ..identity(u64::MAX) }, 1024);
    desk.sign(&stolen, &["thief"]);
    desk.take(&options(), &stolen).expect("nobody knows yet");
    let next = desk.pack_as(Identity { expires: Some(i64::MAX), ..identity(8) }, 1024);
    desk.sign(&next, &["a"]);
    assert_eq!(desk.refusal(&options(), &next), DOWNGRADE);
    let by_clock = TrustOptions { time: None, ..options() };

    fs::copy(desk.path("thief.pub"), desk.path("config/revoked")).expect("a list of one key");
    assert_eq!(desk.refusal(&options(), &stolen), (Some(Kind::Revoked), 3));
    assert!(desk.judge(&options(), &next).is_ok());
    assert!(desk.judge(&by_clock, &next).is_ok());
    assert_eq!(floor(&desk), Some(7));
    assert_eq!(desk.refusal(&options(), &desk.signed(6, &["a"])), DOWNGRADE);

    // The same with a binary list, given by an option.
    desk.ssh_keygen(&["-k", "-q", "-f", "krl", "thief.pub"]);
    fs::remove_file(desk.path("config/revoked")).expect("it is there");
    assert_eq!(desk.refusal(&options(), &next), DOWNGRADE);
    let given = TrustOptions { revoked: Some(desk.path("krl")), ..options() };
    assert!(desk.judge(&given, &next).is_ok());
}

/// Packs a bundle of this name with dates of its own, signed by these keys.
fn dated(desk: &Keyring, (name, version): (&str, u64), created: i64, expires: Option<i64>, keys: &[&str]) -> PathBuf {
    let bundle = desk.pack_as(Identity { name: name.into(), created, expires, ..identity(version) }, 1024);
    let named = bundle.with_file_name(format!("{name}-{version}-{created}.sealift"));
    fs::rename(&bundle, &named).expect("it can be renamed");
    desk.sign(&named, keys);
    named
}

const FAR: i64 = 1 << 62;

#[test]
fn a_date_of_one_key_does_not_move_the_time_beyond_the_clock() {
    let desk = Keyring::trusting(&["a", "b"]);
    let by_clock = TrustOptions { time: None, ..options() };
    let next = dated(&desk, ("os", 8), NOW, Some(FAR), &["a"]);
    desk.take(&by_clock, &dated(&desk, ("os", 7), FAR, None, &["a"])).expect("a date to come is no fault");
    assert!(desk.judge(&by_clock, &next).is_ok());
    // A date that two keys signed is believed.
    desk.take(&by_clock, &dated(&desk, ("os", 7), FAR, None, &["a", "b"])).expect("a date to come is no fault");
    assert_eq!(desk.refusal(&by_clock, &next), EXPIRED);
    assert!(desk.judge(&options(), &next).is_ok(), "--time overrides it");
    let store = DeviceState::at(desk.path("state"));
    assert!(store.reset_floor("os").is_ok_and(|floors| floors.is_some()));
    assert!(desk.judge(&by_clock, &next).is_ok(), "trust reset forgets it");
}

#[test]
fn the_date_of_one_name_is_not_another_names_time() {
    let desk = Keyring::trusting(&["a", "b"]);
    let lines = ["a", "b"].map(|key| desk.signer_line("*", key) + "\n");
    desk.write("config/allowed_signers", lines.concat());
    let by_clock = TrustOptions { time: None, ..options() };
    let os = dated(&desk, ("os", 8), NOW, Some(FAR), &["a"]);
    let app = dated(&desk, ("app", 8), NOW, Some(FAR), &["a"]);
    desk.take(&by_clock, &dated(&desk, ("app", 7), FAR, None, &["a", "b"])).expect("a date to come is no fault");
    assert!(desk.judge(&by_clock, &os).is_ok());
    assert_eq!(desk.refusal(&by_clock, &app), EXPIRED);
}

#[test]
fn what_was_judged_before_another_run_took_a_newer_one_is_refused() {
    let desk = Keyring::trusting(&["a"]);
    let [older, newer] = [6, 7].map(|version| desk.signed(version, &["a"]));
    let [slow, quick] =
        [&older, &newer].map(|bundle| desk.admit(&options(), bundle).expect("nothing was taken before"));
    desk.take_to(&desk.path("quick"), quick).expect("it can be remembered");
    assert_eq!(refusal(desk.take_to(&desk.path("slow"), slow)), DOWNGRADE);
    assert!(!desk.path("slow").exists(), "nothing of it can be reached");
    assert_eq!(floor(&desk), Some(7));
    assert_eq!(refusal(desk.admit(&options(), &older)), DOWNGRADE);
}

#[test]
fn a_state_that_cannot_be_kept_is_known_before_anything_is_installed() {
    let desk = Keyring::trusting(&["a"]);
    // Not even root can create a directory in /proc, or in a file.
    desk.write("state-file", "");
    for state in [desk.path("state-file/state"), PathBuf::from("/proc/self/fdinfo/state")] {
        let there = TrustOptions { state: Some(state), ..options() };
        if desk.guard(&there).is_err() {
            continue;
        }
        let signed = desk.signed(7, &["a"]);
        let take =
            |options: &TrustOptions, bundle: &Path| desk.take_to(&desk.path("target"), desk.admit(options, bundle)?);
        assert_eq!(refusal(take(&there, &signed)), (None, 2));
        assert!(!desk.path(".target.sealift-partial").exists(), "it did not begin");
        let unsigned = TrustOptions { allow_unsigned: true, ..there };
        assert_eq!(refusal(take(&unsigned, &signed)), (None, 2));
        // If nothing is to be remembered, no state is needed.
        take(&unsigned, &desk.pack(7)).expect("it is waived");
        fs::remove_dir_all(desk.path("target")).expect("it was made");
    }
}

#[test]
fn a_trial_writes_nothing() {
    let desk = Keyring::trusting(&["a"]);
    let bundle = desk.admit(&options(), &desk.signed(7, &["a"])).expect("it is trusted");
    let trial = InstallOptions { dry_run: true, ..InstallOptions::default() };
    unpack(bundle, &desk.path("target"), &trial, &Progress::default()).expect("it could be remembered");
    assert!(!desk.path("state").exists() && !desk.path("target").exists());
}

#[test]
fn a_state_of_others_is_refused() {
    let desk = Keyring::trusting(&["a"]);
    let bundle = desk.signed(7, &["a"]);
    desk.take(&options(), &bundle).expect("it is trusted");
    for name in ["state", "state/floors", "state/floors/os"] {
        let path = desk.path(name);
        let before = fs::metadata(&path).expect("it is there").permissions();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).expect("it is ours");
        assert_eq!(desk.refusal(&options(), &bundle), (None, 2), "{name}");
        fs::set_permissions(&path, before).expect("it is ours");
    }
    // A link that another user planted is not followed for writing.
    let precious = desk.written("precious", "kept");
    std::os::unix::fs::symlink(&precious, desk.path("state/floors/.os.new")).expect("a link");
    std::os::unix::fs::symlink(&precious, desk.path("state/floors/.partial")).expect("a link");
    desk.take(&options(), &desk.signed(8, &["a"])).expect("it is trusted");
    assert_eq!(fs::read(&precious).expect("it is there"), b"kept");
}

#[test]
fn every_flipped_bit_of_a_floor_is_said() {
    let desk = Keyring::trusting(&["a"]);
    desk.take(&options(), &desk.signed(7, &["a"])).expect("it is trusted");
    let (store, path) = (DeviceState::at(desk.path("state")), desk.path("state/floors/os"));
    let good = fs::read(&path).expect("it is there");
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            fs::write(&path, bad).expect("it can be written");
            assert!(matches!(store.floors("os"), Err(Error::Floor { .. })), "bit {bit} of byte {at}");
        }
    }
    // A sound file in the place of another name's is not accepted.
    fs::write(desk.path("state/floors/app"), &good).expect("it can be written");
    assert!(matches!(store.floors("app"), Err(Error::Floor { .. })));
}

#[test]
fn damaged_state_is_never_passed_over() {
    let desk = Keyring::trusting(&["a"]);
    let bundle = desk.signed(7, &["a"]);
    desk.take(&options(), &bundle).expect("it is trusted");
    let damage = |name: &str, content: &[u8], check: &dyn Fn()| {
        let path = desk.path(name);
        let before = fs::read(&path).expect("it is there");
        fs::write(&path, content).expect("it can be written");
        check();
        fs::write(&path, before).expect("it can be written");
    };
    let refused = || assert_eq!(desk.refusal(&options(), &bundle), (None, 2));
    for content in [&b""[..], b"\xff", b"sealift floor 1\n7 x\n", b"7\n"] {
        damage("state/floors/os", content, &refused);
    }
    assert!(desk.judge(&options(), &bundle).is_ok());
    // `trust reset` resolves it.
    damage("state/floors/os", b"", &|| {
        let store = DeviceState::at(desk.path("state"));
        assert!(store.reset_floor("os").is_ok_and(|floors| floors.is_some()));
        assert!(desk.judge(&options(), &bundle).is_ok());
        desk.write("state/floors/os", "");
    });
    desk.write("state/floors/not a name", "");
    let guard = desk.guard(&options()).expect("good files");
    assert!(matches!(guard.describe(), Err(Error::State { .. })));
    // A state that is not a folder does not count as empty.
    let elsewhere = TrustOptions { state: Some(desk.written("file", "")), ..options() };
    assert_eq!(refusal(desk.guard(&elsewhere)), (None, 2));
}

#[test]
fn runs_at_once_lose_nothing() {
    let desk = Keyring::new();
    let keys = ["a", "b", "c", "d"];
    desk.trust(&keys);
    let bundles: Vec<_> = keys.iter().zip(1..).map(|(key, version)| desk.signed(version, &[key])).collect();
    let take = |bundle: &Path| {
        // Which of them comes first is not defined, so the order is not checked here.
        let waived = TrustOptions { allow_downgrade: true, ..options() };
        for _ in 0..5 {
            desk.take(&waived, bundle).expect("it is trusted");
        }
    };
    std::thread::scope(|scope| {
        for bundle in &bundles {
            scope.spawn(|| take(bundle));
        }
    });
    let report = desk.guard(&options()).expect("good files").describe().expect("sound state");
    assert_eq!(report.floors[0].records.len(), 4);
    assert_eq!(report.floors[0].version, Some(4));
}
