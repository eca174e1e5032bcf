//! The state is written before content: if this device cannot remember a bundle, nothing in a repository changes, refs included.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::process::Command;

use sealift_desk::{can_chown, noise, skipped, text};

use crate::repos::{Repos, copy, write};

/// Creates three signed versions, and returns the options that accept them.
pub(crate) fn desk() -> (Repos, &'static str) {
    let desk = Repos::new();
    fs::create_dir(desk.path("tree")).expect("a folder");
    desk.init("source", "archive");
    desk.init("target", "bare-user-only");
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(desk.path("key")).status();
    assert!(made.expect("ssh-keygen is installed").success());
    let public = fs::read_to_string(desk.path("key.pub")).expect("a key");
    fs::write(desk.path("allowed"), format!("* namespaces=\"sealift\" {public}")).expect("there is room");
    for version in 6..=8_usize {
        write(&desk.path("tree/file"), 0o644, &noise(version, 50_000));
        desk.commit("source", "os", "./tree", &["--owner-uid=0", "--owner-gid=0"]);
        desk.run(&format!(
            "pack ostree:source -o os-{version}.sealift --name os --bundle-version {version} --key key --expires 2090-01-01"
        ));
    }
    (desk, "--trust allowed")
}

fn tip(desk: &Repos, bundle: &str) -> String {
    let listed =
        desk.run(&format!("unpack {bundle} ostree:target --allow-unsigned --dry-run --json --allow-downgrade"));
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("it is JSON");
    listed["refs"][0]["commit"].as_str().expect("a commit").to_owned()
}

#[test]
fn a_state_that_cannot_be_kept_changes_nothing() {
    let (desk, trust) = desk();
    desk.run(&format!("unpack os-6.sealift ostree:target {trust}"));
    let before = desk.snapshot("target");
    fs::write(desk.path("file"), "no folder").expect("there is room");
    for state in ["file", "file/state", "/proc/sealift"] {
        for bundle in ["os-7.sealift", "os-6.sealift"] {
            let line = format!("unpack {bundle} ostree:target {trust} --state {state}");
            let output = desk.command(&line).output().expect("sealift runs");
            assert_eq!(output.status.code(), Some(2), "{line}: {}", text(&output.stderr));
            desk.is_as(&before, "target", &line);
        }
        fs::create_dir_all(desk.path("stick")).expect("a folder");
    }
    assert_eq!(desk.ostree("target", &["rev-parse", "os"]).trim(), tip(&desk, "os-6.sealift"));
}

/// Without a home directory, there is no state to write.
#[test]
fn without_a_home_nothing_changes() {
    let (desk, trust) = desk();
    let before = desk.snapshot("target");
    let mut command = desk.command(&format!("unpack os-7.sealift ostree:target {trust}"));
    for name in ["HOME", "SEALIFT_STATE", "XDG_STATE_HOME"] {
        command.env_remove(name);
    }
    if can_chown() {
        // The state of root is in /var/lib.
        for name in ["allowed", "os-7.sealift", "tree", "source", "target"] {
            assert!(desk.path(name).exists());
        }
        command.env("SEALIFT_STATE", "/proc/1/fdinfo/none");
    }
    let output = command.output().expect("sealift runs");
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    desk.is_as(&before, "target", "without a home");
}

#[test]
fn a_state_on_a_read_only_file_system_changes_nothing() {
    let Some((desk, trust)) = can_chown().then(desk) else { return };
    fs::create_dir(desk.path("ro")).expect("a folder");
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "ro", "none"]).arg(desk.path("ro")).status();
    if !mount.is_ok_and(|status| status.success()) {
        return skipped("needs root: mounts");
    }
    let before = desk.snapshot("target");
    let output = desk.command(&format!("unpack os-7.sealift ostree:target {trust} --state ro/x")).output();
    let unmounted = Command::new("umount").arg(desk.path("ro")).status();
    let output = output.expect("sealift runs");
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(unmounted.expect("umount runs").success());
    desk.is_as(&before, "target", "read-only");
}

