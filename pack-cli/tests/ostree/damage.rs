//! Errors name what is damaged, missing or unknown, and leave nothing behind.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use sealift_desk::{can_chown, noise};

use crate::repos::{MODES, Repos, copy, plain_tree, write};

#[test]
fn damaged_objects() {
    for mode in MODES.iter().filter(|mode| **mode != "bare" || can_chown()) {
        let desk = Repos::new();
        plain_tree(&desk.path("tree"));
        desk.init("repo", mode);
        desk.commit("repo", "os", "./tree", &["--owner-uid=0", "--owner-gid=0"]);
        let file = if *mode == "archive" { ".filez" } else { ".file" };
        for end in [file, ".commit", ".dirtree", ".dirmeta"] {
            let path = desk.largest("repo", end);
            let name = path.strip_prefix(desk.path("repo/objects")).expect("it is an object");
            let name = name_of(name, end);
            for (number, damage) in [remove, empty, truncate, flip, extend].iter().enumerate() {
                fs::rename(&path, desk.path("aside")).expect("it can be moved");
                copy(&desk.path("aside"), &path);
                damage(&path);
                if end == ".filez" && number == 4 {
                    // Bytes after the compressed data are not read.
                    desk.fsck("repo");
                } else {
                    let said = desk.refused("pack --force ostree:repo --ref os -o os.sealift");
                    let what = format!("{mode} {end} {number}: {said}");
                    assert!(said.contains(&name), "{what}");
                    assert!(said.contains("is damaged") || said.contains("has no object"), "{what}");
                    let left = fs::read_dir(desk.path("")).expect("it can be listed").flatten();
                    let left: BTreeSet<_> = left.map(|entry| entry.file_name()).collect();
                    assert_eq!(left, ["aside", "repo", "tree"].map(OsString::from).into(), "{what}");
                }
                fs::rename(desk.path("aside"), &path).expect("it can be moved back");
            }
        }
        desk.run("pack --force ostree:repo --ref os -o os.sealift");
    }
}

/// A commitmeta has no checksum, but it has a form.
#[test]
fn damaged_commitmeta() {
    let desk = Repos::new();
    plain_tree(&desk.path("tree"));
    desk.init("repo", "archive");
    let commit = desk.commit("repo", "os", "./tree", &["--add-detached-metadata-string=note=beside"]);
    desk.run("pack --force ostree:repo -o os.sealift");
    extend(&desk.largest("repo", ".commitmeta"));
    let said = desk.refused("pack --force ostree:repo -o os.sealift");
    assert!(said.contains(&format!("its object {commit}.commitmeta is invalid")), "{said}");
}

/// Returns `CHECKSUM.file`, the name that libostree uses for an object in any mode.
fn name_of(inside: &Path, end: &str) -> String {
    let name = inside.to_str().expect("it is UTF-8").replace('/', "");
    if end == ".filez" { name.trim_end_matches('z').to_owned() } else { name }
}

fn remove(path: &Path) {
    fs::remove_file(path).expect("it can be removed");
}

fn empty(path: &Path) {
    fs::OpenOptions::new().write(true).open(path).and_then(|file| file.set_len(0)).expect("it can be cut");
}

fn truncate(path: &Path) {
    let file = fs::OpenOptions::new().write(true).open(path).expect("it can be opened");
    let len = file.metadata().expect("it is there").len();
    file.set_len(len - 1).expect("it can be cut");
}

fn extend(path: &Path) {
    let len = fs::metadata(path).expect("it is there").len();
    fs::OpenOptions::new().write(true).open(path).and_then(|file| file.set_len(len + 1)).expect("it can grow");
}

