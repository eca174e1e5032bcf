//! From each mode into each: the same commit arrives, and arrives once.

use crate::desk::{Desk, MODES, full_tree, is_root, plain_tree};

/// The owner whom all modes hold.
const ROOT: &[&str] = &["--owner-uid=0", "--owner-gid=0"];

#[test]
fn from_bare() {
    if is_root() {
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
    let desk = Desk::new();
    desk.init("source", mode);
    plain_tree(&desk.path("plain"));
    let commit = desk.commit("source", "os/plain", "./plain", ROOT);
    desk.run("pack ostree:source --ref os/plain -o plain.sealift");
    for to in MODES.iter().filter(|to| **to != "bare" || is_root()) {
        arrives(&desk, "plain", to, &commit, ROOT);
    }
    if mode == "bare-user-only" || !is_root() {
        return;
    }
    full_tree(&desk.path("full"));
    let commit = desk.commit("source", "os/full", "./full", &[]);
    desk.run("pack ostree:source --ref os/full -o full.sealift");
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
fn arrives(desk: &Desk, name: &str, mode: &str, commit: &str, owners: &[&str]) {
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
