//! From each mode into each: the same commit arrives, and only once.

use std::fs;
use std::os::unix::fs::symlink;

use rustix::fs::{XattrFlags, lsetxattr};
use sealift_desk::can_chown;

use crate::repos::{MODES, Repos, full_tree, plain_tree, write};

/// The only owner that all modes can hold.
const ROOT: &[&str] = &["--owner-uid=0", "--owner-gid=0"];

#[test]
fn from_bare() {
    if can_chown() {
        from("bare");
    }
}

#[test]
fn from_bare_user() {
    from("bare-user");
}

#[test]
fn from_bare_user_only() {
    from("bare-user-only");
}

#[test]
fn from_archive() {
    from("archive");
}

fn from(mode: &str) {
    let desk = Repos::new();
    desk.init("source", mode);
    plain_tree(&desk.path("plain"));
    let commit = desk.commit("source", "os/plain", "./plain", ROOT);
    desk.run("pack --force ostree:source --ref os/plain -o plain.sealift");
    for to in MODES.iter().filter(|to| **to != "bare" || can_chown()) {
        arrives(&desk, "plain", to, &commit, ROOT);
    }
    if mode == "bare-user-only" || !can_chown() {
        return;
    }
    full_tree(&desk.path("full"));
    let commit = desk.commit("source", "os/full", "./full", &[]);
    desk.run("pack --force ostree:source --ref os/full -o full.sealift");
    for to in MODES.iter().filter(|to| **to != "bare-user-only") {
        arrives(&desk, "full", to, &commit, &[]);
    }
    desk.init("small", "bare-user-only");
    let before = desk.snapshot("small");
    let said = desk.refused("unpack full.sealift ostree:small --allow-unsigned");
    assert!(said.contains("bare-user-only") && said.contains(".file: it "), "{said}");
    desk.is_as(&before, "small", "nothing is written before it is known to fit");
}

/// Unpacks a bundle into a new repository of a mode, twice.
fn arrives(desk: &Repos, name: &str, mode: &str, commit: &str, owners: &[&str]) {
    let (bundle, target) = (format!("{name}.sealift"), format!("{name}-{mode}"));
    let (reference, tree): (&str, &str) = (&format!("os/{name}"), &format!("./{name}"));
    desk.init(&target, mode);
    let first = desk.import(&bundle, &target);
    assert_eq!(first["refs"][0]["commit"], commit, "{target}");
    assert_eq!(first["refs"][0]["name"], reference, "{target}");
    assert_eq!(desk.ostree(&target, &["rev-parse", reference]).trim(), commit, "{target}");
    desk.fsck(&target);
    assert_eq!(desk.listed(&target, reference), desk.listed("source", commit), "{target}");
    assert_eq!(desk.ostree(&target, &[&["diff"], owners, &[reference, tree]].concat()), "", "{target}");
    let before = desk.snapshot(&target);
    let second = desk.import(&bundle, &target);
    for what in ["commits", "metadata", "files", "stored_bytes"] {
        assert_eq!(second[what], 0, "{target}: {what} {second}");
    }
    desk.is_as(&before, &target, "a second run");
}

/// Everything that bare-user-only cannot hold is refused, by name.
#[test]
fn what_bare_user_only_lacks() {
    let desk = Repos::new();
    let file = desk.path("tree/file");
    fs::create_dir(desk.path("tree")).expect("a folder");
    desk.init("source", "bare-user");
    desk.init("target", "bare-user-only");
    let before = desk.snapshot("target");
    let refused = |owners: &[&str], why: &str| {
        desk.commit("source", "os", "./tree", owners);
        desk.run("pack --force ostree:source -o os.sealift");
        for more in ["", "--dry-run"] {
            let said = desk.refused(&format!("unpack os.sealift ostree:target --allow-unsigned {more}"));
            assert!(said.contains(why), "{said}");
            desk.is_as(&before, "target", why);
        }
    };
    write(&file, 0o644, b"file");
    refused(&["--owner-uid=1", "--owner-gid=0"], "it does not belong to root");
    refused(&["--owner-uid=0", "--owner-gid=1"], "it does not belong to root");
    for mode in [0o4755, 0o2755, 0o1755, 0o666, 0o777] {
        write(&file, mode, b"file");
        refused(ROOT, "it has permission bits beyond 0775");
    }
    write(&file, 0o775, b"file");
    lsetxattr(&file, "user.note", b"note", XattrFlags::empty()).expect("it can be set");
    refused(ROOT, "it has extended attributes");
    fs::remove_file(&file).expect("it is there");
    symlink("target", &file).expect("a link");
    refused(&["--owner-uid=1", "--owner-gid=0"], "it does not belong to root");
    desk.commit("source", "os", "./tree", ROOT);
    desk.run("pack --force ostree:source -o os.sealift");
    desk.import("os.sealift", "target");
    desk.fsck("target");
}