fn flip(path: &Path) {
    let mut bytes = fs::read(path).expect("it can be read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    // The file keeps its attributes.
    fs::write(path, bytes).expect("it can be written");
}

#[test]
fn repositories_that_are_not_known() {
    let desk = Repos::new();
    fs::create_dir(desk.path("tree")).expect("a folder");
    write(&desk.path("tree/file"), 0o644, &noise(1, 1000));
    desk.init("source", "archive");
    desk.commit("source", "os", "./tree", &["--owner-uid=0", "--owner-gid=0"]);
    desk.run("pack --force ostree:source -o os.sealift");
    fs::create_dir(desk.path("nothing")).expect("a folder");
    desk.run("pack --force tree -o tree.sealift");
    for (config, said) in [
        ("[core]\nrepo_version=2\nmode=archive-z2\n", "core.repo_version = \"2\""),
        ("[core]\nmode=archive-z2\n", "core.repo_version"),
        ("[core]\nrepo_version=1\nmode=bare-split-xattrs\n", "core.mode = \"bare-split-xattrs\""),
        ("[core]\nrepo_version=1\nmode=later\n", "core.mode = \"later\""),
        ("[core]\nrepo_version=1\nmode=bare\nparent=/other\n", "core.parent"),
        ("nonsense\n", "line 1"),
    ] {
        desk.init("target", "archive");
        fs::write(desk.path("target/config"), config).expect("there is room");
        let before = desk.snapshot("target");
        for line in ["unpack os.sealift ostree:target --allow-unsigned", "pack --force ostree:target -o no.sealift"] {
            let found = desk.refused(line);
            assert!(found.contains(said), "{config:?}: {found}");
        }
        desk.is_as(&before, "target", config);
        fs::remove_dir_all(desk.path("target")).expect("it can be removed");
    }
    desk.init("target", "archive");
    for (line, said) in [
        ("unpack os.sealift ostree:nothing --allow-unsigned", "it has no config; create one with `ostree init`"),
        (
            "unpack os.sealift ostree:nowhere --allow-unsigned",
            "nowhere: no such directory; create one with `ostree init`",
        ),
        ("unpack os.sealift ostree:target --allow-unsigned --ref other", "no OSTree ref other; it has os"),
        ("unpack tree.sealift ostree:target --allow-unsigned", "no OSTree commit"),
        ("unpack os.sealift ostree:target", "signature"),
        ("unpack os.sealift ostree:target --allow-unsigned --remote origin", "it has no remote \"origin\""),
        ("unpack os.sealift ostree:target --allow-unsigned --remote ../heads", "is not a valid remote name"),
        ("unpack os.sealift ostree:target --allow-unsigned --path file", "for directories"),
        ("unpack os.sealift target/os --allow-unsigned --remote origin", "for ostree:REPO"),
        ("pack --force ostree:source --ref other -o no.sealift", "no ref \"other\""),
        ("pack --force ostree:target -o no.sealift", "no refs"),
        ("pack --force ostree:nothing -o no.sealift", "not an OSTree repository: it has no config\n"),
    ] {
        let before = desk.snapshot("target");
        let found = desk.refused(line);
        assert!(found.contains(said), "{line}: {found}");
        desk.is_as(&before, "target", line);
        assert!(!desk.path("no.sealift").exists(), "{line}");
    }
}

/// A damaged bundle changes nothing that a ref names.
#[test]
fn damaged_bundles() {
    let desk = Repos::new();
    fs::create_dir(desk.path("tree")).expect("a folder");
    for number in 0..40 {
        write(&desk.path(&format!("tree/{number}")), 0o644, &noise(number, 5_000));
    }
    desk.init("source", "archive");
    desk.init("target", "archive");
    desk.commit("source", "os", "./tree", &["--owner-uid=0", "--owner-gid=0"]);
    desk.run("pack --force ostree:source -o os.sealift --chunk-size 64KiB");
    let whole = fs::read(desk.path("os.sealift")).expect("a bundle");
    let before = desk.snapshot("target");
    for number in 0..24 {
        let mut bytes = whole.clone();
        let at = bytes.len() * (2 * number + 1) / 48;
        if number % 2 == 0 {
            bytes[at] ^= 1;
        } else {
            bytes.truncate(at);
        }
        fs::write(desk.path("damaged.sealift"), bytes).expect("there is room");
        desk.refused("unpack damaged.sealift ostree:target --allow-unsigned");
        // What was complete is kept for a good copy.
        desk.run("clean ostree:target");
        desk.is_as(&before, "target", &format!("byte {at}"));
    }
    desk.import("os.sealift", "target");
    desk.fsck("target");
}
