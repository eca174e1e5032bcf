//! Which files decide.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use sealift::Error;
use sealift::trust::{Guard, TrustOptions, TrustPaths};
use sealift_format::Kind;

use crate::keyring::{Keyring, head_of, options, refusal};

#[test]
fn one_folder_decides() {
    let desk = Keyring::trusting(&["system", "user"]);
    desk.write("config/allowed_signers", desk.signer_line("os", "system"));
    fs::create_dir(desk.path("mine")).expect("a folder");
    let places = TrustPaths { user_config: Some(desk.path("mine")), ..desk.places() };
    let judge = |options: &TrustOptions, key: &str| {
        let guard = Guard::load_from(options, places.clone())?;
        guard.judge(&head_of(&desk.signed(7, &[key])))
    };
    let untrusted = (Some(Kind::Untrusted), 3);
    // Files in the user's folder are ignored without allowed signers, and that is reported.
    fs::copy(desk.path("system.pub"), desk.path("mine/revoked")).expect("a list");
    assert!(judge(&options(), "system").is_ok());
    assert_eq!(refusal(judge(&options(), "user")), untrusted);
    let report = Guard::load_from(&options(), places.clone()).and_then(|guard| guard.describe());
    assert_eq!(report.expect("good files").passed_over, [desk.path("mine/revoked")]);

    // With allowed signers, only the user's folder counts.
    desk.write("mine/allowed_signers", desk.signer_line("os", "user"));
    desk.write("config/thresholds", "2\n");
    assert!(judge(&options(), "user").is_ok());
    assert_eq!(refusal(judge(&options(), "system")), untrusted);

    // The option replaces only its own file: the user's revocations still apply.
    let given = TrustOptions { signers: Some(desk.path("config/allowed_signers")), ..options() };
    assert_eq!(refusal(judge(&given, "system")), (Some(Kind::Revoked), 3));
}

#[test]
fn a_report_shows_what_is_judged_by() {
    let desk = Keyring::trusting(&["a", "b"]);
    fs::copy(desk.path("b.pub"), desk.path("config/revoked")).expect("a list");
    desk.write("config/thresholds", "1\nkernel=2\n");
    desk.write("config/compatible", "board-a\n");
    desk.take(&options(), &desk.signed(7, &["a"])).expect("it is trusted");
    let report = desk.guard(&options()).and_then(|guard| guard.describe()).expect("good files");
    let lines = report.signers.expect("a file");
    assert_eq!(lines.iter().map(|line| line.key).collect::<Vec<_>>(), ["a", "b"].map(|key| desk.public_key(key).id()));
    assert_eq!(report.revoked, [desk.public_key("b").id()]);
    assert_eq!(report.thresholds, [(None, 1), (Some("kernel".to_owned()), 2)]);
    assert_eq!(report.compatible, Some(vec!["board-a".to_owned()]));
    assert_eq!((report.floors[0].name.as_str(), report.floors[0].version), ("os", Some(7)));
    assert_eq!(report.state, desk.path("state"));
    assert!(report.now.to_string().contains("as given"));
}

#[test]
fn without_a_place_for_state_nothing_is_judged() {
    let desk = Keyring::new();
    let nowhere = TrustPaths { state: None, ..desk.places() };
    assert_eq!(refusal(Guard::load_from(&options(), nowhere.clone())), (None, 2));
    let given = TrustOptions { state: Some(desk.path("here")), ..options() };
    assert!(Guard::load_from(&given, nowhere).is_ok());
}

/// As the state, the administrator's files count only if nobody else can change them.
#[test]
fn files_that_others_can_change_are_refused() {
    let desk = Keyring::trusting(&["a"]);
    fs::copy(desk.path("a.pub"), desk.path("list")).expect("a list");
    let set_mode = |path: &str, mode| {
        fs::set_permissions(desk.path(path), fs::Permissions::from_mode(mode)).expect("it is ours");
    };
    let is_refused = |options: &TrustOptions| matches!(desk.guard(options), Err(Error::Foreign { .. }));
    for (name, content) in [("revoked", ""), ("thresholds", "1\n"), ("compatible", "board-a\n")] {
        desk.write(&format!("config/{name}"), content);
    }
    for name in ["allowed_signers", "revoked", "thresholds", "compatible"] {
        set_mode(&format!("config/{name}"), 0o666);
        assert!(is_refused(&options()), "{name}");
        set_mode(&format!("config/{name}"), 0o644);
        assert!(!is_refused(&options()), "{name}");
    }
    set_mode("config", 0o777);
    assert!(is_refused(&options()), "they can be replaced");
    set_mode("config", 0o755);
    let given = TrustOptions { revoked: Some(desk.path("list")), ..options() };
    set_mode("list", 0o646);
    assert!(is_refused(&given));
    set_mode("list", 0o644);
    assert!(!is_refused(&given));
}

/// Opening one for reading would wait for a writer.
#[test]
fn a_fifo_is_no_file_of_the_administrator() {
    let desk = Keyring::trusting(&["a"]);
    assert!(desk.run("mkfifo", &["fifo"]));
    let fifo = Some(desk.path("fifo"));
    for given in
        [TrustOptions { signers: fifo.clone(), ..options() }, TrustOptions { revoked: fifo.clone(), ..options() }]
    {
        let error = desk.guard(&given).expect_err("it is no file").to_string();
        assert!(error.contains("is not a regular file"), "{error}");
    }
}
