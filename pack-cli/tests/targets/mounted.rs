//! Another mount in a target, or an attribute of chattr(1) that forbids a change, is found before anything is changed.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::process::Command;

use sealift::{InstallOptions, Progress, TreeOptions};
use sealift_desk::{Mounted, as_root, is_root, said, skipped};

use crate::installed::Installed;
use crate::unlike::updatable;

#[test]
fn what_is_mounted_in_a_target_is_found_before_anything_is_changed() {
    if !is_root() {
        return skipped("needs root: mounts");
    }
    // The target itself, a file that is replaced, its directory, a directory that is new.
    for mounted in ["target", "target/etc", "target/etc/issue", "target/new"] {
        let desk = updatable();
        desk.unpack(8, "whole");
        fs::create_dir(desk.path("tree/new")).unwrap();
        desk.write("tree/new/file", "new\n");
        desk.pack(9);
        for name in ["new", "mine"] {
            fs::create_dir(desk.path("target").join(name)).unwrap();
        }
        {
            let _bound = Mounted::on_itself(desk.path(mounted));
            let dry = desk.dry_replace(9, "target").expect_err(mounted).to_string();
            let error = desk.replace(9, "target").expect_err(mounted).to_string();
            assert_eq!(dry, error, "{mounted}");
            assert!(error.contains("mount"), "{mounted}: {error}");
            assert_eq!(fs::read(desk.path("target/etc/issue")).unwrap(), b"first\n", "{mounted}");
            assert!(!desk.path(".target.sealift-partial/journal").exists(), "{mounted}");
        }
        desk.replace(9, "target").unwrap();
        desk.assert_same("target", "tree");
    }
}

/// Returns what `audit` says, and its status.
fn audit(desk: &Installed) -> (Option<i32>, String) {
    let done = desk.command("audit target --allow-unsigned").output().unwrap();
    (done.status.code(), said(&done))
}

#[test]
fn what_is_mounted_below_a_target_stays_and_is_said() {
    let Some(desk) = as_root("mounts", Installed::new) else { return };
    for name in ["data/deep", "proc"] {
        fs::create_dir_all(desk.path("tree").join(name)).unwrap();
    }
    desk.write("tree/data/file", "hidden\n");
    desk.install(7, "target");
    let names = ["target/data", "target/proc", "target/own/deep"];
    fs::create_dir_all(desk.path("target/own/deep")).unwrap();
    desk.write("target/gone", "extra\n");
    let mounts = names.map(|name| Mounted::new(desk.path(name), "tmpfs", "mode=755"));
    let _bound = Mounted::on_itself(desk.path("target/etc/motd"));
    for name in names {
        desk.write(&format!("{name}/mine"), "mine\n");
        desk.set_mode(name, 0o711);
    }
    let seen = || names.map(|name| fs::metadata(desk.path(name)).map(|found| (found.mode(), found.mtime())).unwrap());
    let before = seen();
    desk.write("tree/etc/issue", "second\n");
    desk.set_mode("tree/proc", 0o555);
    desk.pack(8);
    for option in ["--dry-run", "", ""] {
        let said = desk.good(&format!("unpack 8.sealift target --allow-unsigned --update --delete {option}"));
        for mount in ["data", "proc", "own", "etc/motd"] {
            assert!(said.contains(&format!("left alone: {mount} is a mount point")), "{mount}: {said}");
        }
        assert!(said.contains("2 entries of the bundle under"), "{said}");
    }
    assert_eq!(seen(), before);
    assert!(names.iter().all(|name| fs::read(desk.path(name).join("mine")).unwrap() == b"mine\n"));
    assert!(fs::read(desk.path("target/etc/issue")).unwrap() == b"second\n" && !desk.path("target/gone").exists());
    // A directory of another's own in which something is mounted is left as a whole.
    let (code, text) = audit(&desk);
    assert!(code == Some(1) && text.contains("own") && text.contains("not compared: data is a mount point"), "{text}");
    // A change under a mount is refused before anything is changed, and so is a file in the place of one.
    for change in ["data/file", "data/deep/new", "own"] {
        let kept = fs::read(desk.path("tree").join(change)).ok();
        desk.write(&format!("tree/{change}"), "another\n");
        desk.write("tree/etc/issue", change);
        desk.pack(9);
        let error = desk.replace(9, "target").expect_err(change).to_string();
        assert!(error.contains(change.rsplit_once('/').map_or(change, |(folder, _)| folder)), "{change}: {error}");
        assert!(error.contains("mount"), "{change}: {error}");
        assert_eq!(fs::read(desk.path("target/etc/issue")).unwrap(), b"second\n", "{change}");
        match kept {
            Some(kept) => desk.write(&format!("tree/{change}"), kept),
            None => fs::remove_file(desk.path("tree").join(change)).unwrap(),
        }
    }
    drop((mounts, _bound));
    fs::remove_dir_all(desk.path("target/own")).unwrap();
    desk.replace(9, "target").unwrap();
    let (code, text) = audit(&desk);
    assert_eq!(code, Some(0), "{text}");
}

#[test]
fn what_must_not_be_changed_is_found_before_anything_is_changed() {
    if !is_root() {
        return skipped("needs root: attributes of chattr(1)");
    }
    // A file that is replaced, its directory, the directory of a new file, a name that is removed.
    let fixed = [
        ("i", "target/etc/issue"),
        ("a", "target/etc/issue"),
        ("i", "target/etc"),
        ("i", "target"),
        ("a", "target/mine"),
    ];
    for (attribute, name) in fixed {
        let desk = updatable();
        desk.write("tree/new", "new\n");
        desk.pack(9);
        desk.write("target/mine", "mine\n");
        let chattr = |sign| Command::new("chattr").arg(format!("{sign}{attribute}")).arg(desk.path(name)).status();
        if !chattr("+").unwrap().success() {
            return skipped("needs a folder for temporary files whose file system has attributes of chattr(1)");
        }
        let (dry, real) = (desk.dry_replace(9, "target"), desk.replace(9, "target"));
        chattr("-").unwrap();
        let (dry, error) = (dry.expect_err(name).to_string(), real.expect_err(name).to_string());
        assert_eq!(dry, error, "{name}");
        assert!(error.contains(name) && error.contains("chattr"), "{name}: {error}");
        assert_eq!(fs::read(desk.path("target/etc/issue")).unwrap(), b"first\n", "{name}");
        assert!(!desk.path(".target.sealift-partial/journal").exists(), "{name}");
        desk.replace(9, "target").unwrap();
        desk.assert_same("target", "tree");
    }
}

#[test]
fn what_is_mounted_beside_an_updated_part_stays() {
    let Some(desk) = as_root("mounts", updatable) else { return };
    let part = |update| TreeOptions { update, delete: update, prefix: b"etc".to_vec(), ..TreeOptions::default() };
    let take = |version, update| {
        let options = InstallOptions { tree: part(update), ..InstallOptions::default() };
        desk.take(version, "part", &options, &Progress::default()).unwrap()
    };
    take(7, false);
    fs::create_dir(desk.path("part/mine")).unwrap();
    {
        let _bound = Mounted::on_itself(desk.path("part/mine"));
        assert_eq!(take(8, true).files, 1);
    }
    assert!(desk.path("part/mine").exists());
}
