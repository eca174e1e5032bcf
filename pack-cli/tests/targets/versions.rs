//! A target and its device remember what was installed, even if the run did not end.

use std::process::Command;

use sealift_desk::{is_root, out, said, skipped};

use crate::installed::Installed;

/// Creates versions 1 and 2, signed by a key that `signers` names.
pub(crate) fn signed() -> Installed {
    let desk = Installed::new();
    desk.make_key("release");
    for version in ["1", "2"] {
        desk.write("tree/etc/issue", version);
        let bundle = format!("{version}.sealift");
        let pack = format!("pack tree -o {bundle} --name os --bundle-version {version} --key release");
        desk.good(&pack);
    }
    desk
}

/// Runs the line with the device's trust and state, and returns its exit status and its output.
pub(crate) fn run(desk: &Installed, line: &str) -> (Option<i32>, String) {
    let line = format!("{line} --trust signers --state state");
    let done = desk.command(&line).output().unwrap();
    (done.status.code(), said(&done))
}

/// The same, for a line that must end with this exit status and print `why`. Returns everything that it printed.
#[track_caller]
pub(crate) fn ends(desk: &Installed, line: &str, status: i32, why: &str) -> String {
    let (ended, said) = run(desk, line);
    assert!(ended == Some(status) && said.contains(why), "{line}: {ended:?} {why:?}: {said}");
    said
}

#[test]
fn what_clean_finished_is_not_undone_by_an_older_bundle() {
    let desk = signed();
    ends(&desk, "unpack 1.sealift target", 0, "");
    desk.unpack(2, "whole");
    desk.leave_update("target", "whole");
    desk.good("clean target");
    ends(&desk, "unpack 1.sealift target --update", 3, "is older than version 2");
    desk.assert_same("target", "tree");
    ends(&desk, "unpack 1.sealift target --update --allow-downgrade", 0, "");
    ends(&desk, "unpack 1.sealift target --update", 0, "");
}

#[test]
fn the_same_command_ends_well_where_the_tree_has_its_name() {
    let desk = signed();
    // As after a kill when everything is done except that the device remembers it.
    desk.unpack(2, "target");
    let said = ends(&desk, "unpack 2.sealift target", 0, "");
    assert!(said.contains("target: already unpacked") && said.contains("3 files unchanged"), "{said}");
    // It remembers.
    ends(&desk, "unpack 1.sealift other", 3, "");

    for other in ["1.sealift target --allow-downgrade", "2.sealift target --path etc"] {
        ends(&desk, &format!("unpack {other}"), 2, "");
    }
}

#[test]
fn an_older_slot_is_sound_and_an_older_bundle_a_base() {
    let desk = signed();
    ends(&desk, "unpack 1.sealift slot-a", 0, "");
    ends(&desk, "unpack 2.sealift slot-b", 0, "");
    let said = ends(&desk, "audit slot-a", 0, "");
    assert!(said.contains("sound, os version 1") && said.contains("version 2 was installed on this device"), "{said}");
    ends(&desk, "audit slot-a 1.sealift", 0, "");
    ends(&desk, "pack tree -o delta.sealift --name os --bundle-version 3 --base 1.sealift", 0, "");
    ends(&desk, "verify 1.sealift", 3, "");
    // A revoked key is reported, but is not a difference in the tree. A base, however, needs a valid signature.
    let revoked = "--revoked release.pub";
    ends(&desk, &format!("audit slot-a {revoked}"), 0, "is now revoked");
    let pack = "pack tree -o no.sealift --name os --bundle-version 3 --base 1.sealift";
    ends(&desk, &format!("{pack} {revoked}"), 3, "");
    // A key that is no longer listed was trusted when the device installed the tree, so the audit passes. Without the state it is unknown.
    desk.write("signers", "");
    ends(&desk, "audit slot-a", 0, "is now not listed");
    std::fs::remove_dir_all(desk.path("state")).unwrap();
    ends(&desk, "audit slot-a", 3, "");
}