/// The repository's own record of its last bundle is a floor, whatever happened to the device's state.
#[test]
fn an_older_version_than_the_repository_has_is_refused() {
    let (desk, trust) = desk();
    desk.run(&format!("unpack os-7.sealift ostree:target {trust}"));
    let before = desk.snapshot("target");
    let line = format!("unpack os-6.sealift ostree:target {trust} --state other");
    let said = desk.refused(&line);
    assert!(said.contains("version 6") && said.contains("version 7"), "{said}");
    desk.is_as(&before, "target", "an older version");
    desk.run(&format!("{line} --allow-downgrade"));
    assert_eq!(desk.ostree("target", &["rev-parse", "os"]).trim(), tip(&desk, "os-6.sealift"));
}

/// A record that another user owns or can write to is not trusted, and a record of another bundle does not count.
#[test]
fn a_record_of_somebody_else_is_refused() {
    let (desk, trust) = desk();
    desk.run(&format!("unpack os-7.sealift ostree:target {trust}"));
    let line = format!("unpack os-8.sealift ostree:target {trust}");
    for path in ["target/extensions/sealift", "target/extensions/sealift/os"] {
        let path = desk.path(path);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).expect("it is ours");
        let before = desk.snapshot("target");
        let said = desk.refused(&line);
        assert!(said.contains("is writable by other users"), "{said}");
        desk.is_as(&before, "target", "others may write to it");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
        if can_chown() {
            chown(&path, Some(12345), None).expect("root may");
            let said = desk.refused(&line);
            assert!(said.contains("belongs to user 12345"), "{said}");
            chown(&path, Some(0), None).expect("root may");
        }
    }
    fs::rename(desk.path("target/extensions/sealift/os"), desk.path("target/extensions/sealift/app")).expect("ours");
    let said = desk.refused(&format!("audit ostree:target {trust}"));
    assert!(said.contains("of another name"), "{said}");
    // The list of targets knows that there was one.
    let said = desk.refused(&line);
    assert!(said.contains("has lost its install record: this device installed os version 7 there"), "{said}");
    desk.run(&format!("{line} --adopt"));
}

/// A damaged record is no consent, and neither is a lost one.
#[test]
fn a_record_that_is_damaged_or_lost_is_adopted_on_request() {
    for part in ["head", "index", ""] {
        let (desk, trust) = desk();
        desk.run(&format!("unpack os-7.sealift ostree:target {trust}"));
        let installed = tip(&desk, "os-7.sealift");
        let record = desk.path("target/extensions/sealift/os");
        match part {
            "" => fs::remove_dir_all(record).expect("it is ours"),
            part => fs::write(record.join(part), "torn").expect("it is ours"),
        }
        let before = desk.snapshot("target");
        let line = format!("unpack os-8.sealift ostree:target {trust}");
        for more in ["", " --dry-run", " --rehash"] {
            let output = desk.command(&format!("{line}{more}")).output().expect("sealift runs");
            let said = text(&output.stderr);
            assert!(output.status.code() == Some(2) && said.contains("install record"), "{part}{more}: {said}");
            assert!(said.contains("use --adopt"), "{said}");
        }
        assert_eq!(desk.ostree("target", &["rev-parse", "os"]).trim(), installed, "{part}");
        if !part.is_empty() {
            let status = desk.command(&format!("status ostree:target {trust}")).output().expect("sealift runs");
            assert_eq!(status.status.code(), Some(2), "{part}: {}", text(&status.stderr));
            desk.is_as(&before, "target", part);
            // With the state gone too, nothing but the request lets an older version in.
            fs::remove_dir_all(desk.path("state")).expect("it is ours");
            desk.refused(&format!("unpack os-6.sealift ostree:target {trust}"));
        } else {
            let status = desk.run(&format!("status ostree:target {trust}"));
            assert!(status.contains("no install record of this bundle"), "{status}");
        }
        desk.run(&format!("{line} --adopt --dry-run"));
        desk.run(&format!("{line} --adopt"));
        desk.run(&line);
        assert!(desk.run(&format!("audit ostree:target {trust}")).contains("sound, os version 8"));
    }
    // Records that were removed by hand are forgotten on request, too.
    let (desk, trust) = desk();
    desk.run(&format!("unpack os-7.sealift ostree:target {trust}"));
    fs::remove_dir_all(desk.path("target/extensions/sealift")).expect("it is ours");
    assert!(desk.run("clean ostree:target").contains("removed from the list"));
    desk.run(&format!("unpack os-8.sealift ostree:target {trust}"));
    // A repository that was made anew has lost nothing.
    fs::remove_dir_all(desk.path("target")).expect("it is ours");
    desk.init("target", "bare-user-only");
    desk.run(&format!("unpack os-8.sealift ostree:target {trust}"));
}

