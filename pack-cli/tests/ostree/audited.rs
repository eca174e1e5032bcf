//! The findings of an audit of a repository; `ostree fsck` finds damage too, but not who published a commit.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::fs::{XattrFlags, setxattr};
use sealift_desk::{can_chown, text};
use serde_json::Value;

use crate::repos::{MODES, Repos, copy, plain_tree, write};

/// Packs a bundle of a commit, and unpacks it into a repository of each mode that this user can create.
fn desk() -> Repos {
    let desk = Repos::new();
    plain_tree(&desk.path("tree"));
    desk.init("source", "archive");
    desk.commit("source", "os/main", "./tree", &["--owner-uid=0", "--owner-gid=0"]);
    desk.run("pack --force ostree:source -o os.sealift --name os --bundle-version 1");
    desk
}

fn modes() -> impl Iterator<Item = &'static str> {
    MODES.into_iter().filter(|mode| *mode != "bare" || can_chown())
}

/// Returns the result of the audit, and checks that its exit status matches.
fn audit(desk: &Repos, repo: &str, options: &str) -> Value {
    let line = format!("audit ostree:{repo} --allow-unsigned --json {options}");
    let output = desk.command(&line).output().expect("sealift runs");
    let said = text(&output.stdout);
    let json: Value =
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("{line}: {error}: {said}{}", text(&output.stderr)));
    assert_eq!(output.status.code(), Some(i32::from(json["sound"] != true)), "{said}");
    json
}

/// Returns its entries: kind, name and path.
fn entries(found: &Value) -> Vec<(&str, &str, &str)> {
    fn text<'a>(entry: &'a Value, key: &str) -> &'a str {
        entry[key].as_str().unwrap_or_default()
    }
    let all = found["entries"].as_array().expect("a list");
    all.iter().map(|entry| (text(entry, "kind"), text(entry, "name"), text(entry, "path"))).collect()
}

#[test]
fn a_sound_repository() {
    let desk = desk();
    for mode in modes() {
        desk.init(mode, mode);
        let refused = desk.refused(&format!("audit ostree:{mode} --allow-unsigned"));
        assert!(refused.contains("no install record for"), "{refused}");
        desk.import("os.sealift", mode);
        let before = desk.snapshot(mode);
        let found = audit(&desk, mode, "");
        assert_eq!(found["sound"], true, "{mode}: {found}");
        let objects = before.keys().filter(|path| path.starts_with(desk.path(mode).join("objects")) && !path.is_dir());
        assert_eq!(found["counts"]["objects"], objects.count(), "{mode}");
        assert_eq!(found["trees"], serde_json::json!(["os/main"]));
        let said = desk.run(&format!("audit ostree:{mode} --allow-unsigned"));
        assert!(said.starts_with(&format!("ostree:{mode}: sound, os version 1, UNSIGNED\n")), "{said}");
        let said = desk.run(&format!("audit ostree:{mode} os.sealift --allow-unsigned"));
        assert!(said.contains("compared with os.sealift"), "{said}");
        desk.is_as(&before, mode, "an audit");
        // Commits that do not come from a bundle are not reported.
        desk.commit(mode, "own", "./tree/usr", &[]);
        assert_eq!(audit(&desk, mode, "")["sound"], true, "{mode}");
        // The bundle has no signature.
        let refused = desk.refused(&format!("audit ostree:{mode}"));
        assert!(refused.contains("trusted key"), "{refused}");
    }
}

/// Each object is damaged in each way.
#[test]
fn damaged_objects() {
    let desk = desk();
    for mode in modes() {
        desk.init_with(mode, mode, "os.sealift");
        let file = if mode == "archive" { ".filez" } else { ".file" };
        for (end, where_) in
            [(file, "usr/share/as-large"), (".commit", ""), (".dirtree", "usr/share"), (".dirmeta", "")]
        {
            let path = desk.largest(mode, end);
            let name = path.strip_prefix(desk.path(mode)).expect("it is inside").to_str().expect("text").to_owned();
            fs::rename(&path, desk.path("aside")).expect("it can be moved");
            let found = audit(&desk, mode, "");
            // If a dirtree is missing, its tree is known from the index.
            assert_eq!(entries(&found), [("missing", &*name, where_)], "{mode} {end}");
            for damage in [flip, truncate] {
                copy(&desk.path("aside"), &path);
                damage(&path);
                assert!(desk.try_ostree(mode, &["fsck", "--quiet"]).is_err());
                let found = audit(&desk, mode, "");
                assert_eq!(entries(&found), [("changed", &*name, where_)], "{mode} {end}");
                fs::remove_file(&path).expect("it is there");
            }
            fs::rename(desk.path("aside"), &path).expect("it can be moved back");
        }
        assert_eq!(audit(&desk, mode, "")["sound"], true, "{mode}");
    }
}

