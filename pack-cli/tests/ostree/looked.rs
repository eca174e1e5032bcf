//! "Complete" means checked: damaged objects are imported again, and the message says how objects were checked.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::SystemTime;

use sealift_desk::{can_chown, noise};

use crate::repos::{MODES, Repos, plain_tree, write};

fn desk(mode: &str) -> Repos {
    let desk = Repos::new();
    plain_tree(&desk.path("tree"));
    desk.init("source", "archive");
    desk.commit("source", "os", "./tree", &["--owner-uid=0", "--owner-gid=0"]);
    desk.run("pack ostree:source -o os.sealift --name os --bundle-version 1");
    desk.init_with("target", mode, "os.sealift");
    desk
}

fn cut(path: &Path) {
    let stat = fs::symlink_metadata(path).expect("it is there");
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).expect("it is ours");
    let file = fs::OpenOptions::new().write(true).open(path).expect("it can be opened");
    file.set_len(if path.to_string_lossy().ends_with('z') { 20 } else { stat.len() - 1 }).expect("it can be cut");
    keep(path, &stat);
}

/// Changes a byte, but not the size, and no time except that of the inode's change.
fn flip(path: &Path) {
    let stat = fs::symlink_metadata(path).expect("it is there");
    let mut bytes = fs::read(path).expect("it can be read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    fs::write(path, bytes).expect("it can be written");
    keep(path, &stat);
}

fn keep(path: &Path, stat: &fs::Metadata) {
    fs::set_permissions(path, stat.permissions()).expect("it is ours");
    let file = fs::File::open(path).expect("it can be opened");
    file.set_modified(stat.modified().expect("it has a time")).expect("it is ours");
}

fn modes() -> impl Iterator<Item = &'static str> {
    MODES.into_iter().filter(|mode| *mode != "bare" || can_chown())
}

fn ends(mode: &str) -> [&'static str; 4] {
    [if mode == "archive" { ".filez" } else { ".file" }, ".commit", ".dirtree", ".dirmeta"]
}

/// The size is checked for any object, whatever its time.
#[test]
fn a_wrong_size_is_found_and_repaired() {
    for mode in modes() {
        let desk = desk(mode);
        for end in ends(mode) {
            cut(&desk.largest("target", end));
            desk.try_ostree("target", &["fsck", "--quiet"]).expect_err("it is damaged");
            let left = desk.import_with("os.sealift", "target", "--no-check");
            assert_eq!((&left["checked_objects"], &left["repaired_objects"]), (&0.into(), &0.into()), "{mode} {end}");
            let dry = desk.import_with("os.sealift", "target", "--dry-run");
            assert_eq!(dry["repaired_objects"], 1, "{mode} {end}");
            desk.try_ostree("target", &["fsck", "--quiet"]).expect_err("it is as it was");
            let done = desk.import("os.sealift", "target");
            assert_eq!(done["repaired_objects"], 1, "{mode} {end}: {done}");
            assert_eq!(done["commits"].as_u64().zip(done["files"].as_u64()), Some((0, 0)), "{mode} {end}: {done}");
            desk.fsck("target");
            desk.run("audit ostree:target --allow-unsigned");
        }
        fs::remove_file(desk.largest("target", ends(mode)[0])).expect("it is ours");
        assert_eq!(desk.import("os.sealift", "target")["files"], 1, "{mode}: one that is gone comes back");
        desk.fsck("target");
    }
}

/// Damage that keeps size and time is only found by reading.
#[test]
fn a_rehash_reads_and_repairs_all() {
    for mode in modes() {
        let desk = desk(mode);
        for end in ends(mode) {
            flip(&desk.largest("target", end));
            let seen = desk.import("os.sealift", "target");
            assert_eq!(seen["repaired_objects"], 0, "{mode} {end}: {seen}");
            desk.refused("audit ostree:target --allow-unsigned");
            let said = desk.run("unpack os.sealift ostree:target --allow-unsigned --rehash");
            assert!(said.contains("objects hashed") && said.contains("1 damaged object replaced"), "{said}");
            desk.fsck("target");
            desk.run("audit ostree:target --allow-unsigned");
        }
        let again = desk.import_with("os.sealift", "target", "--rehash");
        assert_eq!(again["hashed_objects"], again["checked_objects"], "{mode}: {again}");
        assert_eq!(again["repaired_objects"], 0, "{mode}: {again}");
    }
}

/// Objects that were modified since the import are read, and not again if they were right.
#[test]
fn what_was_written_since_is_read() {
    for mode in modes() {
        let desk = desk(mode);
        let later = SystemTime::now() + std::time::Duration::from_secs(5);
        for end in ends(mode) {
            let path = desk.largest("target", end);
            flip(&path);
            fs::File::open(&path).expect("it can be opened").set_modified(later).expect("it is ours");
            let done = desk.import("os.sealift", "target");
            assert_eq!(done["repaired_objects"], 1, "{mode} {end}: {done}");
            desk.fsck("target");
        }
        let path = desk.largest("target", ends(mode)[0]);
        let touch = |time| fs::File::open(&path).expect("it can be opened").set_modified(time).expect("it is ours");
        let head = desk.path("target/extensions/sealift/os/head");
        let long_ago = SystemTime::now() - std::time::Duration::from_secs(1000);
        fs::File::open(&head).expect("it is there").set_modified(long_ago).expect("it is ours");
        touch(SystemTime::now() - std::time::Duration::from_secs(500));
        let counts = |done: serde_json::Value| done["hashed_objects"].as_u64().zip(done["repaired_objects"].as_u64());
        let (hashed, repaired) = counts(desk.import("os.sealift", "target")).expect("they are numbers");
        assert!(hashed >= 1 && repaired == 0, "{mode}: {hashed} {repaired}");
        let again = counts(desk.import("os.sealift", "target"));
        assert!(again.is_some_and(|(again, _)| again < hashed || mode == "archive"), "{mode}: {again:?}");
    }
}

/// Owner and permissions of a file in a bare repository are part of the object.
#[test]
fn a_set_id_bit_is_found() {
    let Some(desk) = can_chown().then(|| desk("bare")) else { return };
    let path = desk.largest("target", ".file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4755)).expect("it is ours");
    assert_eq!(desk.import("os.sealift", "target")["repaired_objects"], 1);
    assert_eq!(fs::metadata(desk.largest("target", ".file")).expect("it is there").mode() & 0o7777, 0o644);
    desk.fsck("target");
}

/// An update checks the objects that both versions have, and a delta reports that it cannot bring what it does not carry.
#[test]
fn an_update_repairs_and_a_delta_asks_for_all() {
    let desk = desk("bare-user");
    write(&desk.path("tree/new"), 0o644, &noise(9, 9000));
    desk.commit("source", "os", "./tree", &["--owner-uid=0", "--owner-gid=0"]);
    desk.run("pack ostree:source -o os-2.sealift --name os --bundle-version 2");
    desk.run("pack ostree:source -o delta.sealift --name os --bundle-version 2 --base os.sealift --allow-unsigned");
    cut(&desk.largest("target", ".file"));
    let said = desk.refused("unpack delta.sealift ostree:target --allow-unsigned");
    assert!(said.contains("use the full bundle"), "{said}");
    let done = desk.import("os-2.sealift", "target");
    assert_eq!((&done["repaired_objects"], &done["files"]), (&1.into(), &1.into()), "{done}");
    desk.fsck("target");
    desk.run("audit ostree:target --allow-unsigned");
}