#[test]
fn an_expiry_that_passed_is_no_difference() {
    let desk = signed();
    let pack = "pack tree -o old.sealift --name os --bundle-version 3 --expires 2020-01-01 --key release";
    let mut pack = desk.command(pack);
    out(pack.env("SOURCE_DATE_EPOCH", "1500000000"));
    ends(&desk, "unpack old.sealift target", 3, "");
    let said = ends(&desk, "unpack old.sealift target --time 2019-01-01", 0, "");
    assert!(said.contains("expired at 2020-01-01") && said.contains("accepted because of --time"), "{said}");
    ends(&desk, "audit target", 0, "it expired at 2020-01-01");
    desk.write("target/etc/issue", "tampered");
    ends(&desk, "audit target", 1, "");
}

#[test]
fn a_tree_and_its_record_that_were_copied_over_another_are_found() {
    let desk = signed();
    let key = std::fs::read_to_string(desk.path("release.pub")).unwrap();
    desk.write("signers", format!("* namespaces=\"sealift\" {key}"));
    desk.good("pack tree -o app.sealift --name app --bundle-version 1 --key release");
    ends(&desk, "unpack 1.sealift target", 0, "");
    ends(&desk, "unpack app.sealift app", 0, "");
    for (line, status) in [("--name os", 0), ("--name app", 1), ("--name app --name os", 0)] {
        ends(&desk, &format!("audit target {line}"), status, "");
    }
    for name in ["target", ".target.sealift-state"] {
        std::fs::remove_dir_all(desk.path(name)).unwrap();
    }
    for (from, to) in [("app", "target"), (".app.sealift-state", ".target.sealift-state")] {
        let copied = Command::new("cp").arg("-a").args([desk.path(from), desk.path(to)]).status().unwrap();
        assert!(copied.success());
    }
    ends(&desk, "audit target", 1, "another directory");
    ends(&desk, "audit target --quiet", 1, "");
}

