//! File systems that rename less than others: overlayfs, which refuses it for directories of a lower layer, and bindfs, which knows no flag of
//! renameat2(2).

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::process::{Command, Stdio};

use sealift::unpack::UnpackStats;
use sealift_desk::{Mounted, NOBODY, as_root, has, is_root, out, said, skipped, told};

use crate::installed::Installed;

/// Mounts a new btrfs at `disk`.
pub(crate) fn btrfs(desk: &Installed, options: &[&str]) -> Mounted {
    fs::File::create_new(desk.path("image")).unwrap().set_len(256 << 20).unwrap();
    out(desk.command_of("mkfs.btrfs").arg("-q").args(options).arg("image"));
    fs::create_dir(desk.path("disk")).unwrap();
    out(desk.command_of("mount").args(["-o", "loop", "image", "disk"]));
    Mounted::at(desk.path("disk"))
}

/// Mounts `real` at `mirror`.
fn bindfs(desk: &Installed, options: &[&str]) -> Mounted {
    for name in ["real", "mirror"] {
        fs::create_dir_all(desk.path(name)).unwrap();
    }
    // It goes on in the background, with what it would print to.
    let mut bindfs = desk.command_of("bindfs");
    bindfs.args(options).args(["real", "mirror"]).stdout(Stdio::null()).stderr(Stdio::null());
    assert!(bindfs.status().unwrap().success(), "bindfs");
    Mounted::at(desk.path("mirror"))
}

/// Changes the tree: a file becomes another, a directory with others is gone, one becomes a link, and one is new.
fn change(desk: &Installed) {
    desk.write("tree/etc/issue", "second\n");
    fs::remove_dir_all(desk.path("tree/gone")).unwrap();
    fs::remove_dir_all(desk.path("tree/turned")).unwrap();
    symlink("etc", desk.path("tree/turned")).unwrap();
    fs::create_dir(desk.path("tree/new")).unwrap();
    desk.write("tree/new/file", "new\n");
}

fn desk_with_directories() -> Installed {
    let desk = Installed::new();
    for name in ["gone", "turned"] {
        fs::create_dir_all(desk.path("tree").join(name).join(["deep"; 70].join("/"))).unwrap();
        desk.write(&format!("tree/{name}/file"), name);
    }
    desk.pack(7);
    desk
}

fn assert_done(desk: &Installed, stats: &UnpackStats, target: &str) {
    assert!(stats.is_update && !stats.was_complete);
    desk.assert_same(target, "tree");
    let again = desk.replace(8, target).unwrap();
    assert!(again.was_complete && !again.was_hashed, "the record was replaced as well");
    let (folder, name) = target.rsplit_once('/').unwrap();
    assert!(!desk.path(folder).join(format!(".{name}.sealift-partial")).exists());
}

#[test]
fn a_tree_of_a_lower_layer_is_updated() {
    let Some(desk) = as_root("mounts", desk_with_directories) else { return };
    let _disk = Mounted::new(desk.path("disk"), "tmpfs", "mode=755");
    fs::create_dir(desk.path("disk/lower")).unwrap();
    desk.unpack(7, "disk/lower/os");
    desk.unpack(7, "disk/lower/half");
    change(&desk);
    desk.install(8, "whole");
    // What a killed run left there as well.
    desk.leave_update("disk/lower/half", "whole");
    let _merged = Mounted::overlay(desk.path("merged"), &desk.path("disk"));
    assert_done(&desk, &desk.replace(8, "merged/os").unwrap(), "merged/os");
    desk.good("clean merged/half");
    assert!(!desk.path("merged/half/gone").exists(), "it was completed");
    desk.replace(8, "merged/half").unwrap();
    desk.assert_same("merged/half", "tree");
}

/// Without root, a read-only directory has to be opened before it turns out that it cannot be moved.
#[test]
fn a_closed_directory_of_a_lower_layer_is_removed_by_its_owner() {
    let Some(desk) = as_root("mounts", Installed::new) else { return };
    fs::create_dir(desk.path("tree/closed")).unwrap();
    desk.write("tree/closed/file", "closed");
    desk.set_mode("tree/closed", 0o555);
    desk.pack(7);
    desk.make_home();
    let _disk = Mounted::new(desk.path("disk"), "tmpfs", "mode=755");
    fs::create_dir(desk.path("disk/lower")).unwrap();
    let own = |name: &str| chown(desk.path(name), Some(NOBODY), Some(NOBODY)).unwrap();
    own("disk/lower");
    let run = |line: &str| {
        let done = desk.run_as_user(line);
        assert!(done.status.success(), "{line}: {}", said(&done));
    };
    run("unpack 7.sealift disk/lower/os --allow-unsigned");
    fs::remove_dir_all(desk.path("tree/closed")).unwrap();
    desk.pack(8);
    let _merged = Mounted::overlay(desk.path("merged"), &desk.path("disk"));
    own("merged");
    run("unpack 8.sealift merged/os --allow-unsigned --update --delete");
    run("audit merged/os --allow-unsigned");
    assert!(!desk.path("merged/os/closed").exists());
}

