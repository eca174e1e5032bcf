//! Verdicts that scripts rely on: what is damaged, what differs, what exceeds a limit, and what is no bundle.

use std::fs;

use sealift::{Envelope, Head};
use sealift_desk::{Desk, as_root, told};

fn desk() -> Desk {
    let desk = crate::new_desk();
    desk.good("pack os -o 1.sealift --name os --bundle-version 1 --key release");
    desk.write("os/hello", "hello again");
    desk.good("pack os -o 2.sealift --name os --bundle-version 2 --key release");
    desk
}

#[test]
fn a_comparison_that_failed_is_no_difference() {
    let desk = desk();
    let bytes = desk.read("2.sealift");
    desk.write("cut.sealift", &bytes[..bytes.len() - 1]);
    assert_eq!(desk.run("diff 1.sealift 2.sealift --exit-code").0, Some(1));
    for other in ["cut.sealift", "os/hello", "nowhere.sealift"] {
        for line in [format!("diff 1.sealift {other}"), format!("diff {other} 1.sealift")] {
            desk.refused(&format!("{line} --exit-code"), 2, "");
        }
    }
    // Without the option, 1 can only mean damage.
    assert_eq!(desk.run("diff 1.sealift cut.sealift").0, Some(1));
}

#[test]
fn a_limit_is_no_damage() {
    let desk = desk();
    for verb in [
        "verify 1.sealift --trust signers",
        "info 1.sealift",
        "ls 1.sealift",
        "unpack 1.sealift new --trust signers",
        "diff 1.sealift 2.sealift --exit-code",
    ] {
        let line = format!("{verb} --limit depth=0");
        desk.refused(&line, 2, "exceeds the limit of 0: to accept it, use --limit depth=1");
        assert!(desk.run(&format!("{line} --json")).1.contains(r#""kind":"limit""#), "{line}");
    }
    // Of several, the next one is tried.
    fs::create_dir(desk.path("stick")).unwrap();
    for name in ["a", "b", "c"] {
        desk.write(&format!("os/{name}"), name);
    }
    desk.good("pack os -o stick/3.sealift --name os --bundle-version 3 --key release");
    fs::copy(desk.path("2.sealift"), desk.path("stick/2.sealift")).unwrap();
    let said = desk.good("unpack stick new --trust signers --limit entries=3");
    assert!(said.contains("passed over stick/3.sealift: ") && said.contains("from stick/2.sealift"), "{said}");
}

#[test]
fn a_wrong_signature_is_damage_for_whoever_looks() {
    let desk = desk();
    let bytes = desk.read("1.sealift");
    let (head, rest) = Head::parse_first(&bytes).unwrap();
    let mut envelopes: Vec<Envelope> = head.envelopes().map(Envelope::from).collect();
    *envelopes[0].body.last_mut().unwrap() ^= 1;
    let head = head.with_envelopes(envelopes).unwrap();
    desk.write("wrong.sealift", [&head.encode(), rest].concat());
    for more in ["", " --json", " --trust signers"] {
        let (status, said) = desk.run(&format!("info wrong.sealift{more}"));
        assert_eq!(status, Some(1), "{more}: {said}");
    }
    // What it says is shown all the same.
    let shown = desk.command("info wrong.sealift").output().unwrap().stdout;
    let shown = String::from_utf8(shown).unwrap();
    assert!(shown.contains("BAD SIGNATURE") && shown.contains("Version       1"), "{shown}");
    // An unknown signer is no damage.
    assert_eq!(desk.run("info 1.sealift").0, Some(0));
}

/// A publisher signs with a later algorithm beside the old one, until the last device knows it.
#[test]
fn a_signature_by_a_later_algorithm_is_told_and_stops_nobody() {
    let desk = desk();
    let bytes = desk.read("1.sealift");
    let (head, rest) = Head::parse_first(&bytes).unwrap();
    let good: Envelope = head.envelopes().map(Envelope::from).next().unwrap();
    let at = good.body.windows(11).position(|name| name == b"ssh-ed25519").unwrap();
    let mut later = good.clone();
    later.body[at..at + 11].copy_from_slice(b"ssh-later01");
    for (name, envelopes) in [("both.sealift", vec![good, later.clone()]), ("later.sealift", vec![later])] {
        let head = head.clone().with_envelopes(envelopes).unwrap();
        desk.write(name, [&head.encode(), rest].concat());
    }
    let words = |said: &str| said.split_whitespace().collect::<Vec<_>>().join(" ");
    let why = r#"this version does not accept keys of type "ssh-later01""#;
    for verb in ["verify both.sealift", "unpack both.sealift new", "status new", "audit new"] {
        let said = words(&desk.good(&format!("{verb} --trust signers")));
        assert!(said.contains(&format!(" not counted: {why}")), "{verb}: {said}");
    }
    for verb in ["verify both.sealift", "unpack both.sealift other", "status other", "audit other", "info both.sealift"]
    {
        let said = desk.good(&format!("{verb} --trust signers --json"));
        let told = r#"{"state":"unsupported","key":"SHA256:"#;
        assert!(
            said.contains(told) && said.contains(r#""key_type":"ssh-later01","why":"not counted: "#),
            "{verb}: {said}"
        );
    }
    let said = words(&desk.good("info both.sealift --trust signers"));
    assert!(said.contains("TRUSTED") && said.contains(&format!("ssh-later01 not counted: {why}")), "{said}");

    // Alone, it is no signature at all.
    desk.refused("verify later.sealift --trust signers", 3, &format!(" is not counted: {why}"));
    let (status, said) = desk.run("info later.sealift --trust signers");
    assert!(
        status == Some(0) && said.contains("UNTRUSTED") && said.contains("UNSUPPORTED SHA256:"),
        "{status:?}: {said}"
    );

    // It stays when others are added, and its key's id removes it.
    desk.good("sign both.sealift --key release");
    let said = desk.good("info both.sealift --trust signers --json");
    let (_, key) = said.split_once(r#""state":"unsupported","key":""#).unwrap();
    desk.good(&format!("sign both.sealift --remove {}", key.split('"').next().unwrap()));
    assert!(!desk.good("info both.sealift --json").contains("unsupported"));
}

#[test]
fn short_files_are_named_for_what_they_are() {
    let desk = desk();
    let bytes = desk.read("1.sealift");
    desk.write("hi", "hi");
    desk.write("empty", "");
    desk.write("magic", &bytes[..3]);
    desk.write("head", &bytes[..300]);
    desk.write("chunk", &bytes[..bytes.len() - 1]);
    let all = bytes.len();
    for (file, why) in [
        ("hi", "hi: not a Sealift bundle: it does not begin with the magic bytes".to_owned()),
        ("empty", "empty: the file is empty".to_owned()),
        ("magic", "magic: the file ends at byte 3, inside the bundle's head".to_owned()),
        ("head", "head: the file ends at byte 300, inside the bundle's head".to_owned()),
        ("chunk", format!("chunk: the bundle is truncated: {} of {all} bytes", all - 1)),
    ] {
        for verb in ["verify", "unpack", "info"] {
            let target = if verb == "unpack" { " new" } else { "" };
            desk.refused(&format!("{verb} {file}{target} --trust signers"), 1, &why);
        }
        if file != "chunk" {
            let line = format!("cat {file} | sealift verify - --trust signers");
            let (status, said) = told(&mut desk.shell(&line));
            let (_, words) = why.split_once(": ").unwrap();
            assert!(status == Some(1) && said.contains(words), "{line}: {said}");
        }
    }
}

#[test]
fn an_output_that_names_a_directory_is_refused_before_anything_is_packed() {
    let desk = desk();
    fs::create_dir(desk.path("dir")).unwrap();
    for output in ["dir/", "new/", "new/sub/"] {
        for more in ["", " --dry-run"] {
            let line = format!("pack os -o {output} --name os --bundle-version 3 --allow-unsigned{more}");
            desk.refused(&line, 2, "names a directory: give the name of a file in it");
        }
    }
    assert!(!desk.path("new").exists());
}

#[test]
fn an_option_of_updates_says_which_option_it_needs() {
    let desk = desk();
    for option in ["delete", "rehash", "no-check", "assume-mtime", "adopt"] {
        let line = format!("unpack 1.sealift new --{option} --trust signers");
        desk.refused(&line, 2, &format!("--{option} requires --update"));
        assert!(!desk.path("new").exists());
    }
}

#[test]
fn a_stick_full_of_other_files_is_not_listed_whole() {
    let desk = desk();
    fs::create_dir(desk.path("stick")).unwrap();
    for number in 0..200 {
        desk.write(&format!("stick/junk-{number:03}.sealift"), "junk");
    }
    fs::copy(desk.path("1.sealift"), desk.path("stick/os.sealift")).unwrap();
    let said = desk.good("unpack stick new --trust signers");
    assert_eq!(said.matches("passed over stick/junk-").count(), 20, "{said}");
    assert!(said.contains("passed over 180 more files: -v names them"), "{said}");
    let said = desk.good("unpack stick new --update --trust signers --json");
    assert!(said.contains(r#"{"passed_over":{"more":180}}"#), "{said}");
    desk.says("unpack stick new --update --trust signers -v", "junk-199");
}

/// Needs a file system of its own.
#[test]
fn signing_on_a_read_only_medium_says_so() {
    let Some(desk) = as_root("mounts a file system", desk) else { return };
    let program = env!("CARGO_BIN_EXE_sealift");
    fs::create_dir(desk.path("medium")).unwrap();
    let line = format!(
        "mount -t tmpfs none medium && cp 1.sealift medium && mount -o remount,ro medium && {program} key generate -o other -q && \
         {program} sign medium/1.sealift --key other --name os --bundle-version 1"
    );
    let (status, said) = told(&mut desk.shell(&format!("unshare --mount sh -c '{line}'")));
    assert!(
        status == Some(2) && said.contains("cannot write to ") && said.contains("/medium: Read-only file system"),
        "{status:?}: {said}"
    );
    assert!(!said.contains("partial"), "{said}");
}