/// A user who can rename files in the folder needs no copy: the record moves together with its directory.
#[test]
fn a_tree_and_its_record_that_were_moved_over_another_are_found() {
    let desk = signed();
    let key = std::fs::read_to_string(desk.path("release.pub")).unwrap();
    desk.write("signers", format!("* namespaces=\"sealift\" {key}"));
    desk.good("pack tree -o app.sealift --name app --bundle-version 1 --key release");
    for line in ["unpack 1.sealift target", "unpack 1.sealift slot", "unpack app.sealift app"] {
        ends(&desk, line, 0, "");
    }
    let put = |from: &str, to: &str| {
        for name in [to, &format!(".{to}.sealift-state")] {
            std::fs::remove_dir_all(desk.path(name)).unwrap();
        }
        for (from, to) in [(from, to), (&format!(".{from}.sealift-state"), &format!(".{to}.sealift-state"))] {
            std::fs::rename(desk.path(from), desk.path(to)).unwrap();
        }
    };
    // A target of the same name may be moved there.
    put("slot", "target");
    ends(&desk, "audit target", 0, "");
    put("app", "target");
    let said = ends(&desk, "audit target", 1, "target: differs from app version 1");
    assert!(said.contains("target is app, but this device installed os there"), "{said}");
    let (status, said) = run(&desk, "audit target --quiet --json");
    assert!(status == Some(1) && said.contains(r#""sound":false"#) && said.contains(r#""kind":"differs""#), "{said}");
    let (_, listed) = run(&desk, "status");
    assert!(listed.contains("/target: app version 1\n"), "{listed}");
    assert!(listed.contains("its install record belongs to another directory"), "{listed}");
    // With `--name`, or once the target is removed from the list, the tree is what it says.
    ends(&desk, "audit target --name app", 0, "");
    desk.says("clean target", "removed from the list");
    ends(&desk, "audit target", 0, "");
}

#[test]
fn set_id_bits_that_came_later_are_never_passed_over() {
    use std::os::unix::fs::PermissionsExt as _;
    let desk = signed();
    ends(&desk, "unpack 1.sealift target", 0, "");
    let issue = desk.path("target/etc/issue");
    let mode = std::fs::metadata(&issue).unwrap().permissions().mode();
    std::fs::set_permissions(&issue, std::fs::Permissions::from_mode(mode | 0o4000)).unwrap();
    for line in ["audit target --ignore privileged", "audit target 1.sealift --ignore privileged", "audit target"] {
        let said = ends(&desk, line, 1, "");
        assert!(said.contains("etc/issue") && !said.contains("without root"), "{line}: {said}");
    }
}

#[test]
fn a_state_that_cannot_be_kept_leaves_the_target_as_it_was() {
    let desk = signed();
    desk.write("no-state", "");
    let with = |line: &str| {
        let line = format!("{line} --trust signers --state no-state/state");
        let done = desk.command(&line).output().unwrap();
        (done.status.code(), said(&done))
    };
    for line in ["unpack 1.sealift target", "unpack 1.sealift target --dry-run"] {
        let (status, said) = with(line);
        assert_eq!(status, Some(2), "{line}: {said}");
        assert!(!desk.path("target").exists() && !desk.path(".target.sealift-partial").exists());
    }
    ends(&desk, "unpack 1.sealift target", 0, "");
    assert_eq!(with("unpack 2.sealift target --update").0, Some(2));
    assert_eq!(std::fs::read(desk.path("target/etc/issue")).unwrap(), b"1");
}

#[test]
fn status_says_what_is_installed_where() {
    let desk = signed();
    assert_eq!(run(&desk, "status").1, "no bundles installed: state is empty\n");
    ends(&desk, "unpack 1.sealift slot-a", 0, "");
    ends(&desk, "unpack 2.sealift slot-b", 0, "");
    std::fs::create_dir(desk.path("bare")).unwrap();
    let said = ends(&desk, "status slot-a slot-b bare", 0, "");
    let lines = [
        "slot-a: os version 1",
        "version 2 was installed on this device",
        "slot-b: os version 2",
        "bare: no install record",
    ];
    for line in lines {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert_eq!(said.matches("signed by SHA256:").count(), 2, "{said}");
    ends(&desk, "status absent", 2, "");
    for (line, why) in [
        ("status composefs:absent", "absent: there is no composefs store: unpack a bundle to it first"),
        ("status ostree:absent", "absent: no such directory: check its path"),
        ("request ostree:absent:main -o 1.request", "absent: no such directory: check its path"),
        ("request composefs:absent -o 1.request", "a request needs a directory, or a commit as ostree:REPO:REF"),
    ] {
        let done = desk.command(line).output().unwrap();
        let told = String::from_utf8(done.stderr).unwrap();
        assert!(done.status.code() == Some(2) && told.contains(why), "{line}: {told}");
    }
    // A damaged record is reported.
    desk.write(".slot-a.sealift-state/head", "damaged");
    ends(&desk, "status slot-a", 2, "");
}

/// A capability that was added later is reported, whether root or a user unpacked the tree, and whatever is ignored.
#[test]
fn capabilities_that_came_later_are_never_passed_over() {
    let desk = signed();
    desk.make_home();
    std::fs::copy("/bin/true", desk.path("tree/lib/tool")).unwrap();
    desk.pack(3);
    for target in ["target", "home/target"] {
        let run = |line: &str| match target {
            "target" => desk.command(line).output().unwrap(),
            _ => desk.run_as_user(line),
        };
        let good = |line: &str| {
            let done = run(line);
            assert!(done.status.success(), "{line}: {}", said(&done));
        };
        good(&format!("unpack 3.sealift {target} --allow-unsigned"));
        good(&format!("audit {target} --allow-unsigned --ignore privileged"));
        let tool = desk.path(target).join("lib/tool");
        let done = Command::new("setcap").arg("cap_net_raw,cap_sys_admin+ep").arg(&tool).output();
        let done = done.expect("setcap runs: apt install libcap2-bin");
        if !done.status.success() {
            let what = if is_root() { "a file system with capabilities" } else { "root" };
            return skipped(&format!("needs {what}: setcap"));
        }
        for more in ["", " --ignore privileged", " 3.sealift --ignore privileged"] {
            let (bundle, options) = more.split_once(".sealift").map_or(("", more), |(_, rest)| (" 3.sealift", rest));
            let line = format!("audit {target}{bundle} --allow-unsigned{options}");
            let done = run(&line);
            let told = said(&done);
            assert_eq!(done.status.code(), Some(1), "{line}: {told}");
            assert!(told.contains("lib/tool") && told.contains("security.capability"), "{line}: {told}");
        }
        // An update removes it, since it creates the file anew.
        good(&format!("unpack 3.sealift {target} --update --allow-unsigned"));
        let left = Command::new("getcap").arg(&tool).output().unwrap();
        assert!(left.status.success() && left.stdout.is_empty(), "{}", said(&left));
        good(&format!("audit {target} --allow-unsigned --ignore privileged"));
    }
}
