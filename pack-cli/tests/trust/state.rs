//! What a device keeps between bundles.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use sealift::Error;
use sealift::trust::{Store, TrustOptions};
use sealift_format::{Identity, Kind};

use crate::desk::{Desk, NOW, identity, options, refusal};

const DOWNGRADE: (Option<Kind>, u8) = (Some(Kind::Downgrade), 1);

fn floor(desk: &Desk) -> Option<u64> {
    let report = desk.guard(&options()).expect("good files").describe().expect("sound state");
    report.floors.first().and_then(|floor| floor.version)
}

#[test]
fn a_floor_only_rises_until_it_is_reset() {
    let desk = Desk::new();
    desk.trust(&["a"]);
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

    let store = Store::at(desk.path("state"));
    let forgotten = store.reset_floor("os").expect("it can be written").expect("there was one");
    assert_eq!(forgotten.records()[0].version, 7);
    assert!(store.reset_floor("os").expect("nothing is there").is_none());
    assert!(store.reset_floor("../os").is_err());
    desk.take(&options(), &older).expect("nothing forbids it");
    // Other names have floors of their own.
    assert_eq!(store.names().expect("sound state"), ["os"]);
}

#[test]
fn the_state_is_for_nobody_elses_eyes() {
    let desk = Desk::new();
    desk.trust(&["a"]);
    desk.take(&options(), &desk.signed(7, &["a"])).expect("it is trusted");
    let mode = |name: &str| fs::metadata(desk.path(name)).expect("it is there").permissions().mode() & 0o777;
    assert_eq!([mode("state"), mode("state/floors")], [0o700, 0o700]);
    assert_eq!([mode("state/floors/os"), mode("state/accepted")], [0o600, 0o600]);
    let text = fs::read_to_string(desk.path("state/floors/os")).expect("text");
    assert_eq!(text, format!("sealift floor 1\n7 {}\n", desk.public_key("a").id()));
}

#[test]
fn revoking_a_key_withdraws_what_it_raised() {
    let desk = Desk::new();
    desk.trust(&["a", "thief"]);
    desk.take(&options(), &desk.signed(7, &["a"])).expect("it is trusted");
    let stolen = desk.pack_as(Identity { created: i64::MAX, ..identity(u64::MAX) }, 1024);
    desk.sign(&stolen, &["thief"]);
    desk.take(&options(), &stolen).expect("nobody knows yet");
    let next = desk.pack_as(Identity { expires: Some(i64::MAX), ..identity(8) }, 1024);
    desk.sign(&next, &["a"]);
    assert_eq!(desk.refusal(&options(), &next), DOWNGRADE);
    let by_clock = TrustOptions { time: None, ..options() };
    assert_eq!(desk.refusal(&by_clock, &next), (Some(Kind::Expired), 1));

    fs::copy(desk.path("thief.pub"), desk.path("config/revoked")).expect("a list of one key");
    assert_eq!(desk.refusal(&options(), &stolen), (Some(Kind::Revoked), 1));
    assert!(desk.judge(&options(), &next).is_ok());
    assert!(desk.judge(&by_clock, &next).is_ok());
    assert_eq!(floor(&desk), Some(7));
    assert_eq!(desk.refusal(&options(), &desk.signed(6, &["a"])), DOWNGRADE);

    // The same by a binary list, which a flag names.
    desk.ssh_keygen(&["-k", "-q", "-f", "krl", "thief.pub"]);
    fs::remove_file(desk.path("config/revoked")).expect("it is there");
    assert_eq!(desk.refusal(&options(), &next), DOWNGRADE);
    let given = TrustOptions { revoked: Some(desk.path("krl")), ..options() };
    assert!(desk.judge(&given, &next).is_ok());
}

#[test]
fn now_is_not_before_the_newest_bundle() {
    let desk = Desk::new();
    desk.trust(&["a"]);
    let year = 365 * 86_400;
    let far = NOW + 100 * year;
    let by_clock = TrustOptions { time: None, ..options() };
    let [next, newest] = [(8, NOW, Some(far)), (7, far, None)].map(|(version, created, expires)| {
        let bundle = desk.pack_as(Identity { created, expires, ..identity(version) }, 1024);
        desk.sign(&bundle, &["a"]);
        bundle
    });
    assert!(desk.judge(&by_clock, &next).is_ok());
    desk.take(&by_clock, &newest).expect("a date to come is no fault");
    assert_eq!(desk.refusal(&by_clock, &next), (Some(Kind::Expired), 1));
    assert!(desk.judge(&options(), &next).is_ok(), "--time overrides it");
}

#[test]
fn damaged_state_is_never_passed_over() {
    let desk = Desk::new();
    desk.trust(&["a"]);
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
    for content in [&b""[..], b"\xff", b"sealift floor 2\n7 x\n", b"7\n"] {
        damage("state/floors/os", content, &refused);
        damage("state/accepted", content, &refused);
    }
    assert!(desk.judge(&options(), &bundle).is_ok());
    // `trust reset` is the way out.
    damage("state/floors/os", b"", &|| {
        let store = Store::at(desk.path("state"));
        assert!(store.reset_floor("os").is_ok_and(|floors| floors.is_some()));
        assert!(desk.judge(&options(), &bundle).is_ok());
        desk.write("state/floors/os", "");
    });
    desk.write("state/floors/not a name", "");
    let guard = desk.guard(&options()).expect("good files");
    assert!(matches!(guard.describe(), Err(Error::State { .. })));
    // A state that is no folder is not the empty one.
    let elsewhere = TrustOptions { state: Some(desk.write("file", "")), ..options() };
    assert_eq!(refusal(desk.guard(&elsewhere)), (None, 2));
}

#[test]
fn runs_at_once_lose_nothing() {
    let desk = Desk::new();
    let keys = ["a", "b", "c", "d"];
    desk.trust(&keys);
    let bundles: Vec<_> = keys.iter().zip(1..).map(|(key, version)| desk.signed(version, &[key])).collect();
    let take = |bundle: &Path| {
        // Which of them comes first nobody knows, so that the order is not judged here.
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