#[test]
fn a_repository_that_went_back_with_its_record_is_not_sound() {
    let (desk, trust) = desk();
    desk.run(&format!("unpack os-6.sealift ostree:target {trust}"));
    copy(&desk.path("target"), &desk.path("old"));
    desk.run(&format!("unpack os-7.sealift ostree:target {trust}"));
    assert!(desk.run(&format!("audit ostree:target {trust}")).contains("sound"));
    fs::rename(desk.path("target"), desk.path("new")).expect("it is ours");
    fs::rename(desk.path("old"), desk.path("target")).expect("it is ours");
    for more in ["", " --json", " --quiet"] {
        let output = desk.command(&format!("audit ostree:target {trust}{more}")).output().expect("sealift runs");
        let said = text(&[&output.stdout[..], &output.stderr].concat());
        let why = if more == " --json" { r#""gone_back_from":7"# } else { "this device installed version 7 there" };
        assert!(output.status.code() == Some(1) && said.contains(why), "{more}: {said}");
    }
    assert!(desk.run(&format!("status ostree:target {trust}")).contains("it has gone back"));
    assert!(desk.run(&format!("unpack os-7.sealift ostree:target {trust}")).contains("before: it had gone back"));
    assert!(desk.run(&format!("audit ostree:target {trust}")).contains("sound"));
}

/// Whoever owns a repository, or can write to it, can replace what was imported, and lead its folders elsewhere.
#[test]
fn a_repository_of_somebody_else_is_refused() {
    let (desk, trust) = desk();
    desk.run(&format!("unpack os-7.sealift ostree:target {trust}"));
    let line = format!("unpack os-8.sealift ostree:target {trust}");
    let objects = fs::read_dir(desk.path("target/objects")).expect("it is there");
    let first = objects.map(|entry| entry.expect("it is there").file_name()).next().expect("an object");
    let first = format!("target/objects/{}", first.to_string_lossy());
    for path in ["target", "target/objects", &first, "target/refs", "target/refs/heads", "target/tmp", "target/state"] {
        let path = desk.path(path);
        let mode = fs::metadata(&path).expect("it is there").permissions();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).expect("it is ours");
        let before = desk.snapshot("target");
        for dry_run in ["", " --dry-run"] {
            let said = desk.refused(&format!("{line}{dry_run}"));
            assert!(said.contains("is writable by other users"), "{said}");
        }
        desk.is_as(&before, "target", "others may write to it");
        fs::set_permissions(&path, mode).expect("it is ours");
        if can_chown() {
            chown(&path, Some(12345), None).expect("root may");
            let said = desk.refused(&line);
            assert!(said.contains("belongs to user 12345"), "{said}");
            chown(&path, Some(0), None).expect("root may");
        }
    }
    desk.run(&line);
    desk.fsck("target");
}

