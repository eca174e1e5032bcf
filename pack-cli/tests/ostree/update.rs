//! An update reads and writes only what is new.

use std::fs;

use sealift_desk::{Mounted, as_root, noise};

use crate::repos::{Repos, Snapshot, write};

const FILES: usize = 300;

#[test]
fn only_what_changed() {
    let desk = Repos::new();
    for number in 0..FILES {
        let folder = desk.path(&format!("tree/d{}", number % 10));
        fs::create_dir_all(&folder).expect("a folder");
        write(&folder.join(format!("f{number}")), 0o644, &noise(number, 20_000));
    }
    desk.init("source", "archive");
    desk.init("target", "bare-user-only");
    let commit = || desk.commit("source", "os", "./tree", &["--owner-uid=0", "--owner-gid=0"]);
    let old = commit();
    desk.run("pack --force ostree:source -o old.sealift");
    let first = desk.import("old.sealift", "target");
    assert_eq!(first["files"], FILES);
    let before = desk.snapshot("target");

    for number in [3, 13, 29] {
        let path = desk.path(&format!("tree/d{}/f{number}", number % 10));
        write(&path, 0o644, &noise(FILES + number, 20_000));
    }
    let new = commit();
    desk.run("pack --force ostree:source --depth 1 -o new.sealift --chunk-size 64KiB");
    let whole = fs::metadata(desk.path("new.sealift")).expect("a bundle").len();
    let dry = desk.run("unpack new.sealift ostree:target --allow-unsigned --dry-run --json");
    desk.is_as(&before, "target", "a dry run");
    let second = desk.import("new.sealift", "target");
    let dry: serde_json::Value = serde_json::from_str(&dry).expect("it is JSON");
    for (what, number) in [("commits", 1), ("metadata", 3), ("files", 3), ("logical_bytes", 60_000)] {
        assert_eq!(second[what], number, "{what}");
        assert_eq!(dry[what], number, "{what} of the dry run");
    }
    let read = second["stored_bytes"].as_u64().expect("a number");
    assert!(read < whole / 20, "{read} of {whole} bytes were read");
    let added = added(&before, &desk.snapshot("target"));
    assert_eq!(added, ["commit", "dirtree", "dirtree", "dirtree", "file", "file", "file"]);
    desk.fsck("target");
    assert_eq!(desk.listed("target", "os"), desk.listed("source", &new));
    assert_eq!(desk.listed("target", "os^"), desk.listed("source", &old));

    // An older bundle moves the ref back; no object is missing for that.
    let back = desk.import("old.sealift", "target");
    assert_eq!((&back["stored_bytes"], &back["files"]), (&0.into(), &0.into()));
    assert_eq!(desk.ostree("target", &["rev-parse", "os"]).trim(), old);
    desk.fsck("target");
}

/// Returns the types of new objects, and checks that the existing ones are unchanged.
fn added(before: &Snapshot, after: &Snapshot) -> Vec<String> {
    for (path, was) in before.iter().filter(|(path, _)| !path.ends_with("refs/heads/os")) {
        assert_eq!(after.get(path), Some(was), "{}", path.display());
    }
    let new = after.keys().filter(|path| !before.contains_key(*path));
    let mut kinds: Vec<_> = new.filter_map(|path| Some(path.extension()?.to_str()?.to_owned())).collect();
    kinds.sort();
    kinds
}

/// The commits in between are missing, or come with the bundle.
#[test]
fn history() {
    let desk = Repos::new();
    desk.init("source", "bare-user");
    let mut commits = Vec::new();
    for number in 0..4 {
        fs::create_dir_all(desk.path("tree")).expect("a folder");
        write(&desk.path("tree/file"), 0o644, &noise(number, 1000));
        commits.push(desk.commit("source", "os", "./tree", &["--owner-uid=0", "--owner-gid=0"]));
    }
    for (depth, carried) in [(0, 1), (1, 2), (2, 3), (9, 4)] {
        let (bundle, target) = (format!("{depth}.sealift"), format!("target-{depth}"));
        desk.run(&format!("pack --force ostree:source --depth {depth} -o {bundle}"));
        desk.init(&target, "archive");
        assert_eq!(desk.import(&bundle, &target)["commits"], carried);
        desk.fsck(&target);
        let log = desk.ostree(&target, &["log", "os"]);
        for (age, commit) in commits.iter().rev().enumerate() {
            let is_there = age < carried;
            assert_eq!(log.contains(&format!("commit {commit}")), is_there, "depth {depth}: {log}");
            assert_eq!(desk.try_ostree(&target, &["ls", commit]).is_ok(), is_there);
        }
    }
    // Commits that a repository lacks before its newest one come from a bundle with more of the history.
    assert_eq!(desk.import("9.sealift", "target-1")["commits"], 2);
    desk.fsck("target-1");
    assert_eq!(desk.listed("target-1", &commits[0]), desk.listed("source", &commits[0]));
}

#[test]
fn a_repository_of_a_lower_layer_takes_updates() {
    let Some(desk) = as_root("mounts", Repos::new) else { return };
    fs::create_dir_all(desk.path("tree")).expect("a folder");
    desk.init("source", "archive");
    for version in [1, 2, 3] {
        write(&desk.path("tree/file"), 0o644, format!("version {version}\n").as_bytes());
        desk.commit("source", "os", "./tree", &[]);
        desk.run(&format!("pack ostree:source -o {version}.sealift --name os --bundle-version {version}"));
    }
    let _disk = Mounted::new(desk.path("disk"), "tmpfs", "");
    fs::create_dir(desk.path("disk/lower")).expect("a folder");
    desk.init_with("disk/lower/repo", "bare-user", "1.sealift");
    let _merged = Mounted::overlay(desk.path("merged"), &desk.path("disk"));
    // The record is in a directory of the lower layer at first, and then has files of both.
    for version in ["2", "3"] {
        desk.import(&format!("{version}.sealift"), "merged/repo");
        let status = desk.run("status ostree:merged/repo");
        assert!(status.contains(&format!("version {version}")), "{status}");
        desk.run("audit ostree:merged/repo --allow-unsigned");
    }
    desk.fsck("merged/repo");
}

/// A file system without blocks has no limit.
#[test]
fn a_repository_in_ramfs_has_room() {
    let Some(desk) = as_root("mounts", Repos::new) else { return };
    fs::create_dir(desk.path("tree")).expect("a folder");
    write(&desk.path("tree/file"), 0o644, b"version 1\n");
    desk.init("source", "archive");
    desk.commit("source", "os", "./tree", &[]);
    desk.run("pack ostree:source -o 1.sealift --name os --bundle-version 1");
    let _disk = Mounted::new(desk.path("disk"), "ramfs", "");
    desk.init("disk/repo", "bare-user-only");
    for more in [" --dry-run", ""] {
        desk.run(&format!("unpack 1.sealift ostree:disk/repo --allow-unsigned{more}"));
    }
    desk.fsck("disk/repo");
}