#[test]
fn a_tree_is_updated_where_renames_have_no_flags() {
    let Some(desk) = as_root("mounts", desk_with_directories) else { return };
    let _mirror = bindfs(&desk, &[]);
    desk.unpack(7, "mirror/os");
    change(&desk);
    desk.pack(8);
    assert_done(&desk, &desk.replace(8, "mirror/os").unwrap(), "mirror/os");
}

#[test]
fn a_file_system_with_one_mode_for_everything_is_a_target() {
    let Some(desk) = as_root("mounts", Installed::new) else { return };
    desk.pack(7);
    let fixed = ["--perms=0777", "--chmod-ignore", "--chown-ignore"];
    let mirror = bindfs(&desk, &fixed);
    // A dry run says what is lost, and leaves nothing.
    let lost = |more: &str| -> Vec<String> {
        let said = desk.good(&format!("unpack 7.sealift mirror/os --allow-unsigned {more}"));
        said.lines().filter(|line| line.contains("FUSE")).map(|line| line.replace("would not be", "not")).collect()
    };
    let before = fs::metadata(desk.path("real")).unwrap().modified().unwrap();
    let foreseen = lost("--dry-run");
    assert_eq!(fs::metadata(desk.path("real")).unwrap().modified().unwrap(), before);
    assert_eq!(fs::read_dir(desk.path("real")).unwrap().count(), 0);
    assert!(!foreseen.is_empty());
    assert_eq!(foreseen, lost(""));
    desk.write("tree/etc/issue", "second\n");
    desk.pack(8);
    desk.update(8, "mirror/os").unwrap();
    let names = |folder: &str| fs::read_dir(desk.path(folder)).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names("mirror").count(), 2, "the tree and its record");
    // The same modes, where they are real, are another user's way in.
    drop(mirror);
    desk.set_mode("real/.os.sealift-state", 0o777);
    let _mirror = bindfs(&desk, &[]);
    let error = desk.update(8, "mirror/os").expect_err("it is writable").to_string();
    assert!(error.contains("is writable by other users (mode 0777)"), "{error}");
    assert_eq!(fs::metadata(desk.path("real/.os.sealift-state")).unwrap().permissions().mode() & 0o777, 0o777);
}

/// Without this feature, btrfs gives a file some dozens of long names in one directory.
#[test]
fn duplicates_beyond_what_a_file_system_links_are_files_of_their_own() {
    let has_btrfs = Command::new("mkfs.btrfs").arg("--version").output().is_ok();
    if !is_root() || !has_btrfs {
        return skipped("needs root, and mkfs.btrfs: mounts");
    }
    let desk = Installed::new();
    for number in 0..200 {
        let name = format!("tree/{number}-{}", "x".repeat(200));
        desk.write(&name, "the same\n");
        let touched = Command::new("touch").args(["-d", "2001-02-03"]).arg(desk.path(&name)).status().unwrap();
        assert!(touched.success());
    }
    desk.pack(7);
    let _disk = btrfs(&desk, &["-O", "^extref"]);
    desk.good("unpack 7.sealift disk/os --allow-unsigned --hardlink-duplicates");
    desk.assert_same("disk/os", "tree");
    let all = || fs::read_dir(desk.path("disk/os")).unwrap().map(|entry| entry.unwrap().metadata().unwrap());
    let inodes =
        || all().filter(fs::Metadata::is_file).map(|file| file.ino()).collect::<std::collections::BTreeSet<_>>();
    assert!((2..20).contains(&inodes().len()), "{}", inodes().len());
    let audit = "audit disk/os --allow-unsigned";
    desk.good(audit);
    desk.write("tree/etc/issue", "second\n");
    desk.pack(8);
    // The record keeps that they may be linked.
    desk.good("unpack 8.sealift disk/os --allow-unsigned --update");
    desk.good(audit);
    // A link between files that differ in the bundle is a difference, as ever.
    fs::remove_file(desk.path("disk/os/etc/motd")).unwrap();
    fs::hard_link(desk.path("disk/os/etc/issue"), desk.path("disk/os/etc/motd")).unwrap();
    assert_eq!(desk.command(audit).output().unwrap().status.code(), Some(1));
}

/// A file system that renames no directory at all; other calls that rename are for files.
#[test]
fn a_new_tree_is_made_where_no_directory_is_renamed() {
    let desk = desk_with_directories();
    if !has(&["strace"]) {
        return;
    }
    let run = |line: &str| {
        let failing = ["-e", "trace=renameat2", "-e", "inject=renameat2:error=EXDEV"];
        let (status, said) = told(&mut desk.strace(&failing, line).unwrap());
        assert_eq!(status, Some(0), "{line}: {said}");
        said
    };
    let said = run("unpack 7.sealift os --allow-unsigned");
    assert!(said.contains("os: unpacked from 7.sealift"), "{said}");
    desk.assert_same("os", "tree");
    run("audit os --allow-unsigned");
    change(&desk);
    desk.pack(8);
    run("unpack 8.sealift os --allow-unsigned --update --delete");
    desk.assert_same("os", "tree");
    run("audit os --allow-unsigned");
    let mut ours = desk.names("");
    ours.retain(|name| name.starts_with('.'));
    assert_eq!(ours, [".os.sealift-state"]);
}