/// The first bundle of a name fails after the device has remembered it, or is killed there and another program removes its stage: it was never
/// installed, so no record is lost.
#[test]
fn an_import_that_did_not_end_is_repeated_without_consent() {
    let (desk, trust) = desk();
    let other =
        desk.commit("target", "other", "./tree", &["--owner-uid=0", "--owner-gid=0", "--canonical-permissions"]);
    desk.ostree("target", &["summary", "-u"]);
    let commit = desk.path(&format!("target/objects/{}/{}.commit", &other[..2], &other[2..]));
    fs::rename(&commit, desk.path("commit")).expect("it is there");
    let line = format!("unpack os-7.sealift ostree:target {trust}");
    desk.refused(&line);
    fs::rename(desk.path("commit"), &commit).expect("it was there");
    let said = desk.run("status");
    assert!(said.contains("ostree:") && said.contains("incomplete: repeat the command"), "{said}");
    assert!(said.contains("  os version 7, begun ") && !said.contains("unpacked"), "{said}");
    assert!(desk.run("status --json").contains(r#""version":7,"signers":["#));
    desk.run(&line);
    assert!(desk.run("status").contains("os version 7"));
    // What was installed and lost its record still needs consent.
    fs::remove_dir_all(desk.path("target/extensions")).expect("it is ours");
    let said = desk.refused(&line);
    assert!(said.contains("has lost its install record"), "{said}");
}

/// An import moved the refs, and failed before its record took the place of the old one.
#[test]
fn a_half_done_import_is_said_by_every_verb() {
    let (desk, trust) = desk();
    let other =
        desk.commit("target", "other", "./tree", &["--owner-uid=0", "--owner-gid=0", "--canonical-permissions"]);
    desk.run(&format!("unpack os-7.sealift ostree:target {trust}"));
    desk.ostree("target", &["summary", "-u"]);
    let commit = desk.path(&format!("target/objects/{}/{}.commit", &other[..2], &other[2..]));
    fs::rename(&commit, desk.path("commit")).expect("it is there");
    let line = format!("unpack os-8.sealift ostree:target {trust}");
    desk.refused(&line);
    let failed = |line: &str| {
        let output = desk.command(&format!("{line} {trust}")).output().expect("sealift runs");
        assert_eq!(output.status.code(), Some(1), "{line}: {}", text(&output.stderr));
        text(&[output.stdout, output.stderr].concat())
    };
    for status in ["status", "status ostree:target"] {
        let said = failed(status);
        assert!(said.contains("partly updated from os version 7: unpack either bundle again\n"), "{said}");
        assert!(failed(&format!("{status} --json")).contains(r#""run":"half-updated""#));
    }
    assert!(failed("audit ostree:target").contains("an update of ostree:target did not end"));
    fs::rename(desk.path("commit"), &commit).expect("it was there");
    // Either bundle ends it.
    desk.run(&format!("unpack os-7.sealift ostree:target {trust} --allow-downgrade"));
    assert!(!desk.run(&format!("status ostree:target {trust}")).contains("partly"));
    desk.run(&format!("audit ostree:target {trust}"));
    desk.run(&line);
    assert!(desk.run(&format!("audit ostree:target {trust}")).contains("sound, os version 8"));
}

/// A folder that a ref lies in, however deep.
#[test]
fn a_folder_of_refs_of_somebody_else_is_refused() {
    let (desk, trust) = desk();
    desk.init("nested", "archive");
    desk.commit("nested", "app/x/os", "./tree", &["--owner-uid=0", "--owner-gid=0"]);
    desk.run("pack ostree:nested -o nested.sealift --name nested --bundle-version 1 --key key");
    let folder = desk.path("target/refs/heads/app/x");
    fs::create_dir_all(&folder).expect("a folder");
    let line = format!("unpack nested.sealift ostree:target {trust}");
    for folder in ["target/refs/heads/app", "target/refs/heads/app/x"] {
        fs::set_permissions(desk.path(folder), fs::Permissions::from_mode(0o777)).expect("it is ours");
        let before = desk.snapshot("target");
        let said = desk.refused(&line);
        assert!(said.contains(folder) && said.contains("is writable by other users"), "{said}");
        desk.is_as(&before, "target", folder);
        fs::set_permissions(desk.path(folder), fs::Permissions::from_mode(0o755)).expect("it is ours");
    }
    desk.run(&line);
}