fn flip(path: &Path) {
    let mut bytes = fs::read(path).expect("it is there");
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    fs::write(path, bytes).expect("it is ours");
}

fn truncate(path: &Path) {
    let bytes = fs::read(path).expect("it is there");
    fs::write(path, &bytes[..bytes.len() - 1]).expect("it is ours");
}

/// The checksum of a file also covers its attributes.
#[test]
fn other_attributes() {
    let desk = desk();
    for mode in modes().filter(|mode| *mode != "archive") {
        desk.init_with(mode, mode, "os.sealift");
        let path = desk.largest(mode, ".file");
        match mode {
            "bare-user" => setxattr(&path, "user.ostreemeta", b"\0\0\0\0\0\0\0\0\0\0\x81\xff", XattrFlags::empty())
                .expect("it can be set"),
            _ => fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours"),
        }
        let found = audit(&desk, mode, "");
        let [("changed", _, "usr/share/as-large")] = entries(&found)[..] else { panic!("{mode}: {found}") };
    }
}

#[test]
fn refs() {
    let desk = desk();
    desk.init_with("target", "bare-user", "os.sealift");
    let tip = desk.ostree("target", &["rev-parse", "os/main"]).trim().to_owned();
    // A commit on top of it.
    write(&desk.path("tree/new"), 0o644, b"new\n");
    let next = desk.commit("target", "os/main", "./tree", &[]);
    let found = audit(&desk, "target", "");
    assert_eq!(entries(&found), [("changed", "refs/heads/os/main", "")]);
    let [entry] = &found["entries"].as_array().expect("a list")[..] else { panic!("{found}") };
    assert_eq!((&entry["expected"], &entry["found"]), (&Value::String(tip.clone()), &Value::String(next)));
    // The ref is missing, but the commit is there.
    desk.ostree("target", &["refs", "--delete", "os/main"]);
    assert_eq!(entries(&audit(&desk, "target", "")), [("missing", "refs/heads/os/main", "")]);
    desk.ostree("target", &["refs", "--create=os/main", &tip]);
    assert_eq!(audit(&desk, "target", "")["sound"], true);
    fs::write(desk.path("target/refs/heads/os/main"), "no commit\n").expect("a file");
    assert_eq!(entries(&audit(&desk, "target", "")), [("changed", "refs/heads/os/main", "")]);
}

/// Of a bundle with several refs, only the imported ones count, under whatever names.
#[test]
fn refs_that_were_not_taken() {
    let desk = desk();
    desk.commit("source", "app/main", "./tree/usr", &["--owner-uid=0", "--owner-gid=0"]);
    desk.run("pack --force ostree:source -o both.sealift --name os --bundle-version 2");
    desk.init("target", "bare-user");
    desk.ostree("target", &["remote", "add", "--no-gpg-verify", "origin", "https://example.org"]);
    desk.run("unpack both.sealift ostree:target --ref app/main --remote origin --allow-unsigned");
    let found = audit(&desk, "target", "");
    assert_eq!((&found["sound"], &found["trees"]), (&Value::Bool(true), &serde_json::json!(["app/main"])));
    let found = audit(&desk, "target", "--ref os/main");
    assert!(entries(&found).contains(&("missing", "refs/heads/os/main", "")), "{found}");
    let refused = desk.refused("audit ostree:target --allow-unsigned --ref none");
    assert!(refused.contains("none of the compared bundles has an OSTree ref none"), "{refused}");
    // Pruned, together with all of its objects.
    desk.ostree("target", &["refs", "--delete", "origin:app/main"]);
    desk.ostree("target", &["prune", "--refs-only"]);
    let found = audit(&desk, "target", "--name os");
    assert!(found["counts"]["missing"].as_u64().expect("a number") > 5, "{found}");
}

/// A record is trusted as far as it is signed.
#[test]
fn a_record_that_was_changed() {
    let desk = desk();
    desk.init_with("target", "bare-user-only", "os.sealift");
    let index = desk.path("target/extensions/sealift/os");
    let mut index = fs::read_dir(index).expect("a folder").map(|entry| entry.expect("an entry").path());
    let index = index.find(|path| !path.ends_with("head")).expect("the index is kept");
    flip(&index);
    let output = desk.command("audit ostree:target --allow-unsigned").output().expect("sealift runs");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("target/extensions/sealift/os/head"), "{said}");
    desk.run("audit ostree:target os.sealift --allow-unsigned");
}
