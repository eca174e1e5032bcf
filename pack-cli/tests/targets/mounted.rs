//! Another mount in a target, or an attribute of chattr(1) that forbids a change, is found before anything is changed.

use std::fs;
use std::process::Command;

use sealift::{InstallOptions, Progress, TreeOptions};
use sealift_skipped::skipped;

use crate::desk::is_root;
use crate::unlike::updatable;

/// Mounts a file or folder of the desk on itself, until dropped.
pub(crate) struct Bound(std::path::PathBuf);

impl Bound {
    pub(crate) fn new(path: std::path::PathBuf) -> Self {
        rustix::mount::mount_bind(&path, &path).unwrap();
        Self(path)
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::DETACH);
    }
}

#[test]
fn what_is_mounted_in_a_target_is_found_before_anything_is_changed() {
    if !is_root() {
        return skipped("needs root: mounts");
    }
    // The target itself, a file that is replaced, a directory that is new, a name that is removed.
    for mounted in ["target", "target/etc", "target/etc/issue", "target/new", "target/mine"] {
        let desk = updatable();
        desk.unpack(8, "whole");
        fs::create_dir(desk.path("tree/new")).unwrap();
        desk.write("tree/new/file", "new\n");
        desk.pack(9);
        for name in ["new", "mine"] {
            fs::create_dir(desk.path("target").join(name)).unwrap();
        }
        {
            let _bound = Bound::new(desk.path(mounted));
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
    if !is_root() {
        return skipped("needs root: mounts");
    }
    let desk = updatable();
    let part = |update| TreeOptions { update, delete: update, prefix: b"etc".to_vec(), ..TreeOptions::default() };
    let take = |version, update| {
        let options = InstallOptions { tree: part(update), ..InstallOptions::default() };
        desk.take(version, "part", &options, &Progress::default()).unwrap()
    };
    take(7, false);
    fs::create_dir(desk.path("part/mine")).unwrap();
    {
        let _bound = Bound::new(desk.path("part/mine"));
        assert_eq!(take(8, true).files, 1);
    }
    assert!(desk.path("part/mine").exists());
}
